"""Whole jobs: what they claim, what they charge, and that the models they leave score what they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import BudgetError, LedgerError, ParameterError
from tacit.jobs import Job, JobConfig, JobResult, Ledgers
from tacit.ledger import Ledger
from tacit.means import AdditiveMean, DiscreteGaussianNoise, GaussianNoise, SignVoteMean
from tacit.privacy import Neighbours, PrivacyBudget, Relation, Unit, verify
from tests.jobs.tables import SILOS, write_charges, write_patients


@pytest.fixture(scope="module")
def compared() -> JobResult:
    """All three trust models on public data with a seed."""
    return Job(JobConfig(trust="all", epsilon=4.0, delta=1e-5, rounds=12, seed=0)).run()


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[Ledgers]:
    """One ledger per silo and one for the server, epsilon 3 each."""
    with ExitStack() as stack:

        def new(name: str) -> Ledger:
            limit, path = PrivacyBudget(3.0, 1e-3), tmp_path / f"{name}.ledger"
            return stack.enter_context(Ledger.create(path, limit=limit, neighbours=Neighbours()))

        yield Ledgers(silos=[new(name) for name in SILOS], central=new("central"), data=new("data set"))


def table_job(path: Path, **settings: Any) -> Job:
    values = {"label": "ill", "silo_column": "site", "rounds": 6, **settings}
    return Job(JobConfig(data=str(path), **values))


def test_every_guarantee_meets_the_budget_wastes_little_and_verifies(compared: JobResult) -> None:
    none, central, summed, shuffled, local = compared.results
    trusts = ["none", "central", "aggregate", "shuffle", "local"]
    assert [one.trust for one in compared.results] == trusts
    assert none.guarantee.epsilon == float("inf")
    assert (len(central.guarantees), len(local.guarantees)) == (1, 10)
    private = (central, summed, shuffled, local)
    for guarantee in (one for result in private for one in result.guarantees):
        assert guarantee.delta == 1e-5
        assert guarantee.epsilon <= 4.0
        verify(guarantee)
    for guarantee in (*summed.alone, *shuffled.alone):
        assert guarantee.epsilon > 4.0
        verify(guarantee)
    for one in private:
        # Noise of a shuffled sum comes in whole bits of every record.
        assert one.guarantee.epsilon > (3.8 if one is shuffled else 3.9)
        assert one.trained.noise_multiplier > 0
    assert none.trained.noise_multiplier == 0


def test_noise_costs_accuracy_in_the_order_of_trust(compared: JobResult) -> None:
    none, central, summed, _, local = (one.score for one in compared.results)
    # Fixed by the seed; even-odd guessing gives one half. Ten rounds without privacy are plain accelerated
    # steps, with it they are of whitened records.
    assert none > 0.75
    assert central + 0.02 > local > 0.6
    assert summed == pytest.approx(central, abs=0.05)


def test_the_models_score_what_the_results_say(compared: JobResult) -> None:
    data = compared.data
    truth = np.asarray(data.classes)[data.y[data.test].astype(int)]
    for one in compared.results:
        assert one.metric == "accuracy"
        assert np.mean(one.model.predict(data.X[data.test]) == truth) == pytest.approx(one.score, abs=0.003)


def test_simulations_on_public_data_are_traced_and_swept(compared: JobResult) -> None:
    for one in compared.results:
        assert [number for number, _, _ in one.trace] == [*range(1, 11)]
        assert all(np.isfinite(loss) and 0 <= score <= 1 for _, loss, score in one.trace)
    budgets = [(point.trust, point.epsilon) for point in compared.sweep]
    assert budgets == [
        *(("central", e) for e in (1.0, 2.0, 4.0, 8.0, 16.0)),
        *(("aggregate", e) for e in (1.0, 2.0, 4.0, 8.0, 16.0)),
        *(("shuffle", e) for e in (4.0, 8.0, 16.0)),  # noise bits grow as 1 / epsilon^2
        *(("local", e) for e in (1.0, 2.0, 4.0, 8.0, 16.0)),
    ]
    scores = compared.results[-1].scores
    (own,) = (point for point in compared.sweep if (point.trust, point.epsilon) == ("local", 4.0))
    assert (own.score, own.standard_error) == (scores.score, scores.standard_error)
    for point in compared.sweep:  # the accuracy of records that count alike: binomial
        assert point.standard_error == pytest.approx(
            (point.score * (1 - point.score) / (scores.records - 1)) ** 0.5, rel=1e-9
        )
    assert all(g.simulated for one in compared.results[1:] for g in one.guarantees)


def test_a_seed_repeats_a_run_and_another_one_does_not() -> None:
    first, again, other = (
        Job(JobConfig(rounds=3, seed=seed)).run().results[0].trained.w for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_public_data_without_a_seed_leave_no_trace() -> None:
    result = Job(JobConfig(rounds=3)).run()
    assert result.sweep == ()
    assert result.results[0].trace == ()
    assert not result.results[0].guarantee.simulated


def test_delta_is_the_inverse_square_of_the_smallest_silo(tmp_path: Path) -> None:
    job = Job(JobConfig(silos="dirichlet:5:0.5", seed=2))
    smallest = min(len(index) for index in job.data.train)
    assert job.delta == pytest.approx(1 / smallest**2)
    assert smallest < max(len(index) for index in job.data.train)
    result = table_job(write_patients(tmp_path), seed=0).run()
    assert result.delta == result.results[0].guarantee.delta == pytest.approx(1 / 48**2)
    assert Job(JobConfig(delta=1e-6, seed=2)).delta == 1e-6


def test_delta_counts_persons_where_the_number_of_their_records_is_private(tmp_path: Path) -> None:
    few, many = (
        table_job(write_patients(tmp_path, visits=visits), person="patient").delta for visits in (1, 3)
    )
    assert few == many == pytest.approx(1 / 48**2)


def test_delta_must_be_named_for_tiny_silos(tmp_path: Path) -> None:
    path = write_patients(tmp_path, per_silo=11)
    with pytest.raises(ParameterError, match="fewer than 10 units, got 'auto' and 9"):
        table_job(path).run()
    assert table_job(path, delta=1e-3).run().results[0].guarantee.delta == 1e-3
    assert table_job(path, trust="none").run().results[0].guarantee.epsilon == float("inf")


def test_table_jobs_use_exact_noise_and_secret_randomness(tmp_path: Path) -> None:
    path = write_patients(tmp_path)
    result = table_job(path).run()
    (one,) = result.results
    for step, _ in one.trained.plan.kinds:
        (measure,) = step.measures
        assert isinstance(measure.estimator, AdditiveMean)
        assert isinstance(measure.estimator.noise, DiscreteGaussianNoise)
    assert one.trained.plan.rounds == one.trained.rounds == 6
    assert not any(g.simulated for g in one.guarantees)
    assert (one.trace, result.sweep) == ((), ())
    assert all("kept by the data's owner" in " ".join(g.assumptions) for g in one.guarantees)
    for guarantee in one.guarantees:
        verify(guarantee)
    assert not np.array_equal(one.trained.w, table_job(path).run().results[0].trained.w)


def test_a_seeded_table_job_is_simulated_and_still_leaves_no_trace(tmp_path: Path) -> None:
    result = table_job(write_patients(tmp_path), seed=0).run()
    (one,) = result.results
    estimator = one.trained.plan.kinds[0][0].measures[0].estimator
    assert isinstance(estimator, AdditiveMean)
    assert isinstance(estimator.noise, GaussianNoise)
    assert all(g.simulated for g in one.guarantees)
    assert (one.trace, result.sweep) == ((), ())


def test_what_bounds_were_read_off_is_assumed(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="read off the data"):
        job = table_job(write_patients(tmp_path, public=False), rounds=2)
    assert any("age" in clause for clause in job.run().results[0].guarantee.assumptions)


def test_persons_are_the_unit_where_they_are_named(tmp_path: Path) -> None:
    path = write_patients(tmp_path, visits=3, per_silo=40)
    (one,) = table_job(path, person="patient").run().results
    assert one.guarantee.neighbours == Neighbours(Relation.REPLACE_ONE, Unit.PERSON)
    assert "no person has records in two silos" in one.guarantee.assumptions
    assert "the order in which persons first appear in the tables is public" in one.guarantee.assumptions
    (plain,) = table_job(path).run().results
    assert plain.guarantee.neighbours.unit is Unit.RECORD


def test_neighbours_may_be_blanked_out(tmp_path: Path) -> None:
    (one,) = table_job(write_patients(tmp_path), neighbours="zero-out", delta=1e-3).run().results
    assert one.guarantee.neighbours.relation is Relation.ZERO_OUT


def test_regression_scores_in_the_units_of_the_target(tmp_path: Path) -> None:
    job = table_job(write_charges(tmp_path), label="charges", task="regression", trust="none", rounds=200)
    (one,) = job.run().results
    data = job.data
    truth = (data.y[data.test] + 1) * 30000
    predicted = one.model.predict(data.X[data.test])
    assert one.metric == "rmse"
    assert one.score == pytest.approx(float(np.sqrt(np.mean((predicted - truth) ** 2))), rel=1e-6)
    assert one.score < 0.5 * float(truth.std())
    (private,) = table_job(write_charges(tmp_path), label="charges", task="regression").run().results
    assert np.isfinite(private.score)
    assert private.guarantee.epsilon <= 2.0


def test_a_missing_target_is_no_error_and_scored_as_the_middle(tmp_path: Path) -> None:
    path = write_charges(tmp_path)
    held_out = int(table_job(path, label="charges", task="regression", seed=1).data.test[0])
    lines = path.read_text().splitlines()
    lines[1 + held_out] = lines[1 + held_out].rpartition(",")[0] + ","
    path.write_text("\n".join(lines) + "\n")
    job = table_job(path, label="charges", task="regression", seed=1)
    assert np.isnan(job.data.y[held_out])
    (one,) = job.run().results
    truth = (np.nan_to_num(job.data.y[job.data.test]) + 1) * 30000
    predicted = one.model.predict(job.data.X[job.data.test])
    assert one.score == pytest.approx(float(np.sqrt(np.mean((predicted - truth) ** 2))), rel=1e-4)


def test_held_out_records_are_scored_by_silo_and_person(tmp_path: Path) -> None:
    job = table_job(write_patients(tmp_path, visits=3), person="patient", seed=0, trust="none")
    data, (one,) = job.data, job.run().results
    assert data.test_silos is not None
    scores = one.scores
    assert (scores.records, scores.units) == (3 * 36, 36)
    truth = np.asarray(data.classes)[data.y[data.test].astype(int)]
    right = one.model.predict(data.X[data.test]) == truth
    assert [silo.name for silo in scores.silos] == list(SILOS)
    for number, silo in enumerate(scores.silos):
        assert silo.score == pytest.approx(np.mean(right[data.test_silos == number]))
    # The three records of a person are alike, so a person is right or wrong as one.
    shares = [np.mean(right[data.persons[data.test] == who]) for who in np.unique(data.persons[data.test])]  # type: ignore[index]
    assert scores.standard_error == pytest.approx(np.std(shares, ddof=1) / np.sqrt(36))


@pytest.mark.parametrize(("trust", "algorithm"), [("none", "local"), ("central", "accelerated")])
def test_steps_are_of_the_size_of_a_regression(tmp_path: Path, trust: str, algorithm: str) -> None:
    job = JobConfig(
        data=str(write_charges(tmp_path)),
        label="charges",
        silo_column="site",
        task="regression",
        trust=trust,
        algorithm=algorithm,
        epsilon=4.0,
        seed=1,
    )
    run = Job(job).run()
    truth = run.data.y[run.data.test] * 30000
    # Steps for a classifier's diameter leave the private model worse than the mean, at 1.5 times this spread.
    assert run.results[0].score < 0.2 * float(truth.std())


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "minibatch", "batch": 0.25},
        {"algorithm": "minibatch", "batch": 16, "sampling": "disjoint", "rounds": 3},
        {"algorithm": "multistage", "rounds": 120, "mu": 0.05},
        {"algorithm": "local", "local_steps": 2, "batch": 8},
        {"algorithm": "accelerated", "weights": "silos", "participants": 2, "l2": 0.1},
        {"algorithm": "sign-vote", "batch": 0.25, "participants": 2},
        {"algorithm": "sign-vote", "sampling": "disjoint", "batch": 16, "rounds": 3, "trust": "central"},
        {
            "algorithm": "sign-vote",
            "sampling": "fixed",
            "neighbours": "zero-out",
            "delta": 1e-3,
            "rounds": 20,
        },
    ],
    ids=lambda settings: settings["algorithm"] + str(settings.get("sampling", "")),
)
def test_all_algorithms_keep_to_the_budget(tmp_path: Path, settings: dict[str, Any]) -> None:
    (one,) = table_job(write_patients(tmp_path), epsilon=1.0, seed=0, **settings).run().results
    assert 0 < one.guarantee.epsilon <= 1.0
    assert np.isfinite(one.trained.w).all()
    votes = isinstance(one.trained.plan.kinds[0][0].measures[0].estimator, SignVoteMean)
    assert votes == (settings["algorithm"] == "sign-vote")


def test_penalties_reach_the_server(tmp_path: Path) -> None:
    path, public = write_patients(tmp_path), {"trust": "none", "rounds": 40, "seed": 0}
    (plain,), (sparse,), (small,) = (
        table_job(path, **public, **penalty).run().results for penalty in ({}, {"l1": 0.02}, {"l2": 0.1})
    )
    assert not np.any(plain.trained.w == 0)
    assert np.any(sparse.trained.w == 0)
    assert 0 < np.linalg.norm(small.trained.w) < np.linalg.norm(plain.trained.w) / 2


def test_progress_is_told_every_round() -> None:
    seen: list[tuple[str, int, int]] = []
    Job(JobConfig(trust="central", rounds=4, delta=1e-5)).run(progress=lambda *said: seen.append(said))
    assert seen == [("central", number, 4) for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("algorithm", ["accelerated", "sign-vote"])
def test_silos_are_charged_their_price_under_local_trust(
    tmp_path: Path, accounts: Ledgers, algorithm: str
) -> None:
    job = table_job(write_patients(tmp_path), name="june", algorithm=algorithm)
    (one,) = job.run(ledgers=accounts).results
    for ledger, guarantee in zip(accounts.silos, one.guarantees, strict=True):
        assert [entry.run for entry in ledger.entries()] == ["june-local"]
        assert (ledger.spent().epsilon, ledger.spent().delta) == (guarantee.epsilon, guarantee.delta)
    assert accounts.central.entries() == []


def test_the_server_is_charged_under_central_trust(tmp_path: Path, accounts: Ledgers) -> None:
    job = table_job(write_patients(tmp_path), trust="central", epsilon=1.0)
    (one,) = job.run(ledgers=accounts).results
    assert accounts.central.spent().epsilon == one.guarantee.epsilon
    assert all(ledger.entries() == [] for ledger in accounts.silos)


class Killed(BaseException):
    """What no code catches."""


@pytest.mark.parametrize("trust", ["local", "central"])
@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "minibatch", "batch": 0.25},
        {"algorithm": "minibatch", "batch": 8, "sampling": "disjoint"},
        {"algorithm": "accelerated", "participants": 2},
        {"algorithm": "sign-vote", "participants": 1},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_an_interrupted_job_goes_on_and_pays_once(
    tmp_path: Path, accounts: Ledgers, trust: str, settings: dict[str, Any]
) -> None:
    path = write_patients(tmp_path)
    rounds = 0

    def stop(trust: str, done: int, total: int) -> None:
        nonlocal rounds
        rounds += 1
        if rounds in (2, 5):
            raise Killed

    def run(**other: Any) -> np.ndarray[Any, Any]:
        job = table_job(path, trust=trust, epsilon=1.0, **settings, **other)
        return job.run(ledgers=accounts, progress=stop).results[0].trained.w

    for _ in range(2):
        with pytest.raises(Killed):
            run()
    ended, again = run(), run()
    np.testing.assert_array_equal(ended, again)  # whose every answer is a stored one
    charged = [accounts.central] if trust == "central" else accounts.silos
    for ledger in charged:
        (entry,) = ledger.entries()
        assert 0 < entry.epsilon <= 1.0
    with pytest.raises(
        LedgerError, match=r"is reserved already, with another plan or price.*nothing was spent"
    ):
        run(rounds=4)
    assert not np.array_equal(run(name="other"), ended)


def test_a_run_does_not_go_on_with_another_regulariser(tmp_path: Path, accounts: Ledgers) -> None:
    path = write_patients(tmp_path)

    def run(**other: Any) -> Any:
        settings: dict[str, Any] = {"name": "kept", "algorithm": "minibatch", "rounds": 2, "l2": 0.1, **other}
        return table_job(path, epsilon=0.3, delta=1e-5, **settings).run(ledgers=accounts).results[0].trained.w

    first = run()
    assert np.array_equal(run(), first)
    for other in ({"l2": 0.2}, {"l1": 0.1}, {"group_lasso": 0.1}, {"domain": "ball:0.01"}):
        with pytest.raises(LedgerError, match=r"another plan or price.*nothing was spent"):
            run(**other)
        assert not np.array_equal(run(name="-".join(other), **other), first)
    assert np.linalg.norm(run(name="domain", domain="ball:0.01")) <= 0.01 + 1e-12


def test_groups_are_the_columns_of_the_description() -> None:
    path = str(Path(__file__).parents[1] / "data" / "clinics.csv")

    def weights(**penalty: Any) -> dict[str, float]:
        settings: dict[str, Any] = {"label": "y", "silo_column": "site", "trust": "none", "seed": 0}
        job = Job(
            JobConfig(
                data=path, algorithm="minibatch", rounds=400, options={"average": 0.01}, **settings, **penalty
            )
        )
        assert job.data.feature_columns[-2:] == ("smoker", "smoker")
        return dict(zip(job.data.feature_names, job.run().results[0].trained.w[:-1], strict=True))

    # The l1 penalty drops one category of two; groups stand and fall together, whatever the strength.
    sparse = weights(l1=0.03)
    assert (sparse["smoker=no"] == 0) != (sparse["smoker=yes"] == 0)
    dropped = []
    for strength in (0.005, 0.02, 0.08):
        found = weights(group_lasso=strength)
        assert (found["smoker=no"] == 0) == (found["smoker=yes"] == 0)
        dropped.append(sum(weight == 0 for weight in found.values()))
    assert dropped[0] < dropped[1] < dropped[2]
    assert all(weight >= 0 for weight in weights(domain="box:0:inf").values())
    assert sum(weights(l2=0.01, domain="simplex:2").values()) == pytest.approx(2)


def test_an_overdraft_at_one_silo_costs_nobody_anything(tmp_path: Path, accounts: Ledgers) -> None:
    last = accounts.silos[-1]
    last.reserve("before", price=PrivacyBudget(1.5, 1e-9), plan_digest=b"plan", event=b"")
    with pytest.raises(BudgetError, match=r"silo 'west' has left: 1\.5 .*; nothing was spent"):
        table_job(write_patients(tmp_path), epsilon=2.0).run(ledgers=accounts)
    assert all(ledger.entries() == [] for ledger in accounts.silos[:-1])
    assert [entry.run for entry in last.entries()] == ["before"]
    table_job(write_patients(tmp_path), epsilon=1.5).run(ledgers=accounts)
    assert last.remaining().epsilon == pytest.approx(0.0, abs=1e-3)


def test_an_overdraft_of_delta_is_refused(tmp_path: Path, accounts: Ledgers) -> None:
    job = table_job(write_patients(tmp_path), epsilon=1.0, delta=2e-3)
    with pytest.raises(BudgetError, match="nothing was spent"):
        job.run(ledgers=accounts)
    assert all(ledger.entries() == [] for ledger in accounts.silos)


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"seed": 0}, ParameterError, "seeded noise protects nobody"),
        ({"trust": "none"}, LedgerError, "not trained without privacy"),
        ({"trust": "all"}, LedgerError, "not trained without privacy"),
        ({"silo_column": None, "silos": "iid:2"}, LedgerError, "one ledger per silo, got 3 for 2"),
    ],
)
def test_jobs_that_ledgers_do_not_fit_are_refused(
    tmp_path: Path, accounts: Ledgers, settings: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        table_job(write_patients(tmp_path), **settings).run(ledgers=accounts)
    assert all(ledger.entries() == [] for ledger in [*accounts.silos, accounts.central])


def test_progress_knows_the_number_of_rounds_even_where_it_was_chosen() -> None:
    seen: list[tuple[str, int, int]] = []
    job = JobConfig(trust="central", epsilon=2.0, delta=1e-5, seed=0)
    result = Job(job).run(progress=lambda trust, done, total: seen.append((trust, done, total)))
    rounds = result.results[0].trained.rounds
    assert seen[:rounds] == [("central", k + 1, rounds) for k in range(rounds)]
    budgets = {note for note, _, _ in seen[rounds:]}  # of the picture, which takes four runs more
    assert budgets == {f"central, epsilon {one}" for one in ("0.5", "1", "4", "8")}
    assert [(done, total) for note, done, total in seen if note.endswith("8")][-1][0] == seen[-1][2]


def test_silos_that_train_a_network_alone_start_where_the_common_one_does() -> None:
    """From weights of 0, where the gradient of all but the last constant is 0, they would know one class."""
    config = JobConfig(trust="none", algorithm="adaped", model="mlp:6", rounds=3, seed=0)
    personal = Job(config).run().results[0].personal
    assert personal is not None
    assert personal.alone > 0.75
    assert personal.score > 0.75
