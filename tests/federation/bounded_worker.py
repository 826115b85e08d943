"""Answers thousands of plans that a stranger has changed, in little memory; for `test_bounded_answers.py`.

The limits are made small, and the memory of this process a little larger than they allow: an answer that
takes more than its plan was checked for is a MemoryError here, whatever the estimator.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np

from tacit.errors import TacitError
from tacit.federation import (
    Circle,
    Disjoint,
    Fixed,
    Full,
    Measure,
    OpenSums,
    Plan,
    Poisson,
    Query,
    Silo,
    Step,
    account,
    measures,
)
from tacit.numerics import Array, IntArray
from tacit.privacy import PureDP, Relation, TrustModel, guarantee, neighbours_of
from tests.contract.mean_cases import ESTIMATORS

N, PARTIES = 20, 4
ANSWERED, HELD, ROWS = 2**20, 2**22, 2**20
ROOM = 4 * ANSWERED + 8 * HELD + 16 * 8 * ROWS + 2**26
"""Bytes: what limits allow, sixteen copies of the rows, and 64 MiB for pricing and for Python."""

NUMBERS = (0, 1, 2, 3, 7, 16, 60, 1000, 2**12, 2**16, 2**20, 2**24, 2**27, 2**31 - 1, 2**31, 2**40, 2**62)
FLOATS = (1e-9, 0.01, 0.3, 0.5, 1.0, 2.5, 30.0, 1e6, 1e100)
BATCHES = (Full(), Fixed(size=5), Fixed(rate=0.5), Poisson(rate=0.5), Disjoint(size=2), Fixed(size=2**40))


@dataclass(frozen=True)
class Units:
    """So many units, whose rows are made for the point that they are asked at."""

    count: int = N

    def __len__(self) -> int:
        return self.count

    def take(self, index: IntArray) -> Self:
        return type(self)(len(index))


def row(units: Units, at: Any) -> Array:
    """A row as long as the point: no statistic of tacit lets a server choose its length."""
    return np.full((len(units), len(at["w"])), 0.01)


def changed(estimator: Any, draw: random.Random) -> Any:
    """Return an estimator of which a few numbers are others, or None where it refuses them."""
    fields: dict[str, Any] = {}
    numbers = [
        f for f in msgspec.structs.fields(type(estimator)) if f.name not in ("honest_fraction", "n_min")
    ]
    for field in draw.sample(numbers, 2):
        value = getattr(estimator, field.name)
        if isinstance(value, bool):
            fields[field.name] = not value
        elif isinstance(value, int):
            fields[field.name] = draw.choice(NUMBERS)
        elif isinstance(value, float):
            fields[field.name] = draw.choice(FLOATS)
        elif isinstance(value, tuple):
            fields[field.name] = value * draw.choice((1, 2, 10, 30))
        elif hasattr(value, "steps"):
            fields[field.name] = msgspec.structs.replace(value, steps=draw.choice(NUMBERS))
        elif field.name in ("projection", "encoder"):
            fields[field.name] = draw.choice(("haar", "gaussian", "srht", "orthogonal", "kashin", "hadamard"))
    return msgspec.structs.replace(estimator, **fields)


def as_planned(estimator: Any, parties: int = PARTIES) -> Any:
    """Return an estimator as it stands in plans, which say themselves how many parties there are."""
    if estimator.trust is TrustModel.AGGREGATE:
        return msgspec.structs.replace(estimator, shares=parties)
    return msgspec.structs.replace(estimator, n_min=None) if hasattr(estimator, "n_min") else estimator


def fewest(estimator: Any) -> int:
    """Return how many parties must be there."""
    return {TrustModel.SHUFFLE: 2, TrustModel.AGGREGATE: PARTIES}.get(estimator.trust, 0)


def plan(estimator: Any, draw: random.Random) -> Plan:
    """Return a plan for that estimator, of which other numbers are hostile too, one in three times each."""
    shuffled = estimator.trust is TrustModel.SHUFFLE

    def maybe(usual: Any, *others: Any) -> Any:
        return draw.choice(others) if draw.random() < 1 / 3 else usual

    kind = Step(
        measures=(Measure(statistic="row", estimator=estimator, max_radius=1.0),) * maybe(1, 2, 100),
        batch=maybe(Full(), *BATCHES),
        honest=maybe(20, 1, 40, 2**40) if shuffled else 0,
    )
    return Plan(
        steps=((kind, maybe(1, 3, 2**30, 2**41)),),
        parties=PARTIES,
        trust=estimator.trust,
        delta=1e-6,
        n_min=fewest(estimator),
    )


def answered(made: Plan) -> int:
    """Return the bytes of the first answer to a plan."""
    step, _ = made.kinds[0]
    planned = N if made.neighbours.relation is Relation.ADD_REMOVE else None
    silo = Silo(
        Units(),
        {"row": row},
        planned=planned,
        trusts_server=True,
        trusts_shuffler=True,
        sums=OpenSums(),
        rng=np.random.default_rng(0),
    )
    circle = None
    if made.trust in (TrustModel.SHUFFLE, TrustModel.AGGREGATE):
        circle = Circle(tuple(range(PARTIES)), (N,) * PARTIES, (None,) * PARTIES)
    silo.accept(made)
    dim = step.measures[0].estimator.dim
    if dim > 2**20:  # a server that asks at such a point has sent megabytes itself
        return 0
    return len(silo.answer(Query(0, {"w": np.zeros(dim)}, (1.0,) * len(step.measures)), circle))


def main(seed: int, count: int, limited: bool) -> None:
    """Print how many plans were answered and refused, by estimator, and the longest answer."""
    draw, found, longest = random.Random(seed), Counter[str](), 0  # noqa: S311 - a seeded order of tests
    bare = [case.make(dim, 1.0) for case in ESTIMATORS for dim in (4, 300)]
    kept = [as_planned(one) for one in bare]
    limits = {"MOST_ANSWERED": ANSWERED, "MOST_POOLED": ANSWERED, "MOST_HELD": HELD, "MOST_NUMBERS": ROWS}
    for name, value in limits.items():
        setattr(measures, name, value if limited else 2**62)
    # What prices take is bounded by `work_limit`, and slow: test_hostile_plans.py.
    account._priced = lambda event, _: guarantee(PureDP(1.0, neighbours_of(event)), 0.0, observer="anybody")  # type: ignore[assignment]
    for one in kept:  # what is loaded once, and caches
        answered(plan_of(one))
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: SIM115
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    for k in range(count):
        one = kept[k % len(kept)]
        tag, trust = str(type(one).__struct_config__.tag), one.trust.value
        try:
            size = answered(plan(changed(one, draw), draw))
        except TacitError as error:
            found[f"{tag} {trust} refused"] += 1
            if not str(error).isprintable() or len(str(error)) > 1500:
                raise AssertionError(repr(error)) from error
            continue
        found[f"{tag} {trust} answered"] += 1
        longest = max(longest, size)
    sys.stdout.write(json.dumps({"found": found, "longest": longest}))


def plan_of(estimator: Any) -> Plan:
    """Return a plan that asks for that mean once."""
    shuffled = estimator.trust is TrustModel.SHUFFLE
    kind = Step(
        measures=(Measure(statistic="row", estimator=estimator, max_radius=1.0),), honest=20 * shuffled
    )
    return Plan(
        steps=((kind, 1),), parties=PARTIES, trust=estimator.trust, delta=1e-6, n_min=fewest(estimator)
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "limited")
