"""Means of columns: the law of the noise, the intervals, the price, and what is refused."""

from __future__ import annotations

import dataclasses
import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

from tacit.errors import BudgetError, ParameterError
from tacit.means import AdditiveMean, ColumnMeansQuery, ModularSumMean, NoNoise, column_means
from tacit.privacy import DiscreteGaussian, Neighbours, PrivacyBudget, Relation, TrustModel, Unit, verify
from tacit.randomness import secure, simulated
from tests.statistics import z_bound

LOWER, UPPER = [0.0, -5.0, 1e6], [100.0, 5.0, 3e6]
ZERO_OUT = Neighbours(Relation.ZERO_OUT)
PERSONS = Neighbours(unit=Unit.PERSON)


def a_query(n: int = 40, delta: float = 0.0, **more: object) -> ColumnMeansQuery:
    budget = PrivacyBudget(1.0, delta)
    return ColumnMeansQuery.calibrated(n=n, lower=LOWER, upper=UPPER, budget=budget, **more)  # type: ignore[arg-type]


def a_table(n: int = 40) -> np.ndarray:
    rng = simulated(5, "columns")
    return np.asarray(rng.uniform(LOWER, UPPER, (n, 3)))


@pytest.mark.parametrize("trust", [TrustModel.CENTRAL, TrustModel.LOCAL])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_has_the_deviation_and_the_quantiles_that_are_said(trust: TrustModel, delta: float) -> None:
    query, table = a_query(delta=delta, trust=trust), a_table()
    runs, confidence = 2000, 0.8
    rng = simulated(1, "law", trust.value, str(delta))
    answers = np.stack([query.answer(table, rng=rng) for _ in range(runs)])
    off = (answers - table.mean(axis=0)) / query.noise_std
    z = z_bound(9)
    assert np.all(np.abs(off.mean(axis=0)) < z / math.sqrt(runs))
    # A Laplace variable has a kurtosis of 6: the sample variance has the variance 5 / runs at most.
    assert np.all(np.abs((off**2).mean(axis=0) - 1) < z * math.sqrt(5 / runs))
    inside = np.abs(answers - table.mean(axis=0)) <= query.half_width(confidence)
    assert np.all(
        np.abs(inside.mean(axis=0) - confidence) < z * math.sqrt(confidence * (1 - confidence) / runs)
    )


TABLES = (10, 5, 12, 13)


def test_shares_of_the_noise_have_the_deviation_and_the_quantiles_that_are_said() -> None:
    query, table = a_query(delta=1e-6, trust=TrustModel.AGGREGATE, parties=TABLES, colluding=1), a_table()
    runs, confidence = 2000, 0.8
    rng = simulated(1, "shares")
    answers = np.stack([query.answer(table, rng=rng) for _ in range(runs)])
    off = (answers - table.mean(axis=0)) / query.noise_std
    z = z_bound(9)
    assert np.all(np.abs(off.mean(axis=0)) < z / math.sqrt(runs))
    # The kurtosis of a sum of discrete Gaussians is 3: the sample variance has the variance 2 / runs.
    assert np.all(np.abs((off**2).mean(axis=0) - 1) < z * math.sqrt(2.1 / runs))
    inside = np.abs(answers - table.mean(axis=0)) <= query.half_width(confidence)
    spread = math.sqrt(confidence * (1 - confidence) / runs)
    assert np.all(np.abs(inside.mean(axis=0) - confidence) < z * spread)


def test_shares_that_are_counted_on_are_the_noise_of_a_trusted_server() -> None:
    central = a_query(delta=1e-6)
    for colluding in (0, 1, 2):
        query = a_query(delta=1e-6, trust=TrustModel.AGGREGATE, parties=TABLES, colluding=colluding)
        honest = len(TABLES) - colluding
        assert isinstance(query.estimator, ModularSumMean)
        assert query.estimator.shares == honest
        # All four tables add a share, of which `honest` make the price.
        assert query.noise_std == pytest.approx(central.noise_std * math.sqrt(4 / honest), rel=1e-4)
        assert query.price.epsilon == 1.0
        assert query.price_alone is not None
        assert f"up to {colluding} of them" in query.price.observer
        for price in (query.price, query.price_alone):
            verify(price)
        # The price is that of the largest table.
        alone = query.estimator.event(13, TrustModel.LOCAL)
        assert isinstance(alone, DiscreteGaussian)
        assert alone.std == query.estimator.std
        assert query.price_alone.event == alone
        assert query.price_alone.epsilon > query.price.epsilon


def test_sizes_of_tables_are_in_no_price_where_the_number_of_records_is_protected() -> None:
    """Their total is what means are divided by; the largest would show in the rounding of its sum."""
    near = Neighbours(Relation.ADD_REMOVE)
    asked: Any = {"delta": 1e-6, "trust": TrustModel.AGGREGATE, "neighbours": near}
    one, other = (a_query(parties=sizes, **asked) for sizes in (TABLES, (37, 1, 1, 1)))
    assert (one.price, one.price_alone) == (other.price, other.price_alone)
    assert one.estimator == other.estimator
    # A record more may be in any of them.
    assert one.price.event == one.estimator.event(41, TrustModel.AGGREGATE)


def test_whose_rows_a_sum_holds_changes_its_rounding_only() -> None:
    table = a_table()
    free = PrivacyBudget(200.0, 1e-2)
    query = ColumnMeansQuery.calibrated(
        n=40, lower=LOWER, upper=UPPER, budget=free, trust=TrustModel.AGGREGATE, parties=TABLES
    )
    found = column_means(table, query, rng=simulated(4, "rounding"))
    assert np.all(np.abs(found.mean - table.mean(axis=0)) < 10 * found.noise_std)
    assert found.guarantee_alone is not None
    assert found.guarantee.simulated
    assert found.guarantee_alone.simulated
    assert found.tables == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parties": (40,)}, "two tables or more"),
        ({"parties": ()}, "two tables or more"),
        ({"parties": (20, 10)}, "must have 40 units together, got 30"),
        ({"parties": (40, 0)}, "a number of units of a table"),
        ({"parties": TABLES, "colluding": 3}, "colluding must be at most 2 of 4 tables"),
        ({"parties": TABLES, "colluding": -1}, "colluding must be"),
        ({"parties": TABLES, "budget": PrivacyBudget(1.0)}, "delta must be > 0"),
        ({"parties": TABLES, "trust": TrustModel.CENTRAL}, "for aggregate trust"),
        ({"parties": (), "colluding": 1, "trust": TrustModel.LOCAL}, "for aggregate trust"),
    ],
)
def test_tables_that_cannot_hide_each_other_are_refused(change: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {
        "n": 40,
        "lower": LOWER,
        "upper": UPPER,
        "budget": PrivacyBudget(1.0, 1e-6),
        "trust": TrustModel.AGGREGATE,
    }
    with pytest.raises(ParameterError, match=said):
        ColumnMeansQuery.calibrated(**(given | change))


def test_pure_privacy_is_laplace_noise_shared_by_the_columns() -> None:
    query = a_query(n=1000)
    # Replacing one record moves the rescaled sum by 2 in each of 3 columns: scale 6 / epsilon.
    expected = math.sqrt(2) * 6 / 1000 * np.array([50.0, 5.0, 1e6])
    assert query.noise_std == pytest.approx(expected, rel=1e-5)
    assert query.half_width(0.95) == pytest.approx(expected / math.sqrt(2) * -math.log(0.05), rel=1e-5)
    assert (query.price.epsilon, query.price.delta) == (1.0, 0.0)
    assert a_query(n=1000, neighbours=ZERO_OUT).noise_std == pytest.approx(expected / 2, rel=1e-5)


def test_gaussian_noise_is_that_of_the_l2_norm() -> None:
    query = a_query(n=1000, delta=1e-5)
    expected = 3.730632 * 2 * math.sqrt(3) / 1000 * np.array([50.0, 5.0, 1e6])
    assert query.noise_std == pytest.approx(expected, rel=1e-4)
    assert query.half_width(0.95) == pytest.approx(1.959964 * expected, rel=1e-4)


def test_one_record_moves_the_sum_by_no_more_than_what_is_priced() -> None:
    # The worst neighbours: a record at all lower bounds against one at all upper bounds.
    query = a_query(n=7)
    low, high = a_table(7), a_table(7)
    low[3], high[3] = LOWER, UPPER
    free = AdditiveMean(dim=3, noise=NoNoise())
    exact = ColumnMeansQuery.__new__(ColumnMeansQuery)
    for name, value in (("n", 7), ("lower", query.lower), ("upper", query.upper), ("estimator", free)):
        object.__setattr__(exact, name, value)
    moved = exact.answer(high, rng=simulated(0)) - exact.answer(low, rng=simulated(0))
    noise = query.estimator.noise
    assert not isinstance(noise, NoNoise)
    per_column = moved / (query._in_columns(noise.noise_multiplier * 2 * 2**20))
    assert per_column.sum() <= query.price.epsilon  # Laplace: moves over scales add up to epsilon
    assert per_column.sum() == pytest.approx(1.0, rel=1e-4)


def test_values_are_clamped_and_missing_ones_are_the_middle() -> None:
    query = ColumnMeansQuery.calibrated(n=4, lower=[0], upper=[10], budget=PrivacyBudget(1000.0))
    values = [[np.inf], [-np.inf], [np.nan], [25.0]]
    assert query.answer(values, rng=simulated(2)) == pytest.approx([(10 + 0 + 5 + 10) / 4], abs=0.1)


def test_the_guarantee_can_be_checked_and_says_what_was_seeded() -> None:
    query, table = a_query(), a_table()
    seeded = column_means(table, query, rng=simulated(0, "guarantee"))
    deployed = column_means(table, query, rng=secure())
    for found in (seeded, deployed):
        verify(found.guarantee)
        assert np.all(found.interval[:, 0] < found.mean)
        assert np.all(found.mean < found.interval[:, 1])
    assert seeded.guarantee.simulated
    assert not deployed.guarantee.simulated
    assert not np.array_equal(deployed.mean, column_means(table, query, rng=secure()).mean)


def test_local_trust_prices_one_record() -> None:
    central, local = a_query(n=400), a_query(n=400, trust=TrustModel.LOCAL)
    assert local.price.epsilon == 1.0
    assert "own noisy message" in local.price.observer
    assert local.noise_std == pytest.approx(20 * central.noise_std, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lower": [0.0], "upper": [1.0, 2.0]}, "one shape"),
        ({"lower": [1.0], "upper": [1.0]}, "below upper"),
        ({"lower": [2.0], "upper": [1.0]}, "below upper"),
        ({"lower": [float("nan")], "upper": [1.0]}, "below upper"),
        ({"lower": [-1e308], "upper": [1e308]}, "below upper"),
        ({"lower": [], "upper": []}, "one shape"),
        ({"n": 0}, "n must be"),
        (
            {"neighbours": Neighbours(Relation.ADD_REMOVE), "trust": TrustModel.LOCAL},
            "whoever counts the messages sees that one is missing",
        ),
        ({"trust": TrustModel.SHUFFLE}, "trust must be"),
    ],
)
def test_what_is_refused(change: dict[str, object], said: str) -> None:
    good: dict[str, object] = {"n": 5, "lower": [0.0], "upper": [1.0], "budget": PrivacyBudget(1.0)}
    with pytest.raises(ParameterError, match=said):
        ColumnMeansQuery.calibrated(**{**good, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", [Relation.ZERO_OUT, Relation.ADD_REMOVE])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_record_that_comes_or_goes_takes_half_the_noise(relation: Relation, delta: float) -> None:
    query, replaced = a_query(delta=delta, neighbours=Neighbours(relation)), a_query(delta=delta)
    assert query.noise_std == pytest.approx(replaced.noise_std / 2, rel=1e-3)
    assert query.price.neighbours.relation is relation
    said = "the number of records that means are divided by is public"
    assert (said in query.price.assumptions) == (relation is Relation.ADD_REMOVE)
    verify(query.price)


def test_more_that_is_refused() -> None:
    with pytest.raises(BudgetError):
        ColumnMeansQuery.calibrated(n=5, lower=[0], upper=[1], budget=PrivacyBudget(1e-30))
    query = a_query()
    with pytest.raises(ParameterError, match="values must have shape"):
        query.answer(np.zeros((40, 2)), rng=simulated(0))
    with pytest.raises(ParameterError, match="confidence"):
        column_means(a_table(), query, confidence=1.0, rng=simulated(0))
    with pytest.raises(ParameterError, match="discrete noise"):
        ColumnMeansQuery(
            n=1, lower=query.lower, upper=query.upper, estimator=AdditiveMean(dim=3), price=query.price
        )


def test_values_outside_of_their_bounds_are_refused_where_that_is_asked_for() -> None:
    kind: dict[str, Any] = {"n": 2, "lower": [0.0], "upper": [1.0], "budget": PrivacyBudget(1.0)}
    refusing = ColumnMeansQuery.calibrated(**kind, on_violation="error")
    clamping = ColumnMeansQuery.calibrated(**kind)
    inside = np.array([[0.25], [1.0]])
    again = refusing.answer(inside, rng=simulated(5, "columns"))
    assert again.tolist() == clamping.answer(inside, rng=simulated(5, "columns")).tolist()
    for bad in (1.5, -0.5, np.nan, np.inf):
        rng = simulated(6, "columns")
        state = rng.bit_generator.state
        with pytest.raises(ParameterError, match="inside their bounds"):
            refusing.answer(np.array([[0.25], [bad]]), rng=rng)
        assert rng.bit_generator.state == state
        assert clamping.answer(np.array([[0.25], [bad]]), rng=rng).shape == (1,)


def exact_sum(query: ColumnMeansQuery, values: Any, persons: Any) -> np.ndarray:
    """Return the rescaled sum that the noise is added to."""
    free = AdditiveMean(
        dim=len(query.lower), noise=NoNoise(), neighbours=query.estimator.neighbours, on_violation="clip"
    )
    bare = dataclasses.replace(query)
    object.__setattr__(bare, "estimator", free)
    mean = bare.answer(values, persons=persons, rng=simulated(0))
    half, middle = (query.upper - query.lower) / 2, (query.upper + query.lower) / 2
    return np.asarray((mean - middle) / half * query.n)


def test_all_rows_of_one_person_move_the_sum_by_no_more_than_what_is_priced() -> None:
    """By enumeration: every table of up to three rows for one of three persons, against every other."""
    query = ColumnMeansQuery.calibrated(
        n=3, lower=[0], upper=[10], budget=PrivacyBudget(1.0), neighbours=PERSONS
    )
    others, ids = [2.0, 9.0, 4.0], ["b", "c", "b"]
    tables = [
        rows
        for count in (1, 2, 3)
        for rows in itertools.product((-np.inf, 0.0, 7.0, np.inf, np.nan), repeat=count)
    ]
    sums = []
    for place, rows in enumerate(tables):
        cells, names = list(others), list(ids)
        for k, cell in enumerate(rows):  # wherever the person's rows stand
            cells.insert((place + k) % 4, cell)
            names.insert((place + k) % 4, f"person {place}")
        sums.append(exact_sum(query, np.array(cells)[:, None], names)[0])
    moved = max(sums) - min(sums)
    noise = query.estimator.noise
    assert not isinstance(noise, NoNoise)
    # Laplace noise on the sum: the largest log-ratio of two densities is the distance over the scale.
    assert moved / (noise.noise_multiplier * query.estimator.sensitivity) <= query.price.epsilon
    assert moved == pytest.approx(2.0, abs=1e-9)  # both ends of the bounds: the price is not too high either
    assert str(query.price).startswith(
        "(epsilon = 1) whatever an observer of the released means sees, replac"
    )
    assert "replacing one person" in str(query.price)
    # Without the mean per person, three records of one person would move the sum three times as far.
    records = ColumnMeansQuery.calibrated(n=3, lower=[0], upper=[10], budget=PrivacyBudget(1.0))
    low, high = (exact_sum(records, np.full((3, 1), value), None)[0] for value in (0.0, 10.0))
    assert high - low == pytest.approx(6.0)


def test_other_rows_of_one_person_change_no_row_of_anybody_else() -> None:
    query = a_query(n=4, neighbours=PERSONS)
    table = simulated(6, "rows").uniform(-1, 1, (9, 3))
    ids = np.array(["a", "b", "a", "c", "d", "b", "b", "a", "c"])
    before = query._per_person(table, ids)
    kept = ids != "a"
    other = np.concatenate([table[kept], np.full((5, 3), np.nan)])
    after = query._per_person(other, np.array([*ids[kept], *["another"] * 5]))
    rows = {tuple(row) for row in before.tolist()}
    assert len(rows & {tuple(row) for row in after.tolist()}) == 3


@pytest.mark.parametrize("odd", ["c\0", "c ", "\0", "C" * 100_000])
def test_ids_are_told_apart_whatever_they_are_made_of(odd: str) -> None:
    """Each is another person: not shortened by what arrays of text cut off, and not making others wide."""
    query, table = a_query(n=4, neighbours=PERSONS), simulated(6, "rows").uniform(-1, 1, (5000, 3))
    ids = ["a", "b", "c", odd, *["a"] * 4996]
    tracemalloc.start()
    rows = query._per_person(table, ids)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.shape == (4, 3)
    assert most < 5_000_000
    np.testing.assert_array_equal(rows[1:4], table[1:4])


def test_a_mean_of_persons_is_unbiased_for_the_mean_of_their_clamped_means() -> None:
    query = ColumnMeansQuery.calibrated(
        n=3, lower=[0], upper=[10], budget=PrivacyBudget(3.0), neighbours=PERSONS
    )
    values = [[2.0], [np.nan], [99.0], [1.0], [2.0], [3.0], [np.nan]]
    persons = [7, 7, 7, 8, 8, 8, 9]
    expected = ((2 + 10) / 2 + 2 + 5) / 3  # clamped; missing is left out; a person with nothing is the middle
    runs, rng = 2000, simulated(8, "persons")
    answers = np.array([query.answer(values, persons=persons, rng=rng)[0] for _ in range(runs)])
    assert abs(answers.mean() - expected) < z_bound(1) * query.noise_std[0] / math.sqrt(runs)
    found = column_means(values, query, persons=persons, rng=secure())
    verify(found.guarantee)
    assert (found.n, found.guarantee.neighbours) == (3, PERSONS)


def test_local_trust_lets_every_person_add_noise() -> None:
    local = a_query(n=400, trust=TrustModel.LOCAL, neighbours=PERSONS)
    assert local.price.observer == "an observer of every person's own noisy message"
    assert local.noise_std == pytest.approx(a_query(n=400, trust=TrustModel.LOCAL).noise_std)
    zero = a_query(neighbours=Neighbours(Relation.ZERO_OUT, Unit.PERSON))
    assert "a person who is blanked out keeps the id" in str(zero.price)


@pytest.mark.parametrize(
    ("neighbours", "persons", "said"),
    [
        (PERSONS, None, "persons must be given where the query protects persons.*protects persons"),
        (Neighbours(), [1, 2, 2], "and only there; it protects records"),
        (PERSONS, [1, 2], "one entry per row"),
        (PERSONS, [1, 1, 1], "persons must be 2 different ones, as the query says, got 1"),
        (PERSONS, [1, 2, 3], "got 3"),
    ],
)
def test_persons_that_do_not_fit_are_refused(neighbours: Neighbours, persons: Any, said: str) -> None:
    n = 2 if neighbours.unit is Unit.PERSON else 3
    query = ColumnMeansQuery.calibrated(
        n=n, lower=[0], upper=[1], budget=PrivacyBudget(1.0), neighbours=neighbours
    )
    with pytest.raises(ParameterError, match=said):
        query.answer(np.zeros((3 if persons else 2, 1)), persons=persons, rng=simulated(0))
