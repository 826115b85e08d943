"""`tacit vote` from the outside: designs and their files, what a release claims, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tacit.ledger import Ledger
from tacit.voting import NoiseFunction, certify, majority_error

ELEVEN = ["--teachers", "11", "--m", "3", "--epsilon", "0.1"]


def answer(argv: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["vote", *argv, "--json"]) == 0
    captured = capsys.readouterr()
    assert all(
        line.startswith(("warning: epsilon ", "warning: delta ")) for line in captured.err.splitlines()
    )
    found: dict[str, Any] = json.loads(captured.out)
    return found


def refusal(argv: list[str], capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    assert main(["vote", *argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


@pytest.fixture
def gamma(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The optimal design of eleven teachers, on file."""
    path = tmp_path / "gamma.json"
    answer(["design", *ELEVEN, "--method", "optimized", "--out", str(path)], capsys)
    return path


def cast(path: Path, votes: Any) -> Path:
    np.save(path, np.asarray(votes))
    return path


def test_a_design_is_certified_and_optimal(gamma: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = NoiseFunction.from_json(gamma.read_bytes())
    # As in the docstring of `optimise_gamma`.
    assert [round(g, 4) for g in noise.gamma] == [0.9397, 0.5421, 1.0, 1.0, 0.9773, 1.0]
    found = answer(["certify", str(gamma)], capsys)
    assert found["delta_required"] == 0.0
    assert found["slack"] == certify(noise.gamma, noise.setting, exact=True).slack >= 0
    assert found["gamma"] == list(noise.gamma)
    assert (found["teachers"], found["m"], found["target_epsilon"]) == (11, 3.0, pytest.approx(0.3))
    again = answer(["certify", str(gamma), "--exact"], capsys)
    assert again["exact"]


def test_a_record_that_reaches_few_teachers(capsys: pytest.CaptureFixture[str]) -> None:
    eleven = ["design", "--teachers", "11", "--epsilon", "0.1"]
    found = answer([*eleven, "--m", "3", "--affected", "3"], capsys)
    assert found["affected"] == 3
    assert min(found["gamma"]) > 1 - 1e-10
    assert main(["vote", *eleven, "--m", "2", "--affected", "3"]) == 0
    assert "one record reaches at most 3" in capsys.readouterr().out
    assert "m must be in [1, 3]" in refusal([*eleven, "--m", "4", "--affected", "3"], capsys)
    assert "affected must be" in refusal([*eleven, "--m", "1", "--affected", "12"], capsys)


def test_a_strong_consensus_has_its_own_design(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["design", *ELEVEN, "--mean", "0.85"], capsys)
    # The prior T_P of Jiang (2025), Figure B.7.
    tabled = [0.4303377, 0.7429853, 0.9357463, 1, 1, 1]
    assert found["gamma"] == pytest.approx(tabled, abs=1e-6)
    assert "mean is of the prior" in refusal(
        ["design", *ELEVEN, "--mean", "0.85", "--prior", "uniform"], capsys
    )
    assert "mean must be in (1/2, 1]" in refusal(["design", *ELEVEN, "--mean", "0.5"], capsys)


def test_designs_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    default = answer(["design", *ELEVEN], capsys)
    assert (default["method"], default["monotone"]) == ("optimal, monotone", True)
    many = ["design", "--teachers", "63", "--m", "3", "--epsilon", "0.1", "--delta-teacher", "1e-6"]
    assert answer(many, capsys)["monotone"]  # more teachers than the exact program takes
    found = answer(["design", *ELEVEN, "--method", "double-subsampling"], capsys)
    assert found["method"] == "double-subsampling"
    assert found["out"] is None
    assert found["gamma"] == sorted(found["gamma"])
    tied = answer(["design", "--teachers", "4", "--m", "2", "--epsilon", "0.5", "--ties", "coin"], capsys)
    assert (tied["ties"], len(tied["gamma"])) == ("coin", 2)
    assert main(["vote", "design", *ELEVEN, "--method", "constant"]) == 0
    assert "6 : 5" in capsys.readouterr().out


def test_a_file_that_was_changed_is_refused(gamma: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stated = json.loads(gamma.read_text())
    stated["gamma"] = [1.0] * 6
    gamma.write_text(json.dumps(stated))
    for argv in (["certify", str(gamma)], ["plot", str(gamma), "--out", "x.png"]):
        assert "does not meet the target" in refusal(argv, capsys, code=1)


def test_a_release_has_the_law_of_its_design(
    gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ones, queries = 7, 40_000
    votes = cast(tmp_path / "votes.npy", np.tile([1] * ones + [0] * (11 - ones), (queries, 1)))
    out = tmp_path / "labels.npy"
    found = answer(["release", str(gamma), "--votes", str(votes), "--out", str(out), "--seed", "1"], capsys)
    labels = np.load(out)
    assert labels.shape == (queries,)
    assert set(np.unique(labels)) == {0, 1}
    chance = NoiseFunction.from_json(gamma.read_bytes()).output_probabilities()[ones]
    # Hoeffding: beyond this distance with probability below 1e-9.
    assert abs(labels.mean() - chance) < np.sqrt(np.log(2e9) / (2 * queries))
    assert found["simulated"]
    assert "Simulated" in found["guarantee"]


def test_secret_coins_differ_and_a_seed_repeats(
    gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = cast(tmp_path / "votes.npy", np.eye(11, dtype=bool).repeat(40, axis=0) | (np.arange(11) < 6))

    def published(*more: str) -> list[int]:
        out = tmp_path / "labels.npy"
        found = answer(["release", str(gamma), "--votes", str(votes), "--out", str(out), *more], capsys)
        assert found["simulated"] == ("--seed" in more)
        labels: list[int] = np.load(out).tolist()
        return labels

    assert published() != published()
    assert published("--seed", "4") == published("--seed", "4") != published("--seed", "5")


@pytest.mark.parametrize(
    ("options", "epsilon"),
    [
        (["--teachers-are", "fresh"], 20 * 0.3),
        (["--teachers-are", "fixed"], 11 * 0.1),
        (["--teachers-are", "fixed", "--shards", "disjoint"], 0.1),
        (["--teachers-are", "fresh", "--shards", "disjoint"], 20 * 0.1),
        # Nobody said: no less than fresh and fixed together.
        ([], 20 * 0.3 + 11 * 0.1),
    ],
)
def test_what_a_release_claims(
    options: list[str], epsilon: float, gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = cast(tmp_path / "votes.npy", np.ones((20, 11), dtype=np.int8))
    found = answer(
        ["release", str(gamma), "--votes", str(votes), "--out", str(tmp_path / "o.npy"), *options], capsys
    )
    assert found["epsilon"] == pytest.approx(epsilon, rel=1e-6)
    assert (found["delta"], found["queries"]) == (0.0, 20)
    clauses = found["guarantees"][0]["assumptions"]
    assert len([clause for clause in clauses if "private by itself with epsilon 0.1" in clause]) == 1
    assert found["guarantee"].count("private by itself") == 1
    assert any("to several queries" in clause for clause in clauses) == (not options)
    assert ("drawn afresh" in found["guarantee"]) == ("fresh" in options)
    assert ("each record reaches one teacher" in found["guarantee"]) == ("disjoint" in options)
    assert any("nobody said" in note for note in found["notes"]) == (not options)
    statement = tmp_path / "statement.json"
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 0
    found["guarantees"][0]["epsilon"] *= 0.9
    del found["guarantees"][0]["sentence"]
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 1


def test_one_answer_costs_its_certificate_only_where_the_prices_add_up(
    gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Answers of the same models are no composition: ten single ones may cost more than ten certificates."""
    votes = cast(tmp_path / "votes.npy", np.zeros((1, 11), dtype=int))
    base = ["release", str(gamma), "--votes", str(votes), "--out", str(tmp_path / "o.npy")]
    for more, epsilon in (
        ([], 1.1 + 0.3),
        (["--teachers-are", "fixed"], 1.1),
        (["--teachers-are", "fresh"], 0.3),
        (["--alone"], 0.3),
        (["--alone", "--teachers-are", "fixed"], 0.3),
        (["--alone", "--neighbours", "add-remove"], 0.3),
    ):
        found = answer([*base, *more], capsys)
        assert found["epsilon"] == pytest.approx(epsilon)
        assert ("answer nothing else" in found["guarantee"]) == ("--alone" in more)
    assert "--alone cannot go" in refusal([*base, "--alone", "--ledger", "l"], capsys)
    two = cast(tmp_path / "two.npy", np.zeros((2, 11), dtype=int))
    base[3] = str(two)
    assert "alone is for one query" in refusal([*base, "--alone"], capsys)


def test_a_ledger_pays_before_every_release(
    gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = cast(tmp_path / "votes.npy", np.ones((3, 11), dtype=int))
    ledger, out = tmp_path / "clinic.ledger", tmp_path / "labels.npy"
    assert main(["ledger", "create", str(ledger), "--epsilon", "2", "--delta", "0"]) == 0
    capsys.readouterr()
    base = ["release", str(gamma), "--votes", str(votes), "--out", str(out), "--ledger", str(ledger)]
    base += ["--teachers-are", "fresh"]
    for spent in (0.9, 1.8):
        answer(base, capsys)
        with Ledger.open(ledger) as account:
            assert account.spent().epsilon == pytest.approx(spent)
    out.unlink()
    assert "nothing was spent" in refusal(base, capsys, code=4)
    assert "about" in refusal([*base, "--neighbours", "add-remove"], capsys, code=5)
    assert "--ledger is for bits that leave" in refusal([*base, "--seed", "1"], capsys)
    refusal([*base[:-4], "--ledger", str(tmp_path / "none.ledger")], capsys, code=5)
    assert not out.exists()
    with Ledger.open(ledger) as account:
        assert account.spent().epsilon == pytest.approx(1.8)
        assert len(account.entries()) == 2


def test_an_array_that_claims_to_be_huge_is_refused(
    gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = cast(tmp_path / "votes.npy", np.zeros((5, 11), dtype=np.int8)).read_bytes()
    forged = whole.replace(b"(5, 11), }" + b" " * 14, b"(500000000000000, 11), }")
    assert forged != whole
    huge = tmp_path / "huge.npy"
    huge.write_bytes(forged)
    line = refusal(["release", str(gamma), "--votes", str(huge), "--out", str(tmp_path / "o.npy")], capsys)
    assert "votes must be an array" in line


def test_several_ledgers_pay_all_or_none(
    gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = cast(tmp_path / "votes.npy", np.ones((3, 11), dtype=int))
    ledgers = [tmp_path / f"{name}.ledger" for name in ("first", "second")]
    for path, limit in zip(ledgers, ("5", "1"), strict=True):
        assert main(["ledger", "create", str(path), "--epsilon", limit, "--delta", "0"]) == 0
    capsys.readouterr()
    base = ["release", str(gamma), "--votes", str(votes), "--out", str(tmp_path / "labels.npy")]
    base += ["--teachers-are", "fresh"]
    both = [*base, "--ledger", str(ledgers[0]), "--ledger", str(ledgers[1])]
    answer(both, capsys)
    refusal(both, capsys, code=4)
    for path in ledgers:
        with Ledger.open(path) as account:
            assert account.spent().epsilon == pytest.approx(0.9)
    assert any("no --ledger counts it" in note for note in answer(base, capsys)["notes"])


def test_a_plan_ranks_by_error_and_prices_all_queries(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(
        ["plan", "--teachers", "35", "--epsilon", "0.1", "--delta-teacher", "1e-5", "--queries", "100"],
        capsys,
    )
    errors = [one["error"] for one in found["designs"]]
    assert errors[:-1] == sorted(errors[:-1])
    assert found["designs"][0]["name"] == "optimal-monotone"
    last = found["designs"][-1]  # better on average, and a unanimous vote is often turned
    assert (last["name"], last["falls"]) == ("optimal", True)
    assert last["error"] < errors[0]
    assert last["unanimous_error"] > 0.17 > 0.002 > found["designs"][0]["unanimous_error"]
    assert found["m"] == 3.0
    for one in found["designs"]:
        price = {(c["teachers_are"], c["shards"]): c["epsilon"] for c in one["totals"]["by_teachers"]}
        assert one["totals"]["delta"] == pytest.approx(100 * found["target_delta"])
        assert price["fixed", "disjoint"] <= 0.1 * (1 + 1e-9)
        assert price["fixed", "shared"] <= 3.5 * (1 + 1e-9)
        assert price["fresh", "disjoint"] <= price["fresh", "shared"] * (1 + 1e-9)
        assert price["fresh", "shared"] <= 100 * found["target_epsilon"] * (1 + 1e-9)


@pytest.mark.parametrize("prior", ["uniform", "polarised"])
def test_the_planned_error_is_that_of_its_prior(prior: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["plan", "--teachers", "5", "--epsilon", "0.1", "--queries", "2", "--m", "2", "--prior", prior]
    found = answer(argv, capsys)
    rng = np.random.default_rng(5)
    edge = 0.5 if prior == "uniform" else 0.3
    p = rng.uniform(0, edge, (40_000, 5))
    p = np.where(rng.random(p.shape) < 0.5, p, 1 - p)
    for one in found["designs"]:
        errors = majority_error(one["gamma"], p)
        spread = np.hypot(one["error_std"], errors.std() / 200)
        assert abs(errors.mean() - one["error"]) < 6 * spread + 1e-12
    assert main(["vote", *argv]) == 0
    assert "fixed, disjoint" in capsys.readouterr().out


def test_a_plot_is_a_picture(gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "gamma.png"
    found = answer(["plot", str(gamma), "--out", str(picture)], capsys)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert set(found["designs"]) >= {"optimal", "constant", "double-subsampling"}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["design", "--teachers", "10", "--m", "3", "--epsilon", "0.1"], "--ties coin"),
        (["design", "--teachers", "10", "--m", "3", "--epsilon", "0.1", "--ties", "dice"], "ties must be"),
        (["design", "--teachers", "0", "--m", "1", "--epsilon", "0.1"], "teachers must be"),
        (["design", "--teachers", "11", "--m", "12", "--epsilon", "0.1"], "m must be in [1, 11]"),
        (["design", "--teachers", "11", "--m", "0.5", "--epsilon", "0.1"], "m must be in [1, 11]"),
        (["design", "--teachers", "11", "--m", "nan", "--epsilon", "0.1"], "m must be a finite number"),
        (["design", "--teachers", "11", "--m", "3", "--epsilon", "0"], "epsilon must be"),
        (["design", "--teachers", "11", "--m", "3", "--epsilon", "-1"], "epsilon must be"),
        (["design", *ELEVEN, "--method", "best"], "method must be one of constant-composed"),
        (["design", *ELEVEN, "--prior", "best"], "prior must be one of"),
        (["design", *ELEVEN, "--out", "no/gamma.json"], "out must be"),
        (["certify", "no.json"], "artefact must be a file that exists"),
        (["release", "no.json", "--votes", "v.npy", "--out", "o.npy"], "artefact must be"),
        (["plan", "--teachers", "11", "--epsilon", "0.1", "--queries", "0"], "queries must be"),
        (["plan", "--teachers", "10", "--epsilon", "0.1", "--queries", "1"], "--ties coin"),
        (["plan", "--teachers", "9", "--epsilon", "1", "--queries", "99", "--delta-teacher", "0.1"], "delta"),
        (["plot", "no.json", "--out", "gamma.txt"], "must be a file that ends with"),
    ],
)
def test_a_wrong_question_is_one_line(
    argv: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refusal(argv, capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("votes", "more", "says"),
    [
        (np.full((2, 11), 2), [], "votes must be 0 or 1"),
        (np.full((2, 11), -1), [], "votes must be 0 or 1"),
        (np.full((2, 11), 0.5), [], "dtype float64"),
        (np.ones((2, 10), dtype=int), [], "votes must have shape (queries, 11)"),
        (np.ones(11, dtype=int), [], "votes must have shape"),
        (np.ones((0, 11), dtype=int), [], "at least one row"),
        (None, [], "votes must be a file that exists"),
        (b"no array", [], "as numpy.save writes it"),
        (np.ones((2, 11), dtype=int), ["--teachers-are", "wise"], "teachers-are must be"),
        (np.ones((2, 11), dtype=int), ["--shards", "some"], "shards must be"),
        (np.ones((2, 11), dtype=int), ["--neighbours", "next"], "neighbours must be"),
        (np.ones((2, 11), dtype=int), ["--delta", "1"], "delta must be"),
        (np.ones((2, 11), dtype=int), ["--seed", "-1"], "seed must be"),
        (np.ones((2, 11), dtype=int), ["--out", "labels.txt"], "out must be a file that ends with .npy"),
    ],
)
def test_wrong_votes_publish_nothing(
    votes: Any, more: list[str], says: str, gamma: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "votes.npy", tmp_path / "labels.npy"
    if isinstance(votes, bytes):
        file.write_bytes(votes)
    elif votes is not None:
        cast(file, votes)
    said = refusal(["release", str(gamma), "--votes", str(file), "--out", str(out), *more], capsys)
    assert says in said
    assert not out.exists()
