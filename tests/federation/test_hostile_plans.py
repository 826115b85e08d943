"""Whatever a stranger calls a plan is read, or refused in one line before anything of its size is made."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, TacitError
from tacit.federation import AnyStep, Fixed, Full, Measure, Plan, Poisson, Silo, Step, account
from tacit.federation.limits import LONGEST_PLAN, MOST_KINDS, MOST_LOCAL_STEPS, MOST_ROUNDS, MOST_STATISTICS
from tacit.means import (
    AdditiveMean,
    BitplaneMean,
    DiscreteGaussianNoise,
    ModularSumMean,
    RandK,
    RotatedMean,
    SampledBinaryMean,
    SignVoteMean,
)
from tacit.means.message import MOST_COORDINATES
from tacit.privacy import TrustModel, work_limit
from tests.contract.mean_cases import ESTIMATORS
from tests.federation.world import GRID, Rows, mean_of, plan_of, rows, step_of

PLAN = plan_of(mean_of(GRID), batch=Fixed(rate=0.5))
TEXT = PLAN.to_toml()
ONE = PLAN.kinds[0][0]


def one_line(error: pytest.ExceptionInfo[ParameterError]) -> None:
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 1500  # some list all that is allowed


# --- as text

TEXTS: dict[str, Any] = {
    "nothing": "",
    "no TOML": "steps = [",
    "no text": b"version = 4",
    "None": None,
    "a number": 3,
    "megabytes": "x" * 10**7,
    "a long comment": "#" * (LONGEST_PLAN + 1),
    "a surrogate": 'trust = "\ud800"',
    "an escaped surrogate": 'trust = "\\ud800"',
    "a zero byte": "trust = '\x00'",
    "deep lists": "steps = " + "[" * 2000 + "]" * 2000,
    "deep tables": "a = " + "{a = " * 2000 + "1" + "}" * 2000,
    "a deep name": "a." * 100_000 + "b = 1",
    "many deep names": ("[" + "a." * 400 + "a]\n") * 2000,
    "a long integer": "parties = 1" + "0" * 5000,
    "a long hexadecimal": "parties = 0x" + "f" * 5000,
    "a long version": "version = 4" + "0" * 4000,
    "a huge float": TEXT.replace("max_radius = 1.0", "max_radius = 1e400"),
    "NaN": TEXT.replace("max_radius = 1.0", "max_radius = nan"),
    "an infinity": TEXT.replace("max_radius = 1.0", "max_radius = inf"),
    "a bool count": TEXT.replace("parties = 1", "parties = true"),
    "a date": TEXT.replace("parties = 1", "parties = 2026-11-22"),
    "another version": TEXT.replace("version = 4", "version = 5"),
    "a true version": TEXT.replace("version = 4", "version = true"),
    "an unknown field": TEXT + "budget = 1.0\n",
    "a field twice": TEXT + "parties = 1\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_texts_are_refused_in_one_line(text: Any) -> None:
    with pytest.raises(ParameterError) as error:
        Plan.from_toml(text)
    one_line(error)


HUGE = (2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**12, 10**100, 10**4000, -1, 0)
LONG = ("", "\\ud800", "a\\u0000b", "\\n", "x" * 10_000)
WORDS = ("true", "1e308", "5e-324", "-0.0", "nan", "inf", "[]", "{}", "'central'", "0.5", "1979-05-27")


def test_every_value_of_a_plan_may_be_replaced_by_a_hostile_one() -> None:
    """2,500 texts: values, keys and brackets replaced, doubled, dropped and cut."""
    values = random.Random(9)  # noqa: S311 - a seeded order of tests
    parts = TEXT.replace("=", " = ").replace(",", " , ").replace("{", " { ").replace("}", " } ").split(" ")
    read, refusals = 0, set()
    for _ in range(2500):
        changed = list(parts)
        for _ in range(values.randrange(1, 4)):
            k = values.randrange(len(changed))
            changed[k] = values.choice(
                [*map(str, HUGE), *(f'"{word}"' for word in LONG), *WORDS, changed[k - 1], ""]
            )
        try:
            plan = Plan.from_toml(" ".join(changed))
        except ParameterError as error:
            refusals.add(str(error))
            continue
        read += 1
        assert Plan.from_toml(plan.to_toml()) == plan
    assert [text for text in refusals if not text.isprintable() or len(text) > 1500] == []
    assert read > 15  # some change nothing, or something that is allowed


# --- as objects

SMALL = AdditiveMean(dim=3, noise=GRID)


def step(**fields: Any) -> AnyStep:
    return step_of(**{"estimator": SMALL, **fields})


def plan(**fields: Any) -> Plan:
    return Plan(**{"steps": ((ONE, 3),), "parties": 1, "delta": 1e-6, **fields})


def measure(**fields: Any) -> Measure:
    return Measure(**{"statistic": "row", "estimator": SMALL, "max_radius": 1.0, **fields})


HOSTILE: dict[str, Any] = {
    "no steps": lambda: plan(steps=()),
    "steps in a list": lambda: plan(steps=[(ONE, 3)]),
    "a step alone": lambda: plan(steps=(ONE,)),
    "a step without a count": lambda: plan(steps=((ONE,),)),
    "three in a step": lambda: plan(steps=((ONE, 3, 3),)),
    "no step in a step": lambda: plan(steps=((None, 3),)),
    "a bool count": lambda: plan(steps=((ONE, True),)),
    "a huge count": lambda: plan(steps=((ONE, 10**5000),)),
    "too many rounds": lambda: plan(steps=((ONE, MOST_ROUNDS), (ONE, 1))),
    "too many rounds by walks": lambda: plan(steps=((step(walks=2**10), 2**31),)),
    "too many kinds": lambda: plan(steps=((ONE, 1),) * (MOST_KINDS + 1)),
    "a bool": lambda: plan(parties=True),
    "huge parties": lambda: plan(parties=10**400),
    "parties beyond 64 bits": lambda: plan(parties=2**64),
    "a float": lambda: plan(parties=1.0),
    "a huge radius": lambda: measure(max_radius=10**400),
    "a bool radius": lambda: measure(max_radius=True),
    "a text radius": lambda: measure(max_radius="1.0"),
    "NaN": lambda: plan(delta=np.float16(np.nan)),
    "trust as a text": lambda: plan(trust="local"),
    "no trust": lambda: plan(trust=None),
    "a version that is not a number": lambda: plan(version="1"),
    "a true version": lambda: plan(version=True),
    "a huge version": lambda: plan(version=10**5000),
    "too many statistics": lambda: step(statistics=("row",) * (MOST_STATISTICS + 1)),
    "a long name": lambda: step(statistics=("x" * 10**7,)),
    "a surrogate": lambda: step(statistics=("\ud800",)),
    "a line break": lambda: step(statistics=("row\nrow",)),
    "no name": lambda: measure(statistic=None),
    "no estimator": lambda: measure(estimator=None),
    "a word for an estimator": lambda: measure(estimator="additive"),
    "no measures": lambda: Step(measures=None),  # type: ignore[arg-type]
    "measures in a list": lambda: Step(measures=[measure()]),  # type: ignore[arg-type]
    "a measure alone": lambda: Step(measures=measure()),  # type: ignore[arg-type]
    "no measure among measures": lambda: Step(measures=(measure(), None)),  # type: ignore[arg-type]
    "a word for a batch": lambda: step(batch="full"),
    "too many steps of a walk": lambda: step(walks=MOST_LOCAL_STEPS + 1),
    "huge steps of a walk": lambda: step(walks=10**400),
    "a bool walk": lambda: step(walks=True),
    "a huge batch": lambda: step(batch=Fixed(size=10**400)),
    "a bool batch": lambda: step(batch=Fixed(size=True)),
    "a rate above 1": lambda: step(batch=Poisson(10**400)),
    "a huge dim": lambda: AdditiveMean(dim=10**12),
    "a dim beyond 64 bits": lambda: SignVoteMean(dim=2**64),
    "one dim too many": lambda: RandK(dim=MOST_COORDINATES + 1, k=1),
    "a bool dim": lambda: AdditiveMean(dim=True),
    "a huge grid": lambda: DiscreteGaussianNoise(1.0, steps=10**400),
    "huge noise": lambda: DiscreteGaussianNoise(10**400),
    "too many samples": lambda: SampledBinaryMean(dim=4, samples=10**12, local_epsilon=1.0),
    "too many symbols": lambda: SampledBinaryMean(
        dim=MOST_COORDINATES, samples=MOST_COORDINATES, local_epsilon=1.0
    ),
    "too many symbols on planes": lambda: BitplaneMean(dim=2**20, samples=2**20, local_epsilons=(1.0, 1.0)),
    "a million planes": lambda: RotatedMean(dim=4, samples=1, local_epsilons=(1.0,) * 10**6),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_hostile_plans_are_refused_before_anything_of_their_size_is_made(make: Any) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ParameterError) as error:
            make()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    one_line(error)
    assert peak < 3 * 10**7  # the hostile texts and tuples themselves


LARGE = {
    "the largest dim": mean_of(GRID, dim=MOST_COORDINATES),
    "the largest binary dim": SampledBinaryMean(dim=MOST_COORDINATES, samples=2**20, local_epsilon=1.0),
    "the finest grid": mean_of(DiscreteGaussianNoise(1.0, steps=2**30)),
    "hardly any noise": mean_of(DiscreteGaussianNoise(1e-9, steps=2**30)),
}


@pytest.mark.parametrize("mean", LARGE.values(), ids=LARGE)
def test_the_largest_plan_is_priced_in_little_memory(mean: Any) -> None:
    silo = Silo(Rows(rows(1, 20)), {"row": lambda units, _: units.values}, trusts_server=True)
    made = plan(steps=((step(estimator=mean), MOST_ROUNDS),))
    tracemalloc.start()
    try:
        price = silo.consider(made)
    except TacitError:
        price = None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert price is None or price.epsilon > 0
    assert peak < 3 * 10**8


@pytest.mark.parametrize(
    ("walks", "batch", "dim"),
    [(2, Full(), 2**28), (2**16, Poisson(0.5), 2**13), (2**14, Full(), 2**14)],
)
def test_no_plan_keeps_a_silo_at_one_answer(walks: int, batch: Any, dim: int) -> None:
    silo = Silo(Rows(rows(1, 20)), {"row": lambda units, _: units.values}, trusts_server=True)
    with pytest.raises(
        ParameterError, match="steps x batch x dim of a walk must be at most 4294967296"
    ) as error:
        silo.accept(plan(steps=((step(estimator=mean_of(GRID, dim=dim), walks=walks, batch=batch), 1),)))
    one_line(error)
    silo.consider(
        plan(steps=((step(estimator=mean_of(GRID, dim=dim // 8), walks=walks, batch=batch), 1),))
        if walks == 2
        else plan(steps=((step(walks=walks), 1),))
    )


def test_a_plan_of_very_many_kinds_is_refused_before_it_is_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = tuple((step(batch=Fixed(rate=0.1 + k / 2000)), 1000) for k in range(MOST_KINDS))
    silo = Silo(Rows(rows(1, 2000)), {"row": lambda units, _: units.values}, trusts_server=True)
    monkeypatch.setattr(account, "guarantee", lambda *_, **__: pytest.fail("it is priced"))
    with pytest.raises(ParameterError, match=r"too many kinds of rounds to price.* too much work") as error:
        silo.accept(plan(steps=kinds))
    one_line(error)
    monkeypatch.undo()
    assert silo.consider(plan(steps=kinds[:5])).epsilon > 0


def test_whoever_allows_more_work_may_price_more_kinds() -> None:
    made = plan(steps=((step(batch=Fixed(rate=0.3)), 5), (step(batch=Fixed(rate=0.6)), 5)))
    silo = Silo(Rows(rows(1, 21)), {"row": lambda units, _: units.values}, trusts_server=True)
    with work_limit(1e4), pytest.raises(ParameterError, match="too many kinds"):
        silo.consider(made)
    with work_limit(1e9):
        assert silo.consider(made).epsilon > 0


# --- every estimator as text


def planned(mean: Any) -> Any:
    """The estimator as a plan takes it: the plan itself says who arrives."""
    return msgspec.structs.replace(mean, n_min=None) if mean.trust is TrustModel.SHUFFLE else mean


PLANNED = {case.name: planned(case.make(4, 1.0)) for case in ESTIMATORS}


def plan_for(mean: Any) -> Plan:
    shuffled = mean.trust is TrustModel.SHUFFLE
    if isinstance(mean, ModularSumMean):
        mean = msgspec.structs.replace(mean, shares=2)
    kind = msgspec.structs.replace(step(estimator=mean), honest=5) if shuffled else step(estimator=mean)
    n_min = 2 if shuffled or isinstance(mean, ModularSumMean) else 0
    return Plan(steps=((kind, 3),), parties=2, trust=mean.trust, delta=1e-6, n_min=n_min)


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_of_any_estimator_is_read_back_equal(name: str) -> None:
    made = plan_for(PLANNED[name])
    again = Plan.from_toml(made.to_toml())
    assert again == made
    assert again.digest() == made.digest()


def test_a_plan_of_any_estimator_with_default_arguments_is_read_back_equal() -> None:
    """What an estimator leaves out has no word in TOML; three of them leave something out by default."""
    left_out = set()
    for mean in PLANNED.values():
        fields = {f.name: f for f in msgspec.structs.fields(type(mean))}
        kept = {"dim", "trust", "neighbours", "noise", "steps"} | {
            name for name, f in fields.items() if f.required
        }
        bare = type(mean)(**{name: getattr(mean, name) for name in kept & set(fields)})
        left_out |= {type(mean).__name__ for name in fields if getattr(bare, name) is None}
        made = plan_for(bare)
        assert Plan.from_toml(made.to_toml()) == made
    assert len(left_out) >= 1
