"""The picture of the house shows the rooms of today's import contract; a public name means one thing."""

from __future__ import annotations

import importlib
import pkgutil
from types import FunctionType

from tools import rooms

import tacit


def test_the_picture_is_drawn_from_the_contract() -> None:
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.drawn(), "run `python tools/rooms.py`"


def test_every_room_is_in_it_once() -> None:
    shown = [room for floor in rooms.floors() for room in floor]
    folders = {
        path.name for path in (rooms.ROOT / "src" / "tacit").iterdir() if (path / "__init__.py").exists()
    }
    assert sorted(shown) == sorted({*folders, "randomness", "errors"})


def test_a_public_name_means_one_thing() -> None:
    """Commands and experiments may be called what they run; all other rooms share one vocabulary."""
    meanings: dict[str, dict[int, str]] = {}
    for module in pkgutil.walk_packages(tacit.__path__, "tacit."):
        room = module.name.split(".")[1]
        if room in ("cli", "experiments"):
            continue
        found = importlib.import_module(module.name)
        for name in getattr(found, "__all__", ()):
            thing = getattr(found, name)
            if isinstance(thing, type | FunctionType) and thing.__module__.startswith(f"tacit.{room}"):
                meanings.setdefault(name, {})[id(thing)] = f"{thing.__module__}.{name}"
    several = {name: sorted(of.values()) for name, of in meanings.items() if len(of) > 1}
    assert not several
