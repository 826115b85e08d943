"""The picture of the house shows the rooms that the import contract has today."""

from __future__ import annotations

from tools import rooms


def test_the_picture_is_drawn_from_the_contract() -> None:
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.drawn(), "run `python tools/rooms.py`"


def test_every_room_is_in_it_once() -> None:
    shown = [room for floor in rooms.floors() for room in floor]
    folders = {
        path.name for path in (rooms.ROOT / "src" / "tacit").iterdir() if (path / "__init__.py").exists()
    }
    assert sorted(shown) == sorted({*folders, "randomness", "errors"})
