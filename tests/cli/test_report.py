"""`tacit report compare`: runs side by side, and what keeps them from being compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from matplotlib.image import imread

from tacit.cli import main
from tacit.reports import Metrics, comparison_notes, read_metrics, write_run
from tests.reports.runs import compared, open_run, persons, private, regression


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of runs."""
    folder = tmp_path_factory.mktemp("runs")
    made = {"compared": compared, "open": open_run, "private": private, "numbers": regression, "who": persons}
    return {name: write_run(run(), folder / name) for name, run in made.items()}


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["report", "compare", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def found(names: list[str], runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    code, out, _ = run([*(str(runs[name]) for name in names), "--json"], capsys)
    assert code == 0
    data: dict[str, Any] = json.loads(out)
    return data


def test_programs_get_every_trust_model_of_every_run(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    data = found(["compared", "open"], runs, capsys)
    assert (data["version"], data["comparable"], data["notes"]) == (1, True, [])
    results = [*compared().results, *open_run().results]
    assert [row["run"] for row in data["results"]] == [str(runs["compared"])] * len(compared().results) + [
        str(runs["open"])
    ]
    for row, one in zip(data["results"], results, strict=True):
        assert (row["trust"], row["algorithm"], row["metric"]) == (
            one.trust,
            one.trained.algorithm,
            "accuracy",
        )
        assert (row["score"], row["standard_error"]) == (one.score, one.scores.standard_error)
        assert (row["baseline"], row["auc"]) == (one.scores.baseline, one.scores.auc)
        assert (row["bits_per_silo"], row["rounds"]) == (one.bits_per_silo, one.trained.rounds)
        assert row["epsilon"] == (None if one.trust == "none" else one.guarantee.epsilon)


def test_people_see_a_table(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs["compared"].parent)
    code, out, err = run(["compared", "open"], capsys)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines() if line]
    assert lines[0][:6] == ["run", "trust", "algorithm", "epsilon", "delta", "score"]
    local = compared().results[-1]
    row = next(line for line in lines if "local" in line)
    assert f"{100 * local.score:.1f}" in row
    assert f"{local.scores.auc:.3f}" in row
    assert "note" not in out


def test_what_was_trained_is_told_where_it_is_no_linear_model(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = json.loads((runs["compared"] / "metrics.json").read_text())
    assert "model" not in told["results"][0]
    for one in told["results"]:
        one["model"] = "linear@28x28"
    (tmp_path / "images").mkdir()
    (tmp_path / "images/metrics.json").write_text(json.dumps(told))
    code, out, _ = run([str(runs["compared"]), "images", "--json"], capsys)
    assert code == 0
    models = [row["model"] for row in json.loads(out)["results"]]
    assert models == ["linear"] * len(told["results"]) + ["linear@28x28"] * len(told["results"])
    code, out, _ = run([str(runs["compared"]), "images", "--plot", "both.svg"], capsys)
    assert code == 0
    assert out.count("linear@28x28") == len(told["results"])
    assert "local, whitened, linear@28x28" in (tmp_path / "both.svg").read_text()


def test_what_differs_is_said(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    data = found(["compared", "numbers"], runs, capsys)
    assert not data["comparable"]
    assert data["notes"][0] == (
        "These runs are not comparable: they differ in data set, label, column description and score."
    )
    code, out, _ = run([str(runs["compared"]), str(runs["numbers"])], capsys)
    assert code == 0
    assert "note: These runs are not comparable" in out
    assert "stay with" in out  # one of them is on private data


def test_each_difference_is_seen(runs: dict[str, Path]) -> None:
    one = read_metrics(runs["private"])

    def notes(**changed: Any) -> list[str]:
        data = msgspec.structs.replace(one.data, **{"public": True, **changed})
        first: Metrics = msgspec.structs.replace(one, data=msgspec.structs.replace(one.data, public=True))
        return comparison_notes({"a": first, "b": msgspec.structs.replace(one, data=data)})

    assert notes() == []
    for name, what in (("name", "data set"), ("label", "label"), ("description", "column description")):
        assert notes(**{name: "other"}) == [f"These runs are not comparable: they differ in {what}."]
    (other,) = notes(held_out="other")
    assert other.startswith("The runs hold out other records")
    (kept,) = notes(public=False)
    assert "stay with the owner" in " ".join(kept.split())


def test_a_picture_shows_scores_and_the_baseline(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.png"
    folders = [str(runs["compared"]), str(runs["open"])]
    assert run([*folders, "--plot", str(path)], capsys)[0] == 0
    assert imread(path).shape[0] > 100
    drawn = tmp_path / "c.svg"
    assert run([*folders, "--plot", str(drawn)], capsys)[0] == 0
    for words in ("baseline", "local, whitened", "no privacy, accelerated"):
        assert f"<!-- {words}" in drawn.read_text()
    assert "keep this inside" not in drawn.read_text()
    again = [str(runs["private"]), str(runs["private"] / "metrics.json")]
    assert run([*again, "--plot", str(drawn)], capsys)[0] == 0
    assert "keep this inside" in drawn.read_text()
    code, _, err = run([str(runs["compared"]), again[0], "--plot", str(path)], capsys)
    assert (code, err.count("\n")) == (2, 1)
    assert "plot needs runs that are comparable" in err
    code, _, err = run([str(runs["open"]), str(runs["open"] / "metrics.json"), "--plot", str(path)], capsys)
    assert code == 2
    assert "plot needs a run that claims privacy" in err


def test_what_is_no_run_is_one_line(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = str(runs["open"])
    old = tmp_path / "old"
    old.mkdir()
    (old / "metrics.json").write_text('{"version": 1, "results": []}')
    for arguments, code, match in (
        ([good, str(tmp_path / "none")], 3, "is no finished run"),
        ([good, str(tmp_path)], 3, "is no finished run"),
        ([good, str(old)], 3, "is of version 1"),
        ([good], 2, "RUN must be two or more folders"),
        ([good, good], 2, "RUN must be two or more folders"),
    ):
        ended, out, err = run(arguments, capsys)
        assert (ended, out, err.count("\n")) == (code, "", 1)
        assert match in err
