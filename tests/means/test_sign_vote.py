"""Majority votes on signs: counted by hand, published totals enumerated, prices for a flip of all signs."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.means import (
    DiscreteGaussianNoise,
    Facts,
    GaussianNoise,
    LaplaceNoise,
    Message,
    NoNoise,
    Round,
    SignVoteMean,
)
from tacit.numerics import Array
from tacit.privacy import DiscreteGaussian, Gaussian, Neighbours, NonPrivate, Relation, TrustModel
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM, z_bound

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
RELATIONS = list(Relation)
ROUND = Round(n=6, radius=2.0, parties=3)
EPSILONS = np.array([0.0, 0.1, 0.3, 0.7, 1.0, 1.5, 2.5])


def votes(*signs: list[int]) -> list[Message]:
    """One message of each party."""
    return [
        Message(payload=np.minimum(np.array(s, dtype=np.int64), 0), width=1, sender=party)
        for party, s in enumerate(signs)
    ]


# Counting


def test_the_majority_of_each_coordinate_at_the_length_of_the_radius() -> None:
    mean, length = SignVoteMean(dim=4, on_violation="clip"), 2.0 / math.sqrt(4)
    found = mean.decode(votes([1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]), ROUND)
    np.testing.assert_array_equal(found, np.array([1, -1, -1, -1]) * length)
    tied = mean.decode(votes([1, 1, -1, -1], [1, -1, 1, -1]), ROUND)
    np.testing.assert_array_equal(tied, np.array([1, 0, 0, -1]) * length)
    assert np.linalg.norm(found) == pytest.approx(2.0)
    assert np.linalg.norm(mean.estimate(np.ones((6, 4)), Round(n=6, radius=0.0), rng=simulated(0))) == 0


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_parties_send_the_signs_of_their_sums(trust: TrustModel) -> None:
    mean, rows = (
        SignVoteMean(dim=3, trust=trust, on_violation="clip"),
        np.array([[3.0, 0.1, -0.2], [-1.0, 0.1, -0.1]]),
    )
    (message,) = mean.encode(rows, ROUND, party=7, rng=simulated(0))
    assert message.payload.tolist() == [0, 0, -1]
    assert (message.width, message.sender, len(message.to_bytes())) == (1, 7, 12)
    assert mean.bits_per_party(2) == 96
    # Rows are clipped before they are added: the long one weighs no more than the radius.
    (clipped,) = mean.encode(
        np.array([[9e9, 0, 0], [-2, 0, 0], [-1, -1, -1]]), ROUND, party=0, rng=simulated(0)
    )
    assert clipped.payload.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_coins_are_drawn_whether_needed_or_not(trust: TrustModel) -> None:
    """Else the next noise, or the time, would tell that a coordinate was zero."""
    mean, states = SignVoteMean(dim=3, trust=trust, on_violation="clip"), []
    for rows in (np.ones((2, 3)), np.zeros((2, 3)), np.array([[1.0, 0, -1]] * 2)):
        rng = simulated(5, "coins")
        mean.encode(rows, ROUND, party=0, rng=rng)
        states.append(rng.random())
    assert len(set(states)) == 1


def test_a_blank_row_turns_no_vote() -> None:
    """Floats added in other groups may round to another sign: a sampled blank record would be seen."""
    mean, rng, turned = SignVoteMean(dim=1, trust=CENTRAL, on_violation="clip"), simulated(3, "blank"), 0
    for _ in range(300):
        rows = rng.uniform(-1, 1, (int(rng.integers(2, 40)), 1))
        rows = np.concatenate([rows, -rows[rng.permutation(len(rows))]])
        more = np.insert(rows, int(rng.integers(len(rows))), 0.0, axis=0)
        turned += bool(np.sign(rows.sum(axis=0)) != np.sign(more.sum(axis=0)))
        sent = [mean.encode(x, ROUND, party=0, rng=simulated(1))[0].payload[0] for x in (rows, more)]
        assert sent[0] == sent[1]
    assert turned > 0


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_a_zero_is_a_fair_coin(trust: TrustModel) -> None:
    dim = 20_000
    mean, rng = SignVoteMean(dim=dim, trust=trust), simulated(1, "coins")
    (message,) = mean.encode(np.zeros((0, dim)), ROUND, party=0, rng=rng)
    assert abs(message.payload.mean() + 0.5) < z_bound(2) * 0.5 / math.sqrt(dim)
    # Of two coins, half are tied.
    found = mean.estimate(np.zeros((2, dim)), Round(n=2, radius=1.0, parties=2), rng=rng)
    tied = float(np.mean(found == 0))
    assert abs(tied - 0.5) < z_bound(2) * 0.5 / math.sqrt(dim)
    assert abs(np.sign(found).mean()) < z_bound(2) * math.sqrt(0.5 / dim)


def test_both_paths_have_the_exact_law_of_a_majority_of_noisy_signs() -> None:
    rows, z, trials = np.array([[0.9], [-0.5], [0.2]]), 0.6, 20_000
    facts, mean = Round(n=3, radius=1.0, parties=3), SignVoteMean(dim=1, noise=GaussianNoise(z))
    up = stats.norm.cdf(rows[:, 0] / (2 * z))
    outcomes = list(product([0, 1], repeat=3))
    exact = sum(np.prod(np.where(o, up, 1 - up)) for o in outcomes if sum(o) >= 2)
    rng = simulated(2, "law")
    wide, copies = SignVoteMean(dim=trials, noise=GaussianNoise(z)), Round(n=3, radius=1.0, parties=3)
    # A wide sum needs no rows that long: the noise depends on the radius only.
    sent = [
        wide.encode_sum(np.full(trials, x[0]), rows=1, round=copies, party=p, rng=rng)[0]
        for p, x in enumerate(rows)
    ]
    wire = np.sign(wide.decode(sent, copies))
    found = np.array([np.sign(mean.estimate(rows, facts, rng=rng))[0] for _ in range(trials)])
    for signs in (wire, found):
        tolerance = z_bound(2) * math.sqrt(exact * (1 - exact) / trials)
        assert abs(np.mean(signs > 0) - exact) < tolerance
        assert not np.any(signs == 0)
    assert 0.1 < exact < 0.9


def test_one_party_outweighs_no_other() -> None:
    rows = np.array([[-9e9, -9e9], [1e-9, 1e-9], [1e-9, 1e-9]])
    found = SignVoteMean(dim=2, on_violation="clip").estimate(
        rows, Round(n=3, radius=1.0, parties=3), rng=simulated(3)
    )
    assert np.all(found > 0)


def test_errors_are_bounds() -> None:
    rng, dim = simulated(4, "rows"), 3
    one = Facts(parties=1, radius=2.0)
    mean = SignVoteMean(dim=dim, noise=GaussianNoise(0.3))
    assert mean.error(5, one).bias == pytest.approx(2.0 * math.sqrt(2))
    assert mean.error(5, Facts(parties=3, radius=2.0)).bias == 4.0
    assert mean.error(5, one).variance == 4.0
    for _ in range(200):
        row = rng.normal(size=dim)
        row *= 2.0 / np.linalg.norm(row)
        expected = (2 * stats.norm.cdf(row / (0.3 * 2 * 2)) - 1) * 2.0 / math.sqrt(dim)
        assert np.linalg.norm(expected - row) <= mean.error(1, one).bias
    # Three parties, two of them with next to nothing: the majority points away from the mean.
    rows = np.array([[-2.0], [1e-9], [1e-9]])
    found = SignVoteMean(dim=1, on_violation="clip").estimate(
        rows, Round(n=3, radius=2.0, parties=3), rng=rng
    )
    assert (
        2.6 < abs(found[0] - rows.mean()) <= SignVoteMean(dim=1).error(3, Facts(parties=3, radius=2.0)).bias
    )


# Prices


@pytest.mark.parametrize("relation", RELATIONS)
def test_local_signs_cost_what_the_noisy_sum_costs(relation: Relation) -> None:
    neighbours = Neighbours(relation)
    sensitivity = 2 if relation is Relation.REPLACE_ONE else 1
    for trust in TrustModel:
        plain = SignVoteMean(dim=5, noise=GaussianNoise(1.5), neighbours=neighbours).event(9, trust)
        assert plain == Gaussian(1.5, neighbours)
        grid = DiscreteGaussianNoise(1.5, steps=50)
        event = SignVoteMean(dim=5, noise=grid, neighbours=neighbours).event(9, trust)
        assert event == grid.event(9, 5, sensitivity=sensitivity, neighbours=neighbours)
        assert isinstance(SignVoteMean(dim=5, neighbours=neighbours).event(9, trust), NonPrivate)


@pytest.mark.parametrize("relation", RELATIONS)
def test_central_votes_are_priced_for_a_flip_of_all_signs_whatever_the_relation(relation: Relation) -> None:
    neighbours, grid = Neighbours(relation), DiscreteGaussianNoise(1.5, steps=50)
    mean = SignVoteMean(dim=5, noise=grid, trust=CENTRAL, neighbours=neighbours)
    event = mean.event(9, CENTRAL)
    assert event == grid.event(9, 5, sensitivity=2, neighbours=neighbours)
    assert isinstance(event, DiscreteGaussian)
    assert event.std == 1.5 * 2 * 50
    assert event.sensitivity >= 2 * math.sqrt(5) * round(50 / math.sqrt(5))
    for observer in (LOCAL, TrustModel.SHUFFLE):
        assert isinstance(mean.event(9, observer), NonPrivate)


def test_one_record_that_is_blanked_out_flips_all_signs_of_its_party() -> None:
    mean = SignVoteMean(dim=8, trust=CENTRAL, on_violation="clip", neighbours=Neighbours(Relation.ZERO_OUT))
    rows = np.array([np.full(8, -1e-9), np.full(8, 1.0)])
    (full,), (blank,) = (
        mean.encode(x, ROUND, party=0, rng=simulated(0)) for x in (rows, rows * np.array([[1], [0]]))
    )
    assert np.all(full.payload == 0)
    assert np.all(blank.payload == -1)


def central_law(total: tuple[int, ...], *, z: float, steps: int, spread: float = 2.0) -> Array:
    """Probabilities of the published signs in {-1, 0, 1}^d for a vote total, in the order of `product`."""
    dim = len(total)
    sigma, vote = z * spread * steps, round(steps / math.sqrt(dim))
    k = np.arange(-int(40 * sigma) - 9 * steps, int(40 * sigma) + 9 * steps + 1)
    mass = np.exp(-(k**2) / (2 * sigma**2))
    mass /= mass.sum()
    single = [np.array([mass[np.sign(k + t * vote) == s].sum() for s in (-1, 0, 1)]) for t in total]
    law = single[0]
    for other in single[1:]:
        law = np.outer(law, other).ravel()
    return law


def worst(dim: int, parties: int, *, z: float, steps: int, spread: float = 2.0) -> Array:
    """Largest divergence at EPSILONS between totals that differ in one party's votes."""
    signs = list(product([-1, 1], repeat=dim))
    laws = {
        total: central_law(total, z=z, steps=steps, spread=spread)
        for total in product(range(-parties, parties + 1, 2), repeat=dim)
    }
    others = (
        {tuple(np.sum(o, axis=0).tolist()) for o in product(signs, repeat=parties - 1)}
        if parties > 1
        else {(0,) * dim}
    )
    found = np.zeros(EPSILONS.size)
    for rest in others:
        for a, b in product(signs, repeat=2):
            p, q = (laws[tuple(int(r + s) for r, s in zip(rest, x, strict=True))] for x in (a, b))
            found = np.maximum(found, [np.maximum(p - math.exp(e) * q, 0).sum() for e in EPSILONS])
    return found


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("dim", "steps"), [(1, 1), (1, 7), (2, 2), (2, 9)])
@pytest.mark.parametrize("parties", [1, 2, 3])
def test_no_vote_is_easier_to_see_in_what_is_published_than_claimed(
    dim: int, steps: int, parties: int, relation: Relation
) -> None:
    noise = DiscreteGaussianNoise(1.2, steps=steps)
    mean = SignVoteMean(dim=dim, noise=noise, trust=CENTRAL, neighbours=Neighbours(relation))
    event = mean.event(parties, CENTRAL)
    assert isinstance(event, DiscreteGaussian)
    claimed = event.curve().delta(EPSILONS)
    assert np.all(worst(dim, parties, z=1.2, steps=steps) <= claimed + 1e-12)
    assert np.any(worst(dim, parties, z=0.3, steps=steps) > claimed + 0.01)  # a quarter of the noise is seen


def test_noise_for_one_radius_would_break_the_claim() -> None:
    # What zero-out neighbours cost a sum is too little for votes: they flip, and do not just vanish.
    claimed = DiscreteGaussianNoise(1.2, steps=40).event(
        1, 1, sensitivity=1, neighbours=Neighbours(Relation.ZERO_OUT)
    )
    assert isinstance(claimed, DiscreteGaussian)
    assert np.any(worst(1, 1, z=1.2, steps=40, spread=1.0) > claimed.curve().delta(EPSILONS) + 0.1)


def test_what_is_published_follows_the_law_that_was_enumerated() -> None:
    mean = SignVoteMean(dim=2, noise=DiscreteGaussianNoise(0.4, steps=3), trust=CENTRAL)
    rng, trials = simulated(5, "published"), 5000
    sent = votes([1, 1], [1, -1], [1, 1])
    seen = np.array([np.sign(mean.decode(sent, ROUND, rng=rng)) for _ in range(trials)])
    index = (3 * (seen[:, 0] + 1) + seen[:, 1] + 1).astype(int)
    law = central_law((3, 1), z=0.4, steps=3)
    cells = law * trials > 5
    observed = np.bincount(index, minlength=9)
    expected = np.append(law[cells], law[~cells].sum()) * trials
    got = np.append(observed[cells], observed[~cells].sum())
    assert stats.chisquare(got, expected * trials / expected.sum()).pvalue > FALSE_ALARM
    wrong = central_law((3, 1), z=0.2, steps=3)
    assert stats.chisquare(got[:-1], wrong[cells] / wrong[cells].sum() * got[:-1].sum()).pvalue < FALSE_ALARM


# Refusals


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dim": 0}, "dim must be a whole number from 1"),
        ({"trust": TrustModel.SHUFFLE}, "trust must be TrustModel.LOCAL or TrustModel.CENTRAL"),
        ({"trust": "local"}, "trust must be TrustModel.LOCAL or TrustModel.CENTRAL"),
        ({"noise": LaplaceNoise(1.0)}, "noise must be a NoNoise or GaussianNoise or DiscreteGaussianNoise"),
        ({"neighbours": "record"}, "neighbours must be a Neighbours"),
        (
            {"dim": 100, "noise": DiscreteGaussianNoise(1.0, steps=4), "trust": CENTRAL},
            r"steps must be more than sqrt\(dim\) / 2",
        ),
    ],
)
def test_bad_parameters_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        SignVoteMean(**{"dim": 3, **values})


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_messages_that_no_party_can_have_written_are_refused(trust: TrustModel) -> None:
    mean = SignVoteMean(dim=2, trust=trust)
    good = votes([1, -1], [1, 1])
    with pytest.raises(ParameterError, match="at least one message"):
        mean.decode([], ROUND)
    with pytest.raises(ParameterError, match="at most one message of each sender"):
        mean.decode([good[0], good[0]], ROUND)
    for payload, width in (([1, 0], 2), ([0, 0], 8), ([-2, 0], 1), ([3, 0], 1)):
        stuffed = Message(payload=np.array(payload), width=width, sender=9)
        with pytest.raises(ParameterError, match="entries of one bit"):
            mean.decode([*good, stuffed], ROUND)
    with pytest.raises(ParameterError, match="label 0"):
        mean.decode([*good, Message(payload=np.array([0, 0]), width=1, label=7, sender=9)], ROUND)
    nameless = Message(payload=np.array([0, 0]), width=1)
    if trust is CENTRAL:  # two of them might be of one party
        with pytest.raises(ParameterError, match="needs the sender of every message"):
            mean.decode([*good, nameless], ROUND)
    with pytest.raises(ParameterError, match="must hold 2 numbers"):
        mean.decode([Message(payload=np.zeros(2), sender=0)], ROUND)


def test_a_server_that_adds_noise_needs_randomness() -> None:
    noisy = SignVoteMean(dim=2, noise=GaussianNoise(1.0), trust=CENTRAL)
    with pytest.raises(ParameterError, match="decode needs rng under central trust"):
        noisy.decode(votes([1, 1]), ROUND)
    assert SignVoteMean(dim=2, noise=NoNoise(), trust=CENTRAL).decode(votes([1, 1]), ROUND).all()


def test_sums_of_another_form_are_refused() -> None:
    grid = SignVoteMean(dim=2, noise=DiscreteGaussianNoise(1.0))
    for total in (np.zeros(1), np.zeros(3), np.zeros((2, 1))):
        with pytest.raises(ParameterError, match="clipped_sum must have shape"):
            grid.encode_sum(total, rows=1, round=ROUND, party=0, rng=simulated(0))
    with pytest.raises(ParameterError, match="must be float64"):
        grid.encode_sum(np.zeros(2, dtype=np.float32), rows=1, round=ROUND, party=0, rng=simulated(0))
    with pytest.raises(ParameterError, match=r"rows must have shape \(k, 2\)"):
        grid.encode(np.zeros((4, 3)), ROUND, party=0, rng=simulated(0))
