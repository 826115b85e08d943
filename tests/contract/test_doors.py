"""Every record that crosses a trust boundary holds Python's numbers, whatever types it was made from.

A NumPy number computes in its own width: a radius of 16 bits once made the scale of the noise overflow, and
the exact signs of a gradient left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, get_args, get_type_hints

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.federation import (
    Disjoint,
    EpochKind,
    Fixed,
    HiddenRun,
    HiddenWalk,
    Measure,
    Plan,
    Poisson,
    Query,
    Step,
    Walk,
)
from tacit.learning import (
    ALGORITHMS,
    LinearObjective,
    Logistic,
    Multinomial,
    PreconditionedNoisyGD,
    Scaling,
    Settings,
)
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Facts,
    GaussianNoise,
    LaplaceNoise,
    Round,
)
from tacit.means.planes import Planes
from tacit.mechanisms import BinaryRandomizedResponse, KaryRandomizedResponse, PrivUnit, PrivUnitG
from tacit.numerics import settle
from tacit.privacy import Gaussian, Order, PrivacyBudget, ZcdpBudget, calibrate, epsilon_of, guarantee
from tests.contract.mean_cases import ESTIMATORS
from tests.privacy.event_examples import EVENTS

MEASURE = Measure(statistic="a", estimator=AdditiveMean(dim=2), max_radius=0.5)
LOGISTIC = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)


class Whole(int):
    """An integer with a class of its own."""


class Level(IntEnum):
    ONE = 1
    TWO = 2
    THREE = 3


class Floats:
    """Not a number, though it can become one; another one each time."""

    def __float__(self) -> float:
        return math.nan

    def __index__(self) -> int:
        return 1


REALS = (np.float16, np.float32, np.float64, np.longdouble, Fraction, float)
WHOLES = (
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(int, Whole, Level),
)


def same_value(kind: Any, value: float) -> Any:
    """The value in another type; None where that type does not hold it."""
    try:
        with np.errstate(over="ignore"):
            made = kind(value)
    except (OverflowError, ValueError):
        return None
    # NumPy compares in the smaller width: np.float16(0.1) == 0.1.
    return made if type(value)(made) == value else None


def refused(value: float) -> Iterator[Any]:
    """What is not a number, or not one that a record can hold."""
    yield from (True, np.bool_(True), str(value), b"1", None, complex(value), np.complex128(value))
    yield from (Decimal(value), Floats(), np.array(value), np.array([value]), [value], (value,), {value})
    yield from (10**400, 10**5000, -(10**5000), object, np.datetime64(1, "s"))


def example(make: Callable[..., Any], **fields: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    return make, fields


def of_record(record: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """How to make a struct, and the fields that it is made from."""
    return type(record), {name: getattr(record, name) for name in record.__struct_fields__}


RECORDS = {
    **{f"event {name}": of_record(event) for name, event in EVENTS.items()},
    **{f"mean {case.name}": of_record(case.make(4, 1.0)) for case in ESTIMATORS},
    **{f"algorithm {name}": of_record(kind(rounds=3)) for name, kind in ALGORITHMS.items()},
    "public matrix": of_record(PreconditionedNoisyGD(preconditioner=((1.0, 0.25), (0.25, 2.0)))),
    "gaussian": example(GaussianNoise, noise_multiplier=0.5),
    "laplace": example(LaplaceNoise, noise_multiplier=0.5),
    "discrete gaussian": example(DiscreteGaussianNoise, noise_multiplier=0.5, steps=2),
    "discrete laplace": example(DiscreteLaplaceNoise, noise_multiplier=0.5, steps=2),
    "budget": example(PrivacyBudget, epsilon=0.5, delta=0.25),
    "zcdp budget": example(ZcdpBudget, rho=0.5),
    "round": example(Round, n=3, radius=0.5, number=2, parties=2, seed=1),
    "facts": example(Facts, parties=2, radius=0.5, squared_norms=0.25, correlation=0.5),
    "fixed": example(Fixed, size=3),
    "fixed share": example(Fixed, rate=0.5),
    "disjoint": example(Disjoint, size=3),
    "poisson": example(Poisson, rate=0.5),
    "measure": of_record(MEASURE),
    "walk": example(Walk, measures=(MEASURE,), steps=2),
    "hidden walk": example(
        HiddenWalk,
        measures=(Measure(statistic="row", estimator=AdditiveMean(dim=3), max_radius=1.0),),
        steps=2,
        order=Order.RR,
        step_size=0.5,
        smoothness=1.0,
        domain=2.0,
    ),
    "hidden run": example(
        HiddenRun,
        measures=(Measure(statistic="row", estimator=AdditiveMean(dim=3), max_radius=1.0),),
        epochs=(EpochKind(private=0.5, count=2), EpochKind()),
        order=Order.RR,
        step_size=0.5,
        smoothness=1.0,
        l1=0.5,
        l2=0.25,
        ball=2.0,
    ),
    "plan": example(Plan, steps=((Step(measures=(MEASURE,)), 3),), parties=2),
    "binary response": example(BinaryRandomizedResponse, epsilon=0.5),
    "k-ary response": example(KaryRandomizedResponse, epsilon=0.5, values=3),
    "privunit": example(PrivUnit, dim=4, epsilon=0.5, cap_prob=0.5625),
    "privunit, gaussian": example(PrivUnitG, dim=4, epsilon=0.5),
    "planes": example(Planes, dim=4, samples=2, local_epsilons=(0.5, 1.0)),
    "multinomial": example(Multinomial, largest=0.5, classes=3),
    "scaling": example(Scaling, means=(0.5, 0.25), spreads=(1.0, 0.5), longest=2.0),
    "settings": example(Settings, objective=LOGISTIC, clip=0.5, diameter=2.0),
}


def numbers(value: Any) -> Iterator[Any]:
    """All numbers in a field, with how to put another one there."""
    if isinstance(value, tuple):
        for k, part in enumerate(value):
            for number, put in numbers(part):
                yield number, lambda new, k=k, put=put: (*value[:k], put(new), *value[k + 1 :])
    elif type(value) in (int, float):
        yield value, lambda new: new


@pytest.mark.parametrize(("make", "fields"), RECORDS.values(), ids=RECORDS)
def test_a_record_holds_python_numbers_and_refuses_what_is_none(
    make: Callable[..., Any], fields: dict[str, Any]
) -> None:
    plain = make(**fields)
    tried = 0
    for name, field in fields.items():
        for value, put in numbers(field):
            for kind in REALS if type(value) is float else WHOLES:
                other = same_value(kind, value)
                if other is not None:
                    # The text shows the types: repr(np.float64(0.5)) is not that of 0.5.
                    assert repr(make(**{**fields, name: put(other)})) == repr(plain), (name, kind)
                    tried += 1
            for wrong in refused(value):
                if wrong is None and _optional(make, name):
                    continue
                with pytest.raises(ParameterError) as error:
                    make(**{**fields, name: put(wrong)})
                assert len(str(error.value)) < 400
                assert str(error.value).isprintable()
    assert tried or not any(True for field in fields.values() for _ in numbers(field))


def _optional(make: Any, name: str) -> bool:
    return type(None) in get_args(get_type_hints(make)[name])


def test_integers_beyond_a_machine_word_are_no_counts() -> None:
    for value in (2**63, 2**64, -(2**63) - 1):
        for wrong in (value, np.uint64(value) if 0 < value < 2**64 else value):
            with pytest.raises(ParameterError, match="must be a whole number"):
                Fixed(size=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", REALS)
def test_prices_do_not_depend_on_the_type_of_a_number(kind: Any) -> None:
    """In 16 bits, a level of 1 / noise_multiplier is off by up to 5e-4 of itself, and delta = 1e-8 is 0."""
    noise, delta = same_value(kind, 0.75), same_value(kind, 2.0**-14)
    assert epsilon_of(Gaussian(noise), delta) == epsilon_of(Gaussian(0.75), 2.0**-14)
    priced = guarantee(Gaussian(noise), delta, observer="anybody")
    assert repr(priced) == repr(guarantee(Gaussian(0.75), 2.0**-14, observer="anybody"))
    budget = PrivacyBudget(same_value(kind, 0.5), delta)
    assert repr(calibrate(Gaussian, budget)) == repr(calibrate(Gaussian, PrivacyBudget(0.5, 2.0**-14)))


@pytest.mark.parametrize("kind", [*REALS, np.int8, np.uint64, Whole])
def test_a_query_holds_python_numbers(kind: Any) -> None:
    one, at = kind(1), {"w": np.zeros(2)}
    query = Query(1, at, (one,))
    assert type(query.radius[0]) is float
    assert query.digest() == Query(1, at, (1.0,)).digest()
    for wrong in refused(1.0):
        with pytest.raises(RefusalError):
            Query(1, at, (wrong,))
        with pytest.raises(RefusalError):
            Query(wrong, at, (1.0,))


class Matrix(np.ndarray[Any, Any]):
    """An array whose product is another one's sum."""


@pytest.mark.parametrize(
    "point",
    [
        np.ma.masked_array(np.ones(2), mask=[True, False]),
        np.ones(2).view(Matrix),
        memoryview(np.ones(2).tobytes()),
        np.ones(2).tolist(),
        np.ones(2, dtype=np.float16),
        np.ones(2, dtype=np.longdouble),
        np.ones(2, dtype=object),
        np.ones(2, dtype=np.int64),
        np.ones(2, dtype=np.bool_),
        np.ones(2, dtype=np.complex128),
        np.ones(2, dtype=">f8"),
        np.float64(1.0),
        1.0,
    ],
)
def test_a_point_is_a_plain_array(point: Any) -> None:
    with pytest.raises(RefusalError, match="must be an array of finite float32 or float64, of no subclass"):
        Query(0, {"w": point}, (1.0,))


def test_a_query_cannot_be_changed_afterwards() -> None:
    w, at = np.zeros((2, 3)).T, {}
    at["w"] = w
    query = Query(0, at, (1.0,))
    digest = query.digest()
    w[0, 0], at["v"] = 7.0, w
    assert set(query.at) == {"w"}
    assert not query.at["w"].any()
    assert query.at["w"].flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        query.at["w"][0, 0] = 7.0
    with pytest.raises(TypeError):
        query.at["w"] = w  # type: ignore[index]
    assert Query(0, query.at, (1.0,)).digest() == digest


@pytest.mark.parametrize(
    "name", ["", "\ud800", "a\nb", "a\x00", "\x1b[31m", "x" * 201, "x" * 10**6, 3, None, b"w"]
)
def test_a_name_is_a_short_text_of_one_line(name: Any) -> None:
    with pytest.raises(RefusalError, match="the name of a point must be a printable text") as error:
        Query(0, {name: np.zeros(1)}, (1.0,))
    assert len(str(error.value)) < 300
    with pytest.raises(ParameterError, match=r"the name of a statistic|statistic must be a text"):
        msgspec.structs.replace(MEASURE, statistic=name)


def test_texts_and_truth_values_become_pythons() -> None:
    assert type(msgspec.structs.replace(MEASURE, statistic=np.str_("a")).statistic) is str
    for wrong in (["a"], ("a",), None, 3):
        with pytest.raises(ParameterError, match="statistic"):
            msgspec.structs.replace(MEASURE, statistic=wrong)
    plain = Step(measures=(MEASURE,))
    several: list[Any] = [[MEASURE], MEASURE, "a", None, (MEASURE, 3)]
    for other in several:
        with pytest.raises(ParameterError, match="measures"):
            msgspec.structs.replace(plain, measures=other)
    with pytest.raises(ParameterError, match=r"trust must be .*, got 'local'"):
        AdditiveMean(dim=1, trust="local")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="estimator must be a kind of estimator"):
        msgspec.structs.replace(MEASURE, estimator="additive")


def test_settle_reads_every_kind_of_annotation() -> None:
    class Record(msgspec.Struct, frozen=True):
        ratio: float | None = None
        size: int | tuple[int, ...] = 1
        pair: tuple[str, float] = ("a", 1.0)
        sure: bool = False
        anything: object = None

        def __post_init__(self) -> None:
            settle(self)

    given: Any = (np.float32(0.5), (np.int8(1), 2), (np.str_("b"), 3), np.bool_(True), np.float16(1))
    plain = "Record(ratio=0.5, size=(1, 2), pair=('b', 3.0), sure=True, anything=np.float16(1.0))"
    assert repr(Record(*given)) == plain
    for wrong in ({"ratio": "1"}, {"size": 1.0}, {"size": (1.0,)}, {"pair": ("a",)}, {"sure": 1}):
        with pytest.raises(ParameterError, match=rf"{next(iter(wrong))}"):
            Record(**wrong)
