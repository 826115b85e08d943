"""What rewards cost: exact laws enumerated against the claims, levels behind a shuffler, and refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.bandits import Amplification, Anonymity, RewardNoise, RewardPrivacy, amplified_level
from tacit.errors import ParameterError
from tacit.mechanisms import BinaryRandomizedResponse, discrete_laplace_log_pmf
from tacit.numerics import Array
from tacit.privacy import Part, TrustModel, delta_of, pure_epsilon_of, verify
from tacit.privacy.shuffling.closed_form import paper_level

DELTA = 1e-6
CAPS = {100: -0.842164, 1000: 1.460421, 10**4: 3.763006, 10**5: 6.065591, 10**6: 8.368176}
LEVELS = {
    (100, 0.01): 0.01,
    (100, 2.0): 2.0,
    (1000, 0.01): 0.02001204,
    (1000, 0.1): 0.19255432,
    (1000, 1.0): 1.46042100,
    (1000, 2.0): 2.0,
    (10**4, 0.01): 0.06231980,
    (10**4, 1.0): 3.50371385,
    (10**4, 2.0): 3.76300609,
    (10**5, 0.1): 1.27431538,
    (10**5, 1.0): 5.70079224,
    (10**5, 2.0): 6.06559119,
    (10**6, 0.01): 0.50998044,
    (10**6, 1.0): 7.99152083,
    (10**6, 2.0): 8.36817628,
}


@pytest.mark.parametrize(("parties", "epsilon"), LEVELS)
def test_levels_by_the_closed_form_have_the_tabled_values(parties: int, epsilon: float) -> None:
    """The raw inverse, without the cap and the maximum that the paper leaves out: 1.7637 at 1000."""
    found = amplified_level(epsilon, DELTA, parties, method=Amplification.PAPER)
    assert found == pytest.approx(LEVELS[parties, epsilon], abs=1e-8)
    assert found >= epsilon
    assert found <= max(epsilon, CAPS[parties] + 1e-6)


@pytest.mark.parametrize("parties", [4, 1000, 10**5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_numerical_levels_meet_the_budget_and_beat_the_closed_form(parties: int, epsilon: float) -> None:
    ours = amplified_level(epsilon, DELTA, parties)
    assert ours >= amplified_level(epsilon, DELTA, parties, method=Amplification.PAPER)
    privacy = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=epsilon, delta=DELTA)
    counts = np.array([parties - parties // 2, parties // 2])
    assert privacy.level(counts) == ours
    event = privacy.event(counts, ours)
    assert delta_of(event, epsilon) <= DELTA * (1 + 1e-6)
    if ours > epsilon:
        worse = privacy.event(counts, ours * 1.01)
        assert delta_of(worse, epsilon) > DELTA  # nothing is wasted


def test_the_printed_noise_of_small_budgets_lacks_what_delta_costs() -> None:
    """Remark 6.5.2 says 2 / (n epsilon^2), without 16 ln(4 / delta) and without the width of rewards."""
    n, epsilon, width = 10**6, 1e-4, 2.0
    variance = 2 * (width / paper_level(epsilon, n, DELTA)) ** 2
    printed = 2 / (n * epsilon**2)
    assert variance / printed == pytest.approx(16 * math.log(4 / DELTA) * width**2, rel=0.02)


def test_batches_too_small_to_hide_in_need_no_shuffler() -> None:
    privacy = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=DELTA)
    counts = np.array([2, 2])
    assert privacy.level(counts) == 1.0
    claim = privacy.guarantees([(counts, 1.0)], simulated=False)[0]
    assert 0.999 < claim.epsilon <= 1.0
    assert not any("shuffler" in clause for clause in claim.assumptions)


def _high_laws(bits: int, rewards: tuple[float, ...], level: float) -> tuple[Array, Array]:
    """Return the laws of the noisy number of high rewards of one action, for two values of one reward."""
    grid = np.arange(-200, 201)
    laws = []
    for reward in rewards:
        p = (1 + reward) / 2
        pmf = [np.exp(discrete_laplace_log_pmf(grid - bits - one, 1 / level)) for one in (0, 1)]
        laws.append((1 - p) * pmf[0] + p * pmf[1])
    return laws[0], laws[1]


@pytest.mark.parametrize("level", [0.1, 1.0, 3.0])
def test_central_noise_is_private_by_enumeration(level: float) -> None:
    """All pairs of rewards in [-1, 1], rounding included; noise of half the scale fails."""
    privacy = RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=level)
    claim = pure_epsilon_of(privacy.event(np.array([3]), level))
    assert claim == pytest.approx(level)
    losses, weak = [], []
    for pair in itertools.product((-1.0, -0.4, 0.0, 1.0), repeat=2):
        p, q = _high_laws(2, pair, level)
        losses.append(float(np.abs(np.log(p / q)).max()))
        a, b = _high_laws(2, pair, 2 * level)
        inside = (a > 0) & (b > 0)
        weak.append(float(np.abs(np.log(a[inside] / b[inside])).max()))
    assert max(losses) == pytest.approx(claim, abs=1e-9)
    assert max(weak) > claim * 1.5


def test_the_printed_noise_gives_away_twice_what_it_says() -> None:
    """Rewards in [-1, 1] are 2 apart: Laplace noise of scale 1 / epsilon is 2 epsilon-DP, not epsilon-DP."""
    epsilon, z = 1.0, np.linspace(-6, 6, 101)

    def loss(scale: float) -> float:
        return float((np.abs(z - 1) - np.abs(z + 1)).max() / scale)

    assert loss(1 / epsilon) == pytest.approx(2 * epsilon)
    assert loss(2 / epsilon) == pytest.approx(epsilon)
    noise = RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=epsilon, noise=RewardNoise.LAPLACE)
    assert noise.sum_noise(np.array([5]), epsilon, 2.0).scale == 2 / epsilon


@pytest.mark.parametrize("level", [0.1, 1.0, 5.0])
def test_a_message_is_private_by_enumeration(level: float) -> None:
    flip = BinaryRandomizedResponse(level).flip_prob
    ones = [(1 + r) / 2 * (1 - flip) + (1 - r) / 2 * flip for r in (-1.0, -0.3, 0.0, 1.0)]
    laws = [np.array([1 - p, p]) for p in ones]
    losses = [float(np.abs(np.log(p / q)).max()) for p, q in itertools.product(laws, repeat=2)]
    assert level - 1e-12 <= max(losses) <= level + 1e-12


def _shuffled_law(data: tuple[tuple[int, ...], ...], counts: tuple[int, ...], level: float) -> Array:
    """Return the law of what a server sees, the number of ones for each action, over all dealings."""
    flip = 1 / (1 + math.exp(level))
    places = [a for a, count in enumerate(counts) for _ in range(count)]
    law = np.zeros([count + 1 for count in counts])
    dealings = set(itertools.permutations(places))
    for dealt in dealings:
        sums = [np.ones(1) for _ in counts]
        for rewards, a in zip(data, dealt, strict=True):
            one = 1 - flip if rewards[a] else flip
            sums[a] = np.convolve(sums[a], [1 - one, one])
        law += np.multiply.outer(sums[0], sums[1])
    return np.asarray(law / len(dealings)).ravel()


@pytest.mark.parametrize("counts", [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("level", [0.5, 2.0])
def test_shuffled_and_dealt_messages_are_private_by_enumeration(
    counts: tuple[int, int], level: float
) -> None:
    """All reward functions of all clients, all neighbours; a level twice as high fails."""
    privacy = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=level / 2, delta=0.1)
    event = privacy.event(np.array(counts), level)
    epsilons = np.array([0.0, 0.1, 0.3, 0.8]) * level
    claims = np.array([delta_of(event, e) for e in epsilons])
    functions = list(itertools.product((0, 1), repeat=2))
    exact, weak = np.zeros(4), np.zeros(4)
    for others in itertools.combinations_with_replacement(functions, sum(counts) - 1):
        for found, at in ((exact, level), (weak, 2 * level)):
            laws = [_shuffled_law(((mine), *others), counts, at) for mine in functions]
            for p, q in itertools.permutations(laws, 2):
                gap = np.maximum(p - np.exp(epsilons)[:, None] * q, 0).sum(axis=1)
                np.maximum(found, gap, out=found)
    assert np.all(exact <= claims * (1 + 1e-12))
    assert exact[0] >= 0.75 * claims[0]
    assert np.any(weak > claims)


def test_known_dealings_hide_among_those_who_played_the_same() -> None:
    counts = np.array([3000, 1000])
    known = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=DELTA, anonymity=Anonymity.ACTION)
    assert known.level(counts) == amplified_level(1.0, DELTA, 1000, "2rr")
    laplace = RewardPrivacy(
        trust=TrustModel.SHUFFLE,
        epsilon=1.0,
        delta=DELTA,
        anonymity=Anonymity.ACTION,
        noise=RewardNoise.LAPLACE,
    )
    assert 1.0 < laplace.level(counts) < known.level(counts) * 1.5


def test_each_observer_has_a_guarantee_that_can_be_verified() -> None:
    small, large = np.array([2, 2]), np.array([5000, 5000])
    for trust, delta in ((TrustModel.CENTRAL, 0.0), (TrustModel.LOCAL, 0.0), (TrustModel.SHUFFLE, DELTA)):
        privacy = RewardPrivacy(trust=trust, epsilon=1.0, delta=delta)
        batches = [(counts, privacy.level(counts)) for counts in (small, large)]
        claims = privacy.guarantees(batches, simulated=False)
        for claim in claims:
            verify(claim)
            assert "no client answers more than one round" in claim.assumptions
        assert claims[0].epsilon <= 1.0
        assert claims[0].delta == delta
        part = Part.ALL if trust is TrustModel.SHUFFLE else Part.REWARD
        assert claims[0].neighbours.part is part
        assert len(claims) == (2 if trust is TrustModel.SHUFFLE else 1)
        assert claims[-1].epsilon == pytest.approx(batches[1][1], abs=1e-6)
    nothing = RewardPrivacy().guarantees([(large, math.inf)], simulated=True)[0]
    assert math.isinf(nothing.epsilon)
    assert (
        RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0).guarantees([], simulated=False)[0].epsilon == 0
    )


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"trust": TrustModel.AGGREGATE, "epsilon": 1.0}, "parties must be"),
        ({"trust": "central", "epsilon": 1.0}, "trust"),
        ({"trust": TrustModel.CENTRAL, "epsilon": 0.0}, "epsilon"),
        ({"trust": TrustModel.CENTRAL, "epsilon": math.nan}, "epsilon"),
        ({"trust": TrustModel.CENTRAL, "epsilon": -1.0}, "epsilon"),
        ({"trust": TrustModel.LOCAL, "epsilon": 31.0}, "epsilon"),
        ({"trust": TrustModel.CENTRAL, "epsilon": 1e-20}, "epsilon"),
        ({"trust": TrustModel.CENTRAL, "epsilon": 1e7}, "epsilon"),
        ({"trust": TrustModel.SHUFFLE, "epsilon": 1.0, "delta": 1e-320}, "delta must not be that small"),
        ({"epsilon": 1.0}, "infinite without a trust model"),
        ({"trust": TrustModel.CENTRAL, "epsilon": 1.0, "delta": 1e-6}, "delta"),
        ({"trust": TrustModel.SHUFFLE, "epsilon": 1.0}, "delta"),
        ({"trust": TrustModel.SHUFFLE, "epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"trust": TrustModel.LOCAL, "epsilon": 1.0, "anonymity": Anonymity.ACTION}, "shuffle trust"),
        ({"trust": TrustModel.LOCAL, "epsilon": 1.0, "noise": "discrete "}, "noise"),
    ],
)
def test_budgets_that_mean_nothing_are_refused(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        RewardPrivacy(**wrong)  # type: ignore[arg-type]
