"""Rounds of some of the parties: who is drawn, what it costs, and what a shuffler that forgets may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError, RefusalError
from tacit.federation import (
    Batch,
    Circle,
    Crowd,
    Disjoint,
    DrawnStep,
    Fixed,
    Full,
    InProcess,
    Measure,
    Plan,
    Poisson,
    Query,
    Shuffler,
    Silo,
    Step,
    with_honest,
)
from tacit.federation.answers import encode_answer, open_answer
from tacit.federation.drawn import draw_parties, drawn_by_words
from tacit.means import HadamardMean, Message
from tacit.numerics import Array
from tacit.privacy import ByChance, Drawn, Repeat, Sampled, SelfDrawn, Shuffled, TrustModel
from tests.federation.world import AT, Rows
from tests.statistics import FALSE_ALARM

DIM = 2
SURE = HadamardMean(dim=DIM, local_epsilon=30.0, trust=TrustModel.SHUFFLE, on_violation="clip")
"""A bit that is next to never wrong: what a round shows is who was in it."""

SIX = np.zeros((6, DIM))


def kind(parties: Fixed | Poisson, batch: Batch | None = None, mean: HadamardMean = SURE) -> DrawnStep:
    return DrawnStep(
        measures=(Measure(statistic="row", estimator=mean, max_radius=1.0),),
        batch=Fixed(size=1) if batch is None else batch,
        parties=parties,
    )


def plan_of(
    step: DrawnStep, sizes: Any = (1,) * 6, *, n_min: int | None = None, colluding: int = 0, rounds: int = 3
) -> Plan:
    n_min = len(sizes) if n_min is None else n_min
    return Plan(
        steps=with_honest(((step, rounds),), sizes, n_min=n_min, colluding=colluding),
        parties=len(sizes),
        trust=TrustModel.SHUFFLE,
        n_min=n_min,
        colluding=colluding,
        delta=1e-6,
    )


def row(units: Rows, at: Any) -> Array:
    return units.values


def silos(values: Array = SIX, *, seed: int = 0, down: Callable[[int, int], bool] | None = None) -> InProcess:
    made = [
        Silo(
            Rows(values[k : k + 1]),
            {"row": row},
            name=str(k),
            trusts_shuffler=True,
            rng=np.random.default_rng([seed, k]),
        )
        for k in range(len(values))
    ]
    return InProcess(made, shuffler_rng=np.random.default_rng(1), is_down=down)


def crowd(values: Array = SIX, **options: Any) -> Crowd:
    return Crowd(Rows(values), {"row": row}, trusts_shuffler=True, rng=np.random.default_rng(5), **options)


# --- who is drawn


@pytest.mark.parametrize("parties", [Fixed(size=2), Poisson(rate=0.3)])
def test_both_draws_have_one_law(parties: Fixed | Poisson) -> None:
    rng, step, runs = np.random.default_rng(3), kind(parties), 6000
    counts = np.zeros((2, 16))
    for _ in range(runs):
        words = dict(enumerate(rng.integers(0, 2**64, size=4, dtype=np.uint64).tolist()))
        counts[0, sum(1 << k for k in drawn_by_words(step, words))] += 1
        counts[1, sum(1 << k for k in draw_parties(step, np.arange(4), rng).tolist())] += 1
    sizes = np.array([bin(k).count("1") for k in range(16)])
    law = 0.3**sizes * 0.7 ** (4 - sizes) if step.drawn is None else (sizes == 2) / 6
    assert not counts[:, law == 0].any()
    for found in counts[:, law > 0]:
        assert stats.chisquare(found, runs * law[law > 0]).pvalue > FALSE_ALARM


def test_the_smallest_words_are_drawn_and_ties_are_broken() -> None:
    assert drawn_by_words(kind(Fixed(size=2)), {0: 9, 1: 4, 2: 4, 3: 4}) == [1, 2]
    half = kind(Poisson(rate=0.5))
    assert drawn_by_words(half, {0: 2**63, 1: 2**63 - 1, 2: 2**64 - 1}) == [1]
    assert drawn_by_words(kind(Poisson(rate=1.0)), {0: 2**64 - 1, 1: 0}) == [0, 1]


def test_a_shuffler_that_forgets_draws_the_same_again() -> None:
    plan = plan_of(kind(Fixed(size=3)))
    federation = silos(np.random.default_rng(0).dirichlet(np.ones(DIM), 6))
    federation.open(plan)
    query = Query(0, AT, (1.0,))
    circle = Circle(tuple(range(6)), (1,) * 6, (None,) * 6)
    answers = {k: party.answer(query, circle) for k, party in enumerate(federation._parties)}
    batches = [
        Shuffler(plan, rng=np.random.default_rng(seed)).release(query, circle, answers) for seed in range(4)
    ]
    seen = {tuple(sorted(np.concatenate([m.payload for m in one.messages[0]]).tolist())) for one in batches}
    assert len(seen) == 1
    assert (batches[0].rows, batches[0].parties) == (3, 3)


def test_answers_have_one_length_and_a_word() -> None:
    plan = plan_of(kind(Fixed(size=3)))
    federation = silos()
    federation.open(plan)
    query, circle = Query(0, AT, (1.0,)), Circle(tuple(range(6)), (1,) * 6, (None,) * 6)
    answers = {k: party.answer(query, circle) for k, party in enumerate(federation._parties)}
    assert len({len(answer) for answer in answers.values()}) == 1
    words = [open_answer(answer, party=0)[-1][0].payload.item() for answer in answers.values()]
    assert len(set(words)) == 6
    shuffler = Shuffler(plan, rng=np.random.default_rng(0))
    bound = msgspec.msgpack.decode(answers[0])["bound"]
    sent, (word,) = open_answer(answers[0], party=0)
    wide = Message(payload=np.array([1, 2], dtype=np.int64), width=32)
    assert len(wide.to_bytes()) == len(word.to_bytes())
    answers[0] = encode_answer((tuple(m.to_bytes() for m in sent), (wide.to_bytes(),)), bound)
    with pytest.raises(ParameterError, match="one word of 64 bits"):
        shuffler.release(query, circle, answers)


# --- what is estimated


@pytest.mark.parametrize("parties", [Fixed(size=2), Poisson(rate=0.1)])
@pytest.mark.parametrize("make", [silos, crowd])
def test_the_mean_is_that_of_those_who_were_drawn(make: Any, parties: Fixed | Poisson) -> None:
    values = np.tile([1.0, 0.0], (6, 1))
    ask = make(values).open(plan_of(kind(parties), rounds=40))
    found = np.array([ask(r, AT, (1.0,))[0] for r in range(40)])
    empty = found[:, 0] == 0
    assert found[~empty, 0] == pytest.approx(1.0)
    assert ask.traffic.skipped == empty.sum()
    assert empty.any() == isinstance(parties, Poisson)  # 0.9^6 of 40 rounds


# --- what it costs


def test_prices() -> None:
    mean = msgspec.structs.replace(SURE, local_epsilon=1.0)

    def event(step: DrawnStep, sizes: Any = (4,) * 6, **fields: Any) -> Any:
        priced = plan_of(step, sizes, **fields).event([sizes[0]], TrustModel.SHUFFLE)
        assert isinstance(priced, Repeat)
        return priced.part

    bit = "2rr"
    assert event(kind(Fixed(size=3), mean=mean)) == Drawn(
        Shuffled(1.0, 3, bit), 3 / 24, clients=6, drawn=3, records=4
    )
    assert event(kind(Fixed(size=3), mean=mean), n_min=5, colluding=1) == Drawn(
        Shuffled(1.0, 2, bit), 3 / 16, clients=4, drawn=3, records=4
    )
    assert event(kind(Fixed(size=3), Fixed(size=2), mean)) == ByChance(
        (Sampled(Shuffled(1.0, 6, bit), 0.5),), (0.5,)
    )
    assert event(kind(Fixed(size=3), Full(), mean)) == ByChance((Shuffled(1.0, 12, bit),), (0.5,))
    # Of silos of several sizes the smallest batches hide, and the largest share is sampled.
    assert event(kind(Fixed(size=2), Full(), mean), (1, 3, 5)) == ByChance((Shuffled(1.0, 4, bit),), (2 / 3,))
    own = event(kind(Poisson(rate=0.5), Fixed(size=2), mean), n_min=5, colluding=1)
    assert isinstance(own, SelfDrawn)
    assert (own.clients, own.rate) == (4, 0.5)
    assert {part.part.parties for part in own.parts} <= {2, 4, 6, 8}  # type: ignore[attr-defined]
    alone = plan_of(kind(Fixed(size=3), mean=mean), (4,) * 6).event([4], TrustModel.LOCAL)
    assert isinstance(alone.part, Sampled)  # type: ignore[attr-defined]  # of its records, not of parties


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda: kind(Fixed(rate=0.5)), "need a size"),
        (lambda: kind(Poisson(size=2)), "need a rate"),
        (lambda: kind(Fixed(size=2), Disjoint(size=1)), "disjoint"),
        (lambda: kind(Fixed(size=2), mean=HadamardMean(dim=DIM, local_epsilon=1.0)), "shuffle trust only"),
        (lambda: plan_of(kind(Fixed(size=7))), "at most n_min"),
        (lambda: plan_of(kind(Fixed(size=5)), n_min=4), "at most n_min"),
        (lambda: plan_of(kind(Fixed(size=2)), colluding=2), "above the 2 that may collude"),
        (lambda: _relabelled(among=7), "among must be from 1"),
        (lambda: _relabelled(among=0), "among must be from 1"),
        (lambda: _relabelled(colluding=0), "colluding must be at least"),
        (lambda: silos().open(_relabelled(honest=4)), "honest must be at most"),
    ],
)
def test_rejects(change: Callable[[], object], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        change()


def _relabelled(**fields: int) -> Plan:
    """A plan whose price counts on something else."""
    plan = plan_of(kind(Fixed(size=3)), colluding=1)
    ((step, count),) = plan.steps
    assert isinstance(step, DrawnStep)
    return msgspec.structs.replace(plan, steps=((msgspec.structs.replace(step, **fields), count),))


def test_too_few_arrive() -> None:
    ask = silos(down=lambda _r, k: k == 0).open(plan_of(kind(Fixed(size=2))))
    assert not ask(0, AT, (1.0,))[0].any()
    assert ask.traffic.skipped == 1
    with pytest.raises(RefusalError, match="is not released"):
        Shuffler(plan_of(kind(Fixed(size=2))), rng=np.random.default_rng(0)).release(
            Query(0, AT, (1.0,)), Circle((0, 1), (1, 1), (None, None)), {0: b"", 1: b""}
        )


def test_a_plan_reads_back_and_steps_keep_their_form() -> None:
    for step in (kind(Fixed(size=2)), kind(Poisson(rate=0.3), Full())):
        plan = plan_of(step)
        assert Plan.from_toml(plan.to_toml()) == plan
    assert "parties" not in msgspec.to_builtins(Step(measures=kind(Fixed(size=2)).measures))
