"""The short way to write a release on the command line, such as `gaussian:1.5@0.01x1000`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tacit.cli.account.options import check_mechanism, composition
from tacit.cli.neighbours import neighbours_named
from tacit.errors import ParameterError, check_count, check_probability

if TYPE_CHECKING:
    from tacit.privacy import Event, Leaf, Neighbours

__all__ = ["RELEASES", "parse_release"]

RELEASES: Final = {
    "gaussian": "gaussian:STD/SENSITIVITY",
    "laplace": "laplace:SCALE/SENSITIVITY",
    "gdp": "gdp:MU",
    "zcdp": "zcdp:RHO",
    "pure": "pure:EPSILON",
    "approx": "approx:EPSILON,DELTA",
    "discrete-gaussian": "discrete-gaussian:STD,SENSITIVITY",
    "discrete-laplace": "discrete-laplace:SCALE,SENSITIVITY",
    "binomial": "binomial:TRIALS,RESOLUTION,DIM",
    "perturbed": "perturbed:STD/SENSITIVITY,STRENGTH",
    "shuffle": "shuffle:LOCAL_EPSILON,PARTIES[,RANDOMIZER]",
}
"""How each kind of release is written."""

_FORM = re.compile(
    r"(?P<name>[a-z-]+):(?P<values>[^@x]+)(@((?P<how>fixed|poisson):)?(?P<rate>[^@x]+))?(x(?P<count>[^@x]+))?"
)


def parse_release(text: str, *, neighbours: str) -> Event:
    """Return the event of a text, NAME:VALUES[@[HOW:]SAMPLE_RATE][xCOUNT] or a JSON file of an event.

    HOW is fixed or poisson; without it, samples are drawn as the neighbours allow for every release.

    Raises:
        ParameterError: The text has another form, or a value is out of range.
    """
    if text.endswith(".json"):
        return _from_file(Path(text))
    name = text.partition(":")[0]
    if name not in RELEASES:
        names = ", ".join(RELEASES)
        raise ParameterError(
            f"a release must be a JSON file of an event or start with one of {names}, got {text!r}."
        )
    found = _FORM.fullmatch(text)
    if found is None:
        raise ParameterError(
            f"a release must have the form {RELEASES[name]}, then perhaps @SAMPLE_RATE or "
            f"@poisson:SAMPLE_RATE, then perhaps xCOUNT, got {text!r}."
        )
    relation = neighbours_named(neighbours)
    try:
        part = _leaf(name, found["values"].split(","), relation)
        rate = 1.0 if found["rate"] is None else _number(found["rate"])
        count = 1 if found["count"] is None else _whole(found["count"])
        check_count("COUNT", count)
        check_probability("SAMPLE_RATE", rate, low_open=True)
        return composition(part, rounds=count, sample_rate=rate, sampling=found["how"])
    except ParameterError as error:
        raise ParameterError(f"the release {text!r}: {error}") from error


def _leaf(name: str, values: list[str], relation: Neighbours) -> Leaf:
    """Return one release without its sampling and count."""
    from tacit import privacy

    if name == "shuffle" and 2 <= len(values) <= 3:
        level, parties, randomizer = (*values, "general")[:3]
        check_mechanism(randomizer)
        if (n := _whole(parties)) < 2:
            raise ParameterError(
                f"PARTIES must be at least 2, got {n}: a shuffle of one message hides nothing."
            )
        return privacy.Shuffled(_number(level), n, randomizer, relation)
    kinds: dict[str, tuple[Callable[..., Leaf], *tuple[Callable[[str], float], ...]]] = {
        "gaussian": (privacy.Gaussian, _number),
        "laplace": (privacy.Laplace, _number),
        "gdp": (privacy.Gdp, _number),
        "zcdp": (privacy.Zcdp, _number),
        "pure": (privacy.PureDP, _number),
        "approx": (privacy.ApproximateDP, _number, _number),
        "discrete-gaussian": (privacy.DiscreteGaussian, _number, _number),
        "discrete-laplace": (privacy.DiscreteLaplace, _number, _whole),
        "binomial": (privacy.Binomial, _whole, _whole, _whole),
        "perturbed": (privacy.ObjectivePerturbed, _number, _number),
    }
    kind, *reads = kinds.get(name, (privacy.Shuffled,))  # of which another number of values has no form
    if len(values) != len(reads):
        raise ParameterError(f"it must have the form {RELEASES[name]}.")
    return kind(*(read(value) for read, value in zip(reads, values, strict=True)), neighbours=relation)


def _from_file(path: Path) -> Event:
    """Return the event that a JSON file holds, alone or as the `event` of a guarantee."""
    from tacit.privacy import event_from_builtins
    from tacit.privacy.strict_json import read_json, read_start

    try:
        data = read_json(read_start(path))
    except OSError as error:
        raise ParameterError(f"the release {path} cannot be read: {error.strerror}.") from error
    except ParameterError as error:
        raise ParameterError(f"the release {path} is not JSON: {error}.") from error
    inner = data.get("event") if isinstance(data, dict) else None
    return event_from_builtins(inner if isinstance(inner, dict) else data)


def _number(value: str) -> float:
    """Return a number of a release."""
    try:
        return float(value)
    except ValueError:
        raise ParameterError(f"{value!r} is not a number.") from None


def _whole(value: str) -> int:
    """Return a whole number of a release; 1e6 is one as well."""
    number = _number(value)
    if not number.is_integer():
        raise ParameterError(f"{value!r} must be a whole number.")
    return int(number)
