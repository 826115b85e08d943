"""What whole parties pay: closed values, the counterexample to the printed guarantee, samples, whole runs."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError, PlanWarning, PrivacyWarning
from tacit.federation import Full, Poisson, Query
from tacit.learning import (
    AdaPeD,
    FedAvg,
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    Records,
    Settings,
    adaped_event,
)
from tacit.learning.personal.party_rounds import PERSONAL_ROUND
from tacit.learning.preparation import prepare
from tacit.learning.training import silo_for, silos_for, train
from tacit.ledger import Ledger
from tacit.literature import adaped_rdp_printed
from tacit.means import AdditiveMean
from tacit.numerics import Array
from tacit.privacy import (
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    Replaced,
    TrustModel,
    Unit,
    delta_of,
    epsilon_of,
    renyi_of,
)
from tests.learning.attacks import LOOSE, Overheard, parted, quieter

NOISE: dict[str, Any] = {"clip": 0.7, "std": 3.0, "psi_clip": 0.4, "psi_std": 2.0}
PARTY = Neighbours(unit=Unit.PARTY)


def divergence(alpha: float, **options: Any) -> float:
    """The Renyi divergence of order alpha."""
    return float(renyi_of(adaped_event(**{"steps": 60, "local_steps": 10, **NOISE, **options}), [alpha])[0])


@pytest.mark.parametrize(("relation", "moved"), [(Relation.REPLACE_ONE, 2), (Relation.ZERO_OUT, 1)])
def test_the_closed_values(relation: Relation, moved: int) -> None:
    ratios = (0.7 / 3) ** 2 + (0.4 / 2) ** 2
    for alpha in (2.0, 7.5):
        alone = 6 * alpha * moved**2 * 10 * ratios / 2
        assert divergence(alpha, view="server", relation=relation) == pytest.approx(alone, rel=1e-9)
        hidden = divergence(alpha, view="aggregate", parties=20, colluding=4, relation=relation)
        assert hidden == pytest.approx(alone / 16, rel=1e-9)
    # All but one of them collude: what the server sees of a message alone.
    last = divergence(3.0, view="aggregate", parties=20, colluding=19, relation=relation)
    assert last == pytest.approx(divergence(3.0, view="server", relation=relation), rel=1e-9)


def test_more_steps_between_rounds_cost_the_same_in_all_and_the_print_halves() -> None:
    assert divergence(2.0, view="server", local_steps=20) == pytest.approx(divergence(2.0, view="server"))
    printed = [printed_rdp(steps=60, local_steps=tau, parties=5, of=5, **NOISE) for tau in (10, 20)]
    assert printed[1] == pytest.approx(printed[0] / 2)
    # 6 (K/n)^2 (T/tau) alpha (C1^2 / sigma1^2 + C2^2 / sigma2^2) / K, with K = 5 of n = 15.
    ratios = (0.7 / 3) ** 2 + (0.4 / 2) ** 2
    some = printed_rdp(alpha=3.0, steps=60, local_steps=10, parties=5, of=15, **NOISE)
    assert some == pytest.approx(6 / 9 * 6 * 3 * ratios / 5)


def printed_rdp(alpha: float = 2.0, **options: Any) -> float:
    with pytest.warns(PrivacyWarning, match="unsound"):
        return adaped_rdp_printed(alpha, **options)


@pytest.mark.parametrize("tau", [1, 3, 4, 10])
def test_the_printed_guarantee_is_below_the_divergence_of_an_exact_run(tau: int) -> None:
    """One party of one, C1 = sigma1 = 1: the sum of tau gradients +1 or -1 with noise of variance tau."""
    alpha = 2.0
    exact = alpha * (2 * tau) ** 2 / (2 * tau)  # of N(tau, tau) and N(-tau, tau)
    one = {"clip": 1.0, "std": 1.0, "psi_clip": 1e-6, "psi_std": 1e3}
    printed = printed_rdp(alpha, steps=tau, local_steps=tau, parties=1, of=1, **one)
    assert printed == pytest.approx(6 * alpha)
    assert (exact > printed) == (tau >= 4)
    assert divergence(alpha, view="server", steps=tau, local_steps=tau, **one) == pytest.approx(exact)
    removed = alpha * tau / 2
    assert (removed > printed) == (tau >= 13)
    assert divergence(
        alpha, view="server", steps=tau, local_steps=tau, relation=Relation.ZERO_OUT, **one
    ) == pytest.approx(removed)


def test_outsiders_pay_less_by_secret_coins_and_only_for_what_is_proven() -> None:
    options: dict[str, Any] = {"steps": 600, "local_steps": 10, "parties": 17, **NOISE}
    zero = Relation.ZERO_OUT
    seen = epsilon_of(adaped_event(view="aggregate", relation=zero, **options), 1e-5)
    hidden = epsilon_of(adaped_event(view="outsiders", rate=0.33, relation=zero, **options), 1e-5)
    assert hidden < 0.5 * seen
    # A party that is replaced: what methods of whole parties are priced by, for steps of the same length.
    event = adaped_event(view="outsiders", rate=0.33, **options)
    length = math.sqrt(10) * math.hypot(0.7 / 3, 0.4 / 2)
    noise = Gaussian(math.sqrt(17) / length, Neighbours(Relation.ZERO_OUT, Unit.PARTY))
    assert event == Repeat(Replaced(noise, 0.33), 60)
    assert hidden < epsilon_of(event, 1e-5) < epsilon_of(adaped_event(view="aggregate", **options), 1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"std": 0.0}, "std must be"),
        ({"psi_clip": 0.0}, "psi_clip must be"),
        ({"clip": -1.0}, "clip must be"),
        ({"colluding": 3, "parties": 3, "view": "aggregate"}, "colluding must be below"),
        ({"rate": 0.5}, "rate is for"),
        ({"relation": Relation.ADD_REMOVE}, "relation must be"),
        ({"view": "nobody"}, "view must be"),
    ],
)
def test_what_has_no_price_is_refused(options: dict[str, Any], said: str) -> None:
    known: dict[str, Any] = {"view": "server", "steps": 20, "local_steps": 10, **NOISE}
    with pytest.raises(ParameterError, match=said):
        adaped_event(**{**known, **options})


def test_a_last_round_that_never_ends_is_said() -> None:
    with pytest.warns(PlanWarning, match="does not divide"):
        event = adaped_event(view="server", steps=25, local_steps=10, **NOISE)
    assert event == adaped_event(view="server", steps=20, local_steps=10, **NOISE)
    with pytest.raises(ParameterError, match="parties must be at most"):
        adaped_rdp_printed(2.0, steps=1, local_steps=1, parties=3, of=2, **NOISE)


# A state that remembers secret samples


def test_a_state_that_remembers_its_secret_coins_costs_no_more_than_the_sample() -> None:
    """Two rounds of a statistic that goes by what it was in: the exact law of both answers, on a grid.

    A party left out sends noise. One that is there sends row r in a round that it is in, where r depends on
    whether it was in the one before and on what was answered: the worst signs, chosen for either outcome.
    """
    z, q = 1.0, 0.4
    x = np.linspace(-7, 8, 601)
    step = x[1] - x[0]
    law = stats.norm(scale=z).pdf
    claimed = adaped_event(
        view="outsiders", steps=2, local_steps=1, clip=1.0, std=z, psi_clip=1e-9, psi_std=1.0, rate=q,
        relation=Relation.ZERO_OUT,
    )  # fmt: skip
    allowed = {epsilon: delta_of(claimed, epsilon) for epsilon in (0.2, 0.8)}
    without = law(x)[:, None] * law(x)[None, :]
    for first, second in product((1.0, -1.0), ("same", "other", "follows")):
        there = np.zeros_like(without)
        for coin in (0, 1):
            p1 = (q if coin else 1 - q) * law(x - first * coin)
            row = {"same": first, "other": -first if coin else first}.get(second)
            r = np.where(x > 0, 1.0, -1.0) * (1 if coin else -1) if row is None else np.full_like(x, row)
            p2 = (1 - q) * law(x)[None, :] + q * law(x[None, :] - r[:, None])
            there += p1[:, None] * p2
        for epsilon, most in allowed.items():
            for one, other in ((there, without), (without, there)):
                found = np.maximum(one - math.exp(epsilon) * other, 0).sum() * step**2
                assert found <= most * (1 + 1e-3) + 1e-9


def test_a_state_that_remembers_its_coins_is_priced_where_a_party_is_replaced() -> None:
    """The same two rounds of two parties in opposite directions, each of which goes by its own coins."""
    z, q, x = 1.0, 0.4, np.linspace(-7, 7, 401)
    step, law = x[1] - x[0], stats.norm(scale=z).pdf
    claimed = Repeat(Replaced(Gaussian(z, Neighbours(Relation.ZERO_OUT, Unit.PARTY)), q), 2)

    def view(sign: float, kind: str) -> Array:
        found = np.zeros((x.size, x.size))
        for coin in (0, 1):
            first = (q if coin else 1 - q) * law(x - sign * coin)
            r = sign * {"same": np.ones_like(x), "other": (1 - 2 * coin) * np.ones_like(x)}.get(
                kind, np.where(x > 0, 1.0, -1.0) * (2 * coin - 1)
            )
            found += first[:, None] * ((1 - q) * law(x)[None, :] + q * law(x[None, :] - r[:, None]))
        return found

    nearest = 0.0
    for one, other in product(("same", "other", "follows"), repeat=2):
        there, instead = view(1.0, one), view(-1.0, other)
        for epsilon in (0.2, 0.8):
            most = delta_of(claimed, epsilon)
            found = np.maximum(there - math.exp(epsilon) * instead, 0).sum() * step**2
            assert found <= most * (1 + 1e-3) + 1e-9
            nearest = max(nearest, found / most)
    assert nearest > 0.99  # attained by those who always say the same


# Whole runs

D = 24
GOAL = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)


def parties(label: float) -> list[Records]:
    """Every party has a coordinate to itself; with the other label it sends the opposite of its row."""
    return [Records.of(np.eye(D)[[k, k]], np.full(2, label)) for k in range(D)]


def settings(method: Any, **changes: Any) -> Settings:
    facts: dict[str, Any] = {
        "objective": GOAL, "algorithm": method, "unit": Unit.PARTY, "clip": 1e-3, "budget": LOOSE,
        "trust": TrustModel.AGGREGATE,
    }  # fmt: skip
    return Settings(**{**facts, **changes})


METHODS: dict[str, Any] = {
    "adaped": AdaPeD(rounds=2, local_steps=2, step_size=8.0),
    "fed-avg": FedAvg(rounds=2, local_steps=1, step_size=8.0),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_whole_run_stands_and_half_the_noise_is_caught(name: str) -> None:
    """Sums of all parties, in which every coordinate is about one of them: so many attacks at once."""
    chosen = settings(METHODS[name])
    honest = prepare(chosen, [1] * D)

    def refuted(factor: float) -> bool:
        plan = quieter(honest.plan, factor)

        def once(seed: int, label: float) -> Array:
            federation = silos_for(chosen, parties(label), names=[str(k) for k in range(D)], seed=seed)
            overheard = Overheard(federation.open(plan))
            METHODS[name].run(
                overheard, np.zeros(D), problem=honest.problem, rounds=2, prox=chosen.regularizer,
                follow=lambda _r, _w: None,
            )  # fmt: skip
            return np.asarray(np.sum([one.means[0][:D] for one in overheard.seen], axis=0))

        def run(present: bool, size: int, rng: np.random.Generator) -> Array:
            label = 1.0 if present else 0.0
            # Steps are downhill: with the label 1 towards larger weights, whose move is sent as a descent.
            found = [-once(int(rng.integers(2**62)), label) for _ in range(-(-size // D))]
            return np.concatenate(found)[:size]

        claim = honest.plan.event([1] * D, TrustModel.AGGREGATE), LOOSE.delta
        found = parted(run, claim, runs=10 * D)
        assert 1 - 1e-3 <= found.claimed_epsilon / LOOSE.epsilon <= 1 + 1e-9
        return bool(found.refuted)

    assert not refuted(1.0)
    assert refuted(0.5)


@pytest.mark.parametrize("batch", [Full(), Poisson(rate=0.5)], ids=["full", "poisson"])
@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ZERO_OUT], ids=lambda one: one.value)
def test_the_noise_of_a_message_is_that_of_the_price(relation: Relation, batch: Full | Poisson) -> None:
    """Under local trust: Gaussian releases of one row, and nothing else."""
    method = AdaPeD(rounds=5, batch=batch)
    budget = PrivacyBudget(2.0, 1e-5)
    chosen = settings(
        method, trust=TrustModel.LOCAL, relation=relation, budget=budget, noise="discrete-gaussian"
    )
    prepared = prepare(chosen, [1, 1])
    ((step, count),) = prepared.plan.kinds
    (measure,) = step.measures
    assert (count, step.neighbours) == (5, Neighbours(relation, Unit.PARTY))
    assert isinstance(measure.estimator, AdditiveMean)
    assert measure.estimator.exact
    assert measure.max_radius == pytest.approx(1e-3 * math.sqrt(20 / 19))
    assert epsilon_of(prepared.plan.event([1], TrustModel.LOCAL), 1e-5) == pytest.approx(2.0, rel=1e-3)
    if isinstance(batch, Full):
        # In the numbers of the paper: both clips have the noise whose squared ratios add up to 1 / z^2.
        z, moved = measure.estimator.noise_multiplier, 2 if relation is Relation.REPLACE_ONE else 1
        total = z * moved * measure.max_radius  # of a row, whose first part is a mean of 10 steps
        c = math.sqrt(1 / 19)
        paper = adaped_event(
            view="server", steps=50, local_steps=10, relation=relation, clip=1e-3,
            std=total * 10 / math.sqrt(10), psi_clip=1.0, psi_std=total * 10 / math.sqrt(10) / (c * 1e-3),
        )  # fmt: skip
        assert epsilon_of(paper, 1e-5) == pytest.approx(2.0, rel=5e-3)


def test_a_personal_model_stays_in_the_silo_and_survives_a_restart(tmp_path: Path) -> None:
    chosen = settings(
        AdaPeD(rounds=3), trust=TrustModel.LOCAL, budget=PrivacyBudget(3.0, 1e-5), noise="discrete-gaussian"
    )
    plan = prepare(chosen, [1]).plan
    party = Records.of(np.eye(D), np.arange(D) % 2.0)
    problem = prepare(chosen, [1]).problem

    def query(step: int) -> Query:
        facts = chosen.algorithm._facts(problem, 1.0)  # type: ignore[attr-defined]
        return Query(step=step, at={"w": np.zeros(D), "round": facts.array()}, radius=(facts.radius,))

    path = tmp_path / "party.ledger"
    with Ledger.create(path, limit=PrivacyBudget(3.0, 1e-5), neighbours=PARTY) as ledger:
        first = silo_for(chosen, party, name="a", ledger=ledger)
        first.accept(plan, run="r")
        said = first.answer(query(0))
        model = first.kept(PERSONAL_ROUND)
        assert model[0, -1] == 1.0
        assert np.linalg.norm(model[0, :-1]) > 0.1
        assert model.astype("<f8").tobytes() not in said
    with Ledger.open(path) as ledger:
        again = silo_for(chosen, party, name="a", ledger=ledger)
        again.accept(plan, run="r")
        assert np.array_equal(again.kept(PERSONAL_ROUND), model)
        assert again.answer(query(0)) == said
        again.answer(query(1))
        later = again.kept(PERSONAL_ROUND)
        # It goes on from where it was: as one that was never restarted, since noise is not in it.
        fresh = silo_for(chosen, party, name="b", rng=np.random.default_rng(0))
        fresh.accept(plan)
        for step in range(2):
            fresh.answer(query(step))
        assert fresh.kept(PERSONAL_ROUND) == pytest.approx(later)
        assert ledger.spent().epsilon <= 3.0


def test_a_silo_that_lost_its_model_starts_again_at_the_common_one() -> None:
    chosen = settings(AdaPeD(rounds=3), trust=None, budget=None)
    federation = silos_for(chosen, [Records.of(np.eye(D), np.ones(D))], names=["a"], seed=0)
    with pytest.raises(ParameterError, match="must keep a state"):
        federation.kept(PERSONAL_ROUND)
    train(federation, chosen)
    assert federation.kept(PERSONAL_ROUND)[0][0, -1] == 1.0
    federation.open(prepare(chosen, [1]).plan)  # another process, without a ledger
    assert not federation.kept(PERSONAL_ROUND)[0].any()


def test_parties_are_protected_as_such_or_not_at_all() -> None:
    with pytest.raises(ParameterError, match="unit must be party"):
        prepare(settings(AdaPeD(), unit=Unit.RECORD), [5, 5])
    with pytest.raises(ParameterError, match="trust must be local or aggregate or shuffle"):
        prepare(settings(AdaPeD(), trust=TrustModel.CENTRAL), [1, 1])
    with pytest.raises(ParameterError, match="unit must be record or person"):
        prepare(settings(NoisyMinibatchSGD(rounds=2)), [1, 1])
