"""Prices that promise next to nothing: each command and estimator says so once, and goes on."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from tacit.cli import main
from tacit.errors import PrivacyWarning
from tacit.learning import FederatedLinearRegression, FederatedLogisticRegression
from tacit.privacy import PrivacyBudget, Unit
from tacit.privacy.weak import reveals_one, warn_of_weak
from tacit.voting import PrivateVotingClassifier

DATA = Path(__file__).parents[1] / "data"
EPSILON = "epsilon 21 promises next to nothing: a factor of e^21 rules no conclusion out"
TABLE = ["--epsilon", "21", "--seed", "1"]
CLINICS = ["--data", "clinics.csv", "--label", "y", "--silo-column", "site", *TABLE]
AGE = ["mean", "clinics.csv", "--columns", "age", "--lower", "18", "--upper", "90", *TABLE]


@pytest.mark.parametrize(
    ("epsilon", "delta", "units", "said"),
    [
        (20.0, 1e-5, 99_999, []),
        (20.001, 0.0, None, ["epsilon 20.001 promises"]),
        (1.0, 0.01, None, []),
        (1.0, 0.01, 99, []),
        (1.0, 0.01, 100, ["delta 0.01 is not below 1 / 100, one over the number of persons"]),
        (30.0, 0.5, 2, ["epsilon 30 promises", "delta 0.5 is not below 1 / 2"]),
        (np.inf, 0.5, 1000, []),  # nothing is claimed: there is no promise to be weak
    ],
)
def test_the_limits_are_20_and_one_over_the_units(
    epsilon: float, delta: float, units: int | None, said: list[str]
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_weak(epsilon, delta, units=units, unit=Unit.PERSON)
    assert [one.category for one in caught] == [PrivacyWarning] * len(said)
    assert all(start in str(one.message) for one, start in zip(caught, said, strict=True))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("clinics.csv", "clinics.columns.toml"):
        shutil.copy(DATA / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    np.save("votes.npy", np.ones((30, 3), dtype=np.int64))
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["train", *CLINICS, "--rounds", "1", "--delta", "0.01", "--trust", "local"],
            [EPSILON, "delta 0.01"],
        ),
        (["train", *CLINICS, "--dry-run", "--delta", "1e-9"], [EPSILON]),
        (["train", *CLINICS, "--neighbours", "zero-out", "--delta", "0.01", "--dry-run"], [EPSILON]),
        ([*AGE], [EPSILON]),
        ([*AGE, "--delta", "0.01"], [EPSILON, "delta 0.01"]),
        (["vote", "release", "gamma.json", "--votes", "votes.npy", "--out", "bits.npy"], ["epsilon 33 "]),
        (["account", "noise", "--epsilon", "21", "--delta", "1e-5"], ["epsilon 20.9999"]),
        (["account", "epsilon", "--noise", "0.1", "--delta", "1e-5"], ["epsilon 9"]),
        (["account", "subsample", "pure:21", "--sample-rate", "1", "--delta", "0"], [EPSILON]),
        (["account", "compose", "pure:20", "pure:1", "--delta", "0"], [EPSILON]),
        (["account", "calibrate", "--trust", "local", "--epsilon", "21", "--delta", "0"], [EPSILON]),
        (["account", "shuffle", "--local-epsilon", "1", "--n", "1000", "--delta", "1e-3"], ["delta 0.001 "]),
        (["account", "iterate", "--n", "100", "--epochs", "1", "--noise", "9", "--delta", "0.01"], ["delta"]),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("folder")
def test_a_command_says_it_once_and_goes_on(
    argv: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    design = ["vote", "design", "--teachers", "3", "--m", "1", "--epsilon", "1", "--out", "gamma.json"]
    assert main(design) == 0
    capsys.readouterr()
    assert main(argv) == 0
    lines = [
        line for line in capsys.readouterr().err.splitlines() if re.match("warning: (epsilon|delta)", line)
    ]
    assert len(lines) == len(said), lines
    assert all(line.startswith(f"warning: {start}") for line, start in zip(lines, said, strict=True)), lines


@pytest.mark.usefixtures("folder")
def test_it_is_said_before_anything_is_spent(capsys: pytest.CaptureFixture[str]) -> None:
    ledger = ["ledger", "create", "clinics.ledger", "--epsilon", "1", "--delta", "0"]
    assert main(ledger) == 0
    capsys.readouterr()
    assert main([*AGE[:-2]]) != 0  # more than the ledger has: the warning stands before the refusal
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"warning: {EPSILON}")
    assert last.startswith("tacit: ")


def test_estimators_warn_once_and_name_the_line_that_called_them() -> None:
    X, y = np.linspace(0, 1, 40).reshape(-1, 1), np.arange(40) % 2
    weak = PrivacyBudget(21.0, 0.1)
    teachers = [DummyClassifier().fit([[0], [1]], [0, 1]) for _ in range(3)]
    fits: tuple[Callable[[], object], ...] = (
        lambda: FederatedLogisticRegression(
            budget=weak, bounds=(0, 1), classes=[0, 1], rounds=1, random_state=0
        ).fit(X, y),
        lambda: FederatedLinearRegression(
            budget=weak, bounds=(0, 1), target_bounds=(0, 1), rounds=1, random_state=0, trust="central"
        ).fit(X, y, silos=np.arange(40) % 8),
        lambda: PrivateVotingClassifier(teachers, epsilon=7.0, max_queries=10).fit(),
    )
    for fit, said in zip(fits, (["epsilon", "delta"], ["epsilon", "delta"], ["epsilon"]), strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        ours = [one for one in caught if issubclass(one.category, PrivacyWarning)]
        assert [str(one.message).split()[0] for one in ours] == said
        assert {one.filename for one in ours} == {__file__}


def test_a_statement_and_a_warning_say_the_same_of_delta(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["account", "shuffle", "--local-epsilon", "1", "--n", "1000", "--delta", "1e-3", "--json"]
    assert main(argv) == 0
    captured = capsys.readouterr()
    text = reveals_one(1e-3, 1000, Unit.PARTY)
    assert captured.err == f"warning: {text}\n"
    (folder / "statement.json").write_text(captured.out)
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert text.capitalize() in " ".join(capsys.readouterr().out.split())
