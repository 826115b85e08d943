"""`tacit train --trust shuffle`: two observers, said and checked wherever a person looks."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli.app import main
from tacit.errors import ParameterError
from tacit.jobs import Job, JobConfig
from tacit.learning import FederatedLinearRegression, FederatedLogisticRegression
from tacit.ledger import Ledger
from tacit.privacy import PrivacyBudget, verify

BEFORE = "before they are shuffled"
ROUNDS = ["--rounds", "2"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    lines = ["a,b,site,y"]
    for k in range(160):
        a, b = rng.uniform(-1, 1, 2)
        lines.append(f"{a:.4f},{b:.4f},{'nsw'[k % 3]},{'yes' if a > b else 'no'}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    (tmp_path / "t.columns.toml").write_text(
        'label = {kind = "classes", column = "y", classes = ["no", "yes"]}\n'
        '[columns]\na = {kind = "numeric", lower = -1.0, upper = 1.0}\n'
        'b = {kind = "numeric", lower = -1.0, upper = 1.0}\n'
    )
    return path


def run(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["train", *words, "--out", str(tmp_path / "runs")])
    return code, *capsys.readouterr()


def on(table: Path, *more: str) -> list[str]:
    return [str(table), "--label", "y", "--silo-column", "site", "--trust", "shuffle", "--name", "r", *more]


def statement_of(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "runs" / "r" / "statement.json"
    return path, json.loads(path.read_text())


def test_the_demo_compares_five(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(["--json", *ROUNDS], tmp_path, capsys)
    assert code == 0
    results = json.loads(out)["results"]
    assert [one["trust"] for one in results] == ["none", "central", "aggregate", "shuffle", "local"]
    (shuffled,) = (one for one in results if one["trust"] == "shuffle")
    assert BEFORE not in shuffled["guarantee"]
    assert BEFORE in shuffled["guarantee_alone"]
    assert shuffled["epsilon"] <= 2.0 < shuffled["epsilon_alone"]
    seen = [one["trust"] for one in results if "guarantee_alone" not in one]
    assert seen == ["none", "central", "local"]


def test_a_run_says_both_observers_everywhere(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(on(table, "--seed", "0", *ROUNDS), tmp_path, capsys)
    assert code == 0
    folder = tmp_path / "runs" / "r"
    found = " ".join(out.split())
    assert "shuffle, each of silos 'n', 's', 'w':" in found
    assert "shuffle, before shuffling, each of silos 'n', 's', 'w':" in found
    page = (folder / "report.html").read_text()
    assert "For whoever sees the messages of a silo before they are shuffled, epsilon is" in page
    figures = json.loads((folder / "metrics.json").read_text())["results"][0]
    assert figures["epsilon_alone"] > figures["epsilon"]
    assert tomllib.loads((folder / "plan.toml").read_text())["n_min"] == 3
    path, statement = statement_of(tmp_path)
    about = [(one["silo"], one.get("alone", False)) for one in statement["about"]]
    assert about == [(silo, before) for before in (False, True) for silo in "nsw"]
    assert main(["account", "verify", str(path)]) == 0


def forged(statement: dict[str, Any], how: str) -> None:
    """Change a statement of three silos, whose last three guarantees are of messages not yet shuffled."""
    match how:
        case "one observer cut":
            statement["guarantees"], statement["about"] = statement["guarantees"][:3], statement["about"][:3]
            statement["count"] = 3
        case "observers exchanged":
            for one in statement["about"]:
                one["alone"] = not one.get("alone", False)
        case "said of the shuffled batch":
            claim, shuffled = statement["guarantees"][3], statement["guarantees"][0]
            claim["observer"] = shuffled["observer"]
            del claim["sentence"]
        case "a smaller price":
            statement["guarantees"][3]["epsilon"] /= 2
        case "the price of the batch":
            statement["guarantees"][3]["event"] = {"event": "gaussian", "noise_multiplier": 100.0}
        case "local trust":
            for one in statement["about"]:
                one["trust"] = "local"
            statement["released"] = "local"


@pytest.mark.parametrize(
    "how",
    [
        "one observer cut",
        "observers exchanged",
        "said of the shuffled batch",
        "a smaller price",
        "the price of the batch",
        "local trust",
    ],
)
def test_forged_statements_are_refused(
    how: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(on(table, "--seed", "0", *ROUNDS), tmp_path, capsys)[0] == 0
    path, statement = statement_of(tmp_path)
    forged(statement, how)
    path.write_text(json.dumps(statement))
    assert main(["account", "verify", str(path)]) != 0


@pytest.mark.parametrize("how", ["alone in the batch", "batch before it is mixed", "batch under local trust"])
def test_events_of_the_other_observer_are_refused_without_the_plan_beside_them(
    how: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clauses come from the event: that of the other observer has none of a shuffler, or too good a price."""
    assert run(on(table, "--seed", "0", *ROUNDS), tmp_path, capsys)[0] == 0
    _, statement = statement_of(tmp_path)
    lonely = tmp_path / "lonely" / "statement.json"
    lonely.parent.mkdir()
    lonely.write_text(json.dumps(statement))
    assert main(["account", "verify", str(lonely)]) == 0
    batches, alone = statement["guarantees"][:3], statement["guarantees"][3:]
    if how == "alone in the batch":
        for claim in batches:
            text = json.dumps(claim["event"]).replace('"Binomial"', '"BinomialAlone"')
            assert text != json.dumps(claim["event"])
            claim["event"] = json.loads(text)
            words = ("shuffler", "noise bits", "who arrives")
            claim["assumptions"] = [c for c in claim["assumptions"] if not any(word in c for word in words)]
            del claim["sentence"]
    elif how == "batch before it is mixed":
        for claim, other in zip(alone, batches, strict=True):
            for field in ("event", "epsilon", "method", "assumptions"):
                claim[field] = other[field]
            del claim["sentence"]
    else:
        statement["guarantees"], statement["about"] = batches, statement["about"][:3]
        statement["count"], statement["released"] = 3, "local"
        for claim, about in zip(batches, statement["about"], strict=True):
            about["trust"] = "local"
            claim["observer"] = f"everybody outside silo {about['silo']!r}, the server included,"
            del claim["sentence"]
    lonely.write_text(json.dumps(statement))
    capsys.readouterr()
    assert main(["account", "verify", str(lonely)]) != 0
    assert "is not what an observer under" in capsys.readouterr().err


def test_a_dry_run_prices_both_and_asks_nothing(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = on(table, "--seed", "0", "--n-min", "2", "--colluding", "1", "--dry-run", *ROUNDS)
    code, out, _ = run(words, tmp_path, capsys)
    assert code == 0
    assert "shuffle, before shuffling" in " ".join(out.split())
    code, out, _ = run([*words, "--json"], tmp_path, capsys)
    (planned,) = json.loads(out)["runs"]
    assert BEFORE in planned["guarantee_alone"]
    assert (planned["plan"]["n_min"], planned["plan"]["colluding"]) == (2, 1)
    assert not (tmp_path / "runs").exists()


def test_ledgers_of_silos_pay_the_price_of_the_batch_once(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accounts = tmp_path / "accounts"
    made = ["ledger", "create", str(accounts), "--silos", "n,s,w", "--epsilon", "2", "--delta", "1e-4"]
    assert main(made) == 0
    words = on(table, "--epsilon", "2", "--delta", "1e-4", "--ledger", str(accounts), *ROUNDS)
    code, _, err = run(words, tmp_path, capsys)
    assert code == 0, err
    _, statement = statement_of(tmp_path)
    prices = {one["epsilon"] for one in statement["guarantees"][:3]}
    spent = {Ledger.open(path).spent().epsilon for path in sorted(accounts.glob("*.ledger"))}
    assert prices & spent
    assert (
        run(words, tmp_path, capsys)[0] == 0
    )  # the same run under its name: at no cost, from what is stored
    assert {Ledger.open(path).spent().epsilon for path in sorted(accounts.glob("*.ledger"))} == spent
    models = [json.loads((tmp_path / "runs" / name / "model.json").read_text()) for name in ("r", "r-2")]
    assert models[0] == models[1]
    assert run([*words[:-2], *ROUNDS, "--name", "another"], tmp_path, capsys)[0] != 0  # nothing is left


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trust": "shuffle", "n_min": 1}, "n_min"),
        ({"trust": "shuffle", "n_min": 3, "colluding": 3}, "colluding must be below n_min"),
        ({"trust": "local", "n_min": 3}, "n_min and colluding are for trust='shuffle' or"),
        ({"trust": "central", "colluding": 1}, "n_min and colluding are for trust='shuffle' or"),
        ({"trust": "shuffle", "algorithm": "whitened"}, "no price behind a shuffler"),
        ({"trust": "shuffle", "neighbours": "zero-out"}, "messages can be counted"),
        ({"trust": "shuffle", "weights": "silos"}, "counts records"),
        ({"trust": "shuffle", "algorithm": "minibatch", "batch": 5, "sampling": "poisson"}, "Poisson"),
    ],
)
def test_what_no_shuffler_hides_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        JobConfig.of(changes)


def test_more_silos_than_there_are_cannot_be_waited_for() -> None:
    job = Job(JobConfig(trust="shuffle", n_min=11, seed=0, delta=1e-5, rounds=2))
    with pytest.raises(ParameterError, match="n_min must be from 2 to the 10 silos"):
        job.preview()


def test_a_comparison_leaves_out_what_cannot_be_shuffled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, reason in (
        (["--neighbours", "zero-out"], "messages can be counted"),
        (["--silos", "iid:1"], "one silo alone has nothing to shuffle"),
    ):
        code, out, _ = run([*words, *ROUNDS], tmp_path, capsys)
        assert code == 0
        assert f"shuffle is left out: {reason}" in " ".join(out.split())


def test_estimators_have_both_guarantees() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (90, 2))
    silos = np.arange(90) % 3
    given: dict[str, Any] = {
        "budget": PrivacyBudget(3.0, 1e-4),
        "bounds": (-1.0, 1.0),
        "random_state": 0,
        "rounds": 2,
    }
    classifier = FederatedLogisticRegression(trust="shuffle", n_min=2, classes=[0, 1], **given)
    classifier.fit(X, (X[:, 0] > 0).astype(int), silos=silos)
    regression = FederatedLinearRegression(trust="shuffle", colluding=1, target_bounds=(-1, 1), **given)
    regression.fit(X, X[:, 0], silos=silos)
    for model in (classifier, regression):
        assert model.guarantee_alone_ is not None
        assert model.guarantee_.epsilon <= 3.0 < model.guarantee_alone_.epsilon
        for one in (*model.guarantees_, *model.guarantees_alone_):
            verify(one)
        assert len(model.guarantees_) == len(model.guarantees_alone_) == 3
    assert classifier.trained_.plan.n_min == 2
    assert (regression.trained_.plan.n_min, regression.trained_.plan.colluding) == (3, 1)
    local = FederatedLogisticRegression(classes=[0, 1], **given).fit(X, (X[:, 0] > 0).astype(int))
    assert local.guarantee_alone_ is None
