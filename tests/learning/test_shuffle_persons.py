"""Persons behind a shuffler: prices count persons, `n_min` silos, and no person moves more than a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.cli.app import main
from tacit.errors import ParameterError
from tacit.federation import Circle, Measure, Plan, Query, Silo, Step, open_answer, with_honest
from tacit.learning import FederatedLogisticRegression, Grouped, Records
from tacit.learning.objective import PerPerson
from tacit.means import BinomialMean
from tacit.numerics import Array
from tacit.privacy import (
    Binomial,
    Neighbours,
    PrivacyBudget,
    TrustModel,
    Unit,
    epsilon_of,
    neighbours_of,
    verify,
)
from tests.statistics import FALSE_ALARM

PERSONS = (6, 9, 7)
RECORDS = (1, 3, 50)
DELTA = 1e-6
NEAR = Neighbours(unit=Unit.PERSON)
MEAN = BinomialMean(dim=1, noise_bits=60, resolution=4, neighbours=NEAR)
DRAWS = 400


def plan(n_min: int = 3, colluding: int = 0, rounds: int = 1) -> Plan:
    kind = Step(measures=(Measure(statistic="row", estimator=MEAN, max_radius=1.0),))
    return Plan(
        steps=with_honest(((kind, rounds),), PERSONS, n_min=n_min, colluding=colluding),
        parties=3,
        trust=TrustModel.SHUFFLE,
        delta=DELTA,
        n_min=n_min,
        colluding=colluding,
    )


def row(units: Records, at: Any) -> Array:
    """A record of one number."""
    return units.X


def silo(last: Array, *, seed: int = 0) -> Silo:
    """Six persons: five with one record 1, and one with these records."""
    X = np.concatenate([np.ones(5), last])[:, None]
    persons = np.concatenate([np.arange(5), np.full(len(last), 5)])
    units = Grouped.of(Records.of(X, np.zeros(len(X))), persons)
    return Silo(
        units,
        {"row": PerPerson(row)},
        unit=Unit.PERSON,
        trusts_shuffler=True,
        rng=np.random.default_rng(seed),
    )


def counts(last: Array, *, seed: int) -> Array:
    """Ones that the silo sends in many rounds, less those of the five other persons' rows."""
    one, circle = silo(last, seed=seed), Circle((0, 1, 2), PERSONS, (None,) * 3)
    one.accept(plan(rounds=DRAWS))
    found = []
    for k in range(DRAWS):
        ((message,),) = open_answer(one.answer(Query(k, {}, (1.0,)), circle), party=0)
        assert message.symbols == 6 * 64  # persons, whatever they hold
        found.append(int(message.payload[0]) - 5 * 4)
    return np.array(found)


@pytest.mark.parametrize("records", RECORDS)
def test_the_law_of_a_message_is_that_of_persons_however_much_they_hold(records: int) -> None:
    """Worst persons send all ones or none of their four grid steps, beside 60 fair bits of each person."""
    for last, shift, seed in ((np.ones(records), 4, 1), (-np.ones(records), 0, 2)):
        drawn = counts(last, seed=seed) - shift
        edges = stats.binom.ppf(np.linspace(0, 1, 9)[1:-1], 360, 0.5)
        seen = np.bincount(np.searchsorted(edges, drawn), minlength=8)
        cuts = np.concatenate([[0.0], stats.binom.cdf(np.ceil(edges), 360, 0.5), [1.0]])
        assert stats.chisquare(seen, DRAWS * np.diff(cuts)).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("n_min", "colluding"), [(3, 0), (3, 1), (2, 1), (2, 0)])
def test_the_claim_is_enumerated_from_the_noise_of_persons_that_are_sure(n_min: int, colluding: int) -> None:
    made = plan(n_min, colluding)
    honest = sum(sorted(PERSONS)[: n_min - colluding])
    event = made.event([6], TrustModel.SHUFFLE)
    assert event == Binomial(60 * honest, 4, 1, neighbours=NEAR)
    claim = epsilon_of(event, DELTA)

    def delta(persons: int, epsilon: float) -> float:
        ones = np.arange(60 * persons + 5)
        here, there = stats.binom.pmf(ones, 60 * persons, 0.5), stats.binom.pmf(ones - 4, 60 * persons, 0.5)
        return float(np.maximum(here - np.exp(epsilon) * there, 0).sum())

    assert delta(honest, claim) <= DELTA
    assert delta(honest - 1, claim) > DELTA  # one person less, and the claim would be false
    # The noise of as many records as persons hold would be claimed to cost less than persons do.
    assert epsilon_of(Binomial(60 * honest * 10, 4, 1, neighbours=NEAR), DELTA) < claim / 2


def test_a_plan_about_records_is_refused_where_units_are_persons() -> None:
    (step, count), *_ = plan().kinds
    about = BinomialMean(dim=1, noise_bits=60, resolution=4)
    records = Step(measures=(Measure(statistic="row", estimator=about, max_radius=1.0),), honest=step.honest)
    made = Plan(steps=((records, count),), parties=3, trust=TrustModel.SHUFFLE, delta=DELTA, n_min=3)
    with pytest.raises(ParameterError, match=r"units of silo .* are of kind person"):
        silo(np.ones(1)).accept(made)


def table(seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Sixty persons in three silos, with one to eight records each."""
    rng = np.random.default_rng(seed)
    persons = np.repeat(np.arange(60), rng.integers(1, 9, size=60))
    X = rng.uniform(-1, 1, (len(persons), 2))
    return X, (X[:, 0] > X[:, 1]).astype(int), persons % 3, persons


def test_estimators_price_persons() -> None:
    X, y, silos, persons = table()
    model = FederatedLogisticRegression(
        trust="shuffle",
        classes=[0, 1],
        bounds=(-1.0, 1.0),
        budget=PrivacyBudget(3.0, 1e-4),
        rounds=2,
        n_min=2,
        random_state=0,
    ).fit(X, y, silos=silos, persons=persons)
    made = model.trained_.plan
    assert {step.honest for step, _ in made.kinds} == {40}  # the persons of two silos of twenty
    for claim in (*model.guarantees_, *model.guarantees_alone_):
        verify(claim)
        assert neighbours_of(claim.event).unit is Unit.PERSON
        assert "replacing one person" in str(claim)
    assert model.guarantee_.epsilon <= 3.0


def test_the_command_line_prices_persons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y, silos, persons = table()
    lines = [
        f"{a:.4f},{b:.4f},{'nsw'[s]},p{p},{'yes' if c else 'no'}"
        for (a, b), s, p, c in zip(X, silos, persons, y, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,site,who,y", *lines]) + "\n")
    (tmp_path / "t.columns.toml").write_text(
        'label = {kind = "classes", column = "y", classes = ["no", "yes"]}\n'
        '[columns]\na = {kind = "numeric", lower = -1.0, upper = 1.0}\n'
        'b = {kind = "numeric", lower = -1.0, upper = 1.0}\n'
    )
    words = ["train", str(tmp_path / "t.csv"), "--label", "y", "--silo-column", "site", "--person", "who"]
    words += ["--trust", "shuffle", "--rounds", "2", "--name", "r", "--json", "--out", str(tmp_path / "runs")]
    assert main(words) == 0
    (entry,) = json.loads(capsys.readouterr().out)["results"]
    assert "replacing one person" in entry["guarantee"]
    assert "replacing one person" in entry["guarantee_alone"]
    assert main(["account", "verify", str(tmp_path / "runs" / "r" / "statement.json")]) == 0
