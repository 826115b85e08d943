"""A crowd is the federation of one silo per client: the same estimates, the same price, the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation import (
    Batch,
    Crowd,
    Disjoint,
    Fixed,
    Full,
    InProcess,
    Measure,
    Plan,
    Poisson,
    RandomSubset,
    Scheduled,
    Silo,
    Step,
)
from tacit.means import (
    AdditiveMean,
    BinomialMean,
    DiscreteGaussianNoise,
    Estimator,
    GaussianNoise,
    HadamardMean,
    HemisphereMean,
    RandK,
    SignVoteMean,
)
from tacit.numerics import Array
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel, Unit
from tests.federation.world import AT, DELTA, RADIUS, STATISTICS, Rows, ledger_at, plan_of, rows, step_of
from tests.statistics import z_bound

CLIENTS, SIZE = 6, 4
X = rows(0, CLIENTS * SIZE)
BARE = AdditiveMean(dim=3, on_violation="clip")
CENTRAL = AdditiveMean(dim=3, noise=GaussianNoise(2.0), trust=TrustModel.CENTRAL)
FALSE_ALARM = 1e-9


def crowd(*, seed: int | None = 0, clients: int = CLIENTS, values: Array = X, **options: Any) -> Crowd:
    """A crowd over the rows."""
    rng = None if seed is None else np.random.default_rng(seed)
    return Crowd(
        Rows(values),
        STATISTICS,
        clients=clients,
        rng=rng,
        **{"trusts_server": True, "public_seed": 3, **options},
    )


def silos(*, seed: int = 0, clients: int = CLIENTS, values: Array = X, **options: Any) -> InProcess:
    """One silo per client over the same rows."""
    parts = np.split(values, clients)
    made = [
        Silo(Rows(part), STATISTICS, name=str(k), trusts_server=True, rng=np.random.default_rng([seed, k]))
        for k, part in enumerate(parts)
    ]
    return InProcess(made, rng=np.random.default_rng(seed), **{"public_seed": 3, **options})


def plan(
    estimator: Estimator, *, rounds: int = 3, batch: Batch | None = None, clients: int = CLIENTS
) -> Plan:
    """A plan for the crowd."""
    return plan_of(estimator, rounds=rounds, parties=clients, batch=batch)


@pytest.mark.parametrize(
    "participation", [None, RandomSubset(3), RandomSubset((0, 2)), Scheduled([[0, 5], [2]])]
)
def test_without_noise_every_round_is_that_of_silos(participation: Any) -> None:
    down = {(0, 1), (2, 4), (2, 5)}
    masks = np.array([[(r, k) in down for k in range(CLIENTS)] for r in range(3)])
    one = crowd(is_down=lambda r: masks[r]).open(plan(BARE), participation=participation)
    other = silos(is_down=lambda r, k: (r, k) in down).open(plan(BARE), participation=participation)
    for r in range(3):
        (left,), (right,) = one(r, AT, (RADIUS,)), other(r, AT, (RADIUS,))
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(one.traffic.answered, other.traffic.answered)
    np.testing.assert_array_equal(one.traffic.bits_up, other.traffic.bits_up)
    assert one.traffic.skipped == other.traffic.skipped


@pytest.mark.parametrize(
    "estimator",
    [
        BARE,
        AdditiveMean(dim=3, noise=GaussianNoise(2.0)),
        AdditiveMean(dim=3, noise=DiscreteGaussianNoise(2.0)),
        CENTRAL,
        SignVoteMean(dim=3, noise=GaussianNoise(2.0)),
        HadamardMean(dim=4, local_epsilon=1.0),
        RandK(dim=3, k=2, noise=GaussianNoise(2.0)),
    ],
    ids=lambda e: f"{type(e).__name__}-{type(getattr(e, 'noise', None)).__name__}",
)
def test_the_price_and_the_bits_are_those_of_one_of_the_silos(estimator: Estimator) -> None:
    asked = plan(estimator)
    values = rows(0, CLIENTS * SIZE, dim=estimator.dim)
    one, other = crowd(values=values).open(asked), silos(values=values).open(asked)
    one(0, AT, (RADIUS,)), other(0, AT, (RADIUS,))
    np.testing.assert_array_equal(one.traffic.bits_up, other.traffic.bits_up)
    (price,), known = one.guarantees, other.guarantees[0]
    assert (price.epsilon, price.delta, price.event) == (known.epsilon, known.delta, known.event)
    assert price.assumptions == known.assumptions
    assert price.simulated


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.SHUFFLE])
def test_what_clients_would_send_is_simulated_however_secret_the_randomness(trust: TrustModel) -> None:
    """The noise of all of them is drawn at once, by NumPy's binomial among others."""
    shuffled = trust is TrustModel.SHUFFLE
    noisy = AdditiveMean(dim=3, noise=DiscreteGaussianNoise(5.0))
    mean = BinomialMean(dim=3, noise_bits=60, resolution=4) if shuffled else noisy
    measure = Measure(statistic="row", estimator=mean, max_radius=RADIUS)
    made = Plan(
        steps=((Step(measures=(measure,), honest=20 if shuffled else 0), 2),),
        parties=20,
        trust=trust,
        delta=1e-6,
        n_min=20 if shuffled else 0,
    )
    ask = Crowd(Rows(rows(0, 20)), STATISTICS, trusts_shuffler=True).open(made)
    found = [*ask.guarantees, *ask.guarantees_alone]
    assert len(found) == 1 + shuffled
    assert all(one.simulated for one in found)


def spread(open_run: Callable[[int], Any], *, runs: int, rounds: int) -> Array:
    """The estimates of all rounds of many runs, shape (runs x rounds, 3)."""
    asks = (open_run(seed) for seed in range(runs))
    return np.array([ask(r, AT, (RADIUS,))[0] for ask in asks for r in range(rounds)])


@pytest.mark.parametrize(
    ("estimator", "batch"),
    [
        (AdditiveMean(dim=3, noise=GaussianNoise(0.3)), Full()),
        (AdditiveMean(dim=3, noise=DiscreteGaussianNoise(0.3, steps=16)), Full()),
        (AdditiveMean(dim=3, noise=GaussianNoise(0.3), trust=TrustModel.CENTRAL), Full()),
        (SignVoteMean(dim=3, noise=GaussianNoise(0.3)), Full()),
        (AdditiveMean(dim=3, noise=GaussianNoise(0.05)), Fixed(size=2)),
        (AdditiveMean(dim=3, noise=GaussianNoise(0.05)), Disjoint(size=1)),
        (
            AdditiveMean(dim=3, noise=GaussianNoise(0.05), neighbours=Neighbours(Relation.ZERO_OUT)),
            Poisson(rate=0.4),
        ),
    ],
    ids=str,
)
def test_the_law_is_that_of_silos(estimator: Estimator, batch: Batch) -> None:
    rounds = 1 if isinstance(batch, Disjoint) else 10  # which are independent, but for disjoint batches
    asked, many = (
        plan(estimator, rounds=max(rounds, 3), batch=batch),
        {"runs": 800 // rounds, "rounds": rounds},
    )
    one = spread(lambda seed: crowd(seed=seed).open(asked), **many)
    other = spread(lambda seed: silos(seed=seed).open(asked), **many)
    for k in range(3):  # the smallest p-value of six tests, Bonferroni
        pairs = (one[:, k], other[:, k]), (one @ X[k], other @ X[k])
        found = [stats.ks_2samp(left, right, method="asymp").pvalue for left, right in pairs]
        assert min(found) > FALSE_ALARM / 6


def test_batches_without_noise_are_uniform_samples_of_every_client() -> None:
    values = np.diag([0.1, 0.2, 0.4, 0.8])[:, :3]  # sums tell which unit was drawn
    asked = plan(BARE, rounds=4, batch=Fixed(size=1), clients=2)
    seen: dict[tuple[float, ...], int] = {}
    for seed in range(500):
        ask = crowd(seed=seed, clients=2, values=values).open(asked)
        for r in range(4):
            seen_at = tuple(np.round(ask(r, AT, (RADIUS,))[0], 9).tolist())
            seen[seen_at] = seen.get(seen_at, 0) + 1
    assert len(seen) == 4
    assert stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


def test_disjoint_batches_use_every_unit_once() -> None:
    ask = crowd().open(plan(BARE, rounds=SIZE, batch=Disjoint(size=1)))
    total = sum(ask(r, AT, (RADIUS,))[0] for r in range(SIZE))
    np.testing.assert_allclose(total / SIZE, X.mean(axis=0), atol=1e-15)


@pytest.mark.parametrize("estimator", [AdditiveMean(dim=3, noise=GaussianNoise(2.0)), CENTRAL])
def test_a_step_is_answered_once(estimator: Estimator) -> None:
    ask = crowd().open(plan(estimator))
    first = ask(1, AT, (RADIUS,))[0]
    np.testing.assert_array_equal(ask(1, AT, (RADIUS,))[0], first)
    with pytest.raises(RefusalError, match="answered at another point"):
        ask(1, {"w": np.ones(3)}, (RADIUS,))
    with pytest.raises(RefusalError, match="outside the accepted plan"):
        ask(3, AT, (RADIUS,))
    with pytest.raises(RefusalError, match="radius must be a number in"):
        ask(2, AT, (2 * RADIUS,))


def test_a_server_that_adds_noise_keeps_a_ledger(tmp_path: Any) -> None:
    with ledger_at(tmp_path / "server.ledger") as ledger:
        exact = AdditiveMean(dim=3, noise=DiscreteGaussianNoise(5.0), trust=TrustModel.CENTRAL)
        ask = crowd(seed=None, ledger=ledger).open(plan(exact))
        first = ask(0, AT, (RADIUS,))[0]
        again = crowd(seed=None, ledger=ledger).open(plan(exact))
        np.testing.assert_array_equal(again(0, AT, (RADIUS,))[0], first)
        assert len(ledger.entries()) == 1
        assert not ask.guarantees[0].simulated


@pytest.mark.parametrize(
    ("options", "asked", "more", "error", "message"),
    [
        ({"clients": 5}, plan(BARE), {}, ParameterError, "clients must divide the number of units"),
        ({"trusts_server": False}, plan(BARE), {}, RefusalError, "trusts_server=True"),
        ({"trusts_server": False}, plan(CENTRAL), {}, RefusalError, "trusts_server=True"),
        ({}, plan(BARE), {"weights": (1.0,) * CLIENTS}, ParameterError, "a crowd counts all alike"),
        ({"unit": Unit.PERSON}, plan(BARE), {}, ParameterError, "the units of the crowd are of kind person"),
        ({}, plan(BARE, clients=3), {}, ParameterError, "the plan is for 3 silos"),
        ({}, plan(BARE), {"weights": "recrods"}, ParameterError, "weights must be one of"),
        ({}, plan(CENTRAL), {"weights": "silos"}, ParameterError, "weights must be 'records' under central"),
        (
            {},
            plan(AdditiveMean(dim=3, noise=GaussianNoise(2.0), neighbours=Neighbours(Relation.ADD_REMOVE))),
            {},
            ParameterError,
            "got add-remove: how many units it has is public",
        ),
        (
            {},
            plan(AdditiveMean(dim=3, noise=GaussianNoise(0.1))),
            {"budget": PrivacyBudget(1.0, DELTA)},
            BudgetError,
            "above the agreed epsilon",
        ),
        (
            {},
            plan_of(statistics=("shifted",), walks=2, parties=CLIENTS),
            {},
            ParameterError,
            "a crowd answers with means",
        ),
        ({}, plan_of(statistics=("none",), parties=CLIENTS), {}, ParameterError, "statistic must be one of"),
        (
            {},
            plan(AdditiveMean(dim=3, noise=GaussianNoise(1.0), neighbours=Neighbours(unit=Unit.PARTY))),
            {},
            ParameterError,
            "clients of one unit",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    options: dict[str, Any], asked: Plan, more: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        crowd(**options).open(asked, **more)


def test_clients_keep_no_ledger(tmp_path: Any) -> None:
    with ledger_at(tmp_path / "a.ledger") as ledger, pytest.raises(ParameterError, match="clients keep none"):
        crowd(ledger=ledger).open(plan(AdditiveMean(dim=3, noise=GaussianNoise(2.0))))


def test_a_bad_row_counts_as_zero() -> None:
    values = np.concatenate([np.full((1, 3), 9.0), np.full((2, 3), 0.3)])
    made = Crowd(Rows(values), STATISTICS, trusts_server=True, rng=np.random.default_rng(0))
    ask = made.open(plan_of(statistics=("fails",), parties=3))
    np.testing.assert_allclose(ask(0, AT, (RADIUS,))[0], [0.2, 0.2, 0.2])


@pytest.mark.parametrize(
    "mask", [np.zeros(CLIENTS, dtype=np.int64), np.zeros(2, dtype=np.bool_), [0] * CLIENTS]
)
def test_who_is_down_is_a_mask(mask: Any) -> None:
    """Indices in its place would count a client several times, with noise for one."""
    ask = crowd(is_down=lambda _: mask).open(plan(BARE))
    with pytest.raises(ParameterError, match="is_down must return bool of shape"):
        ask(0, AT, (RADIUS,))


def test_no_unit_is_in_two_blocks_where_a_run_goes_on(tmp_path: Any) -> None:
    """With next to no noise, the published means tell which unit a block held."""
    values = np.zeros((4, 3))
    values[:, 0] = [0.1, 0.2, 0.4, 0.8]
    exact = AdditiveMean(dim=3, noise=DiscreteGaussianNoise(2e-3), trust=TrustModel.CENTRAL)
    seen = set()
    for k in range(12):
        with ledger_at(tmp_path / f"{k}.ledger", epsilon=1e9) as ledger:
            asked = plan(exact, rounds=4, batch=Disjoint(size=1), clients=1)
            found = []
            for r in range(4):  # every round in a process of its own
                ask = crowd(seed=None, clients=1, values=values, ledger=ledger).open(asked)
                found.append(round(float(ask(r, AT, (RADIUS,))[0][0]), 1))
            assert sorted(found) == [0.1, 0.2, 0.4, 0.8]
            seen.add(tuple(found))
    assert len(seen) > 1  # 24 orders


def test_blocks_of_several_kinds_of_rounds_follow_each_other() -> None:
    first, second = (step_of(BARE, batch=Disjoint(size=size)) for size in (1, 3))
    asked = Plan(steps=((first, 1), (second, 1)), parties=CLIENTS)
    one = crowd().open(asked)
    parts = one(0, AT, (RADIUS,))[0], one(1, AT, (RADIUS,))[0]
    np.testing.assert_allclose((parts[0] + 3 * parts[1]) / 4, X.mean(axis=0), atol=1e-15)


def test_poisson_samples_are_divided_by_what_is_expected() -> None:
    """A quarter of four units and half of one have the same expectation, and other roundings."""
    estimator = AdditiveMean(dim=3, neighbours=Neighbours(Relation.ZERO_OUT), on_violation="clip")
    values = np.full((3 * SIZE, 3), 0.5)
    runs = 4000
    asked = plan(estimator, rounds=runs, batch=Poisson(rate=0.4), clients=3)  # 1.6 of 4: messages are for 2
    ask = crowd(clients=3, values=values).open(asked)
    found = np.array([ask(r, AT, (RADIUS,))[0][0] for r in range(runs)])
    std = 0.5 * np.sqrt(12 * 0.4 * 0.6) / (12 * 0.4)
    assert abs(found.mean() - 0.5) < z_bound(1) * std / np.sqrt(runs)


def test_a_bad_record_makes_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    def overflows(units: Any, at: Any) -> Array:
        return np.asarray(np.exp(units.values * 1e4))

    made = Crowd(Rows(np.ones((2, 3))), {"row": overflows}, trusts_server=True, rng=np.random.default_rng(0))
    made.open(plan_of(parties=2))(0, AT, (RADIUS,))
    assert not recwarn.list


def test_the_normal_limit_of_reports_claims_nothing_and_says_that_it_simulates() -> None:
    """For sweeps: the errors of the same plan on reports, which its own price is about."""
    n, made = 300, rows(0, 300)
    reports = HemisphereMean(dim=3, local_epsilon=1.0, trust=TrustModel.SHUFFLE, on_violation="clip")
    measure = Measure(statistic="row", estimator=reports, max_radius=RADIUS)
    asked = Plan(
        steps=((Step(measures=(measure,), honest=n), 400),), parties=n, trust=TrustModel.SHUFFLE,
        delta=1e-6, n_min=n,
    )  # fmt: skip
    errors = []
    for limit in (False, True):
        ask = Crowd(
            Rows(made), STATISTICS, trusts_shuffler=True, rng=np.random.default_rng(8), normal_limit=limit
        ).open(asked)
        found = np.array([ask(r, AT, (RADIUS,))[0] for r in range(400)])
        errors.append(((found - found.mean(axis=0)) ** 2).sum(axis=1))
        for price in [*ask.guarantees, *ask.guarantees_alone]:
            assert price.simulated
            assert math.isinf(price.epsilon) == limit
            assert any("draws of a normal law" in clause for clause in price.assumptions) == limit
            assert ("No privacy is claimed" in str(price)) == limit
    spread = math.hypot(*(one.std() for one in errors)) / 20
    assert errors[0].mean() == pytest.approx(errors[1].mean(), abs=z_bound(1) * spread)
    other = Crowd(Rows(made), STATISTICS, trusts_server=True, normal_limit=True)
    with pytest.raises(ParameterError, match="normal_limit must be False"):
        other.open(plan(CENTRAL))
