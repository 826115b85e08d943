"""`tacit train` with hidden iterates: what a run leaves, what its statement says, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tests.cli.test_train import results, run, table  # noqa: F401 - a fixture

TRAIN = ["--label", "y", "--silo-column", "site", "--epsilon", "1"]


def public_file(table: Path) -> Path:  # noqa: F811 - the fixture's path
    """Thirty records of the example table, without their silos."""
    head, *lines = table.read_text().splitlines()
    at = head.split(",").index("site")
    rows = [line.split(",") for line in [head, *lines[::15]]]
    path = table.with_name("public.csv")
    path.write_text("".join(",".join(row[:at] + row[at + 1 :]) + "\n" for row in rows))
    return path


def test_a_hidden_run_with_public_records_leaves_the_last_iterate_alone(
    table: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--data", str(table), *TRAIN, "--public", str(public_file(table))]
    found = results(
        [*arguments, "--algorithm", "interleaved-shuffle", "--option", "cycle=true"], tmp_path, capsys
    )
    (one,) = found["results"]
    assert (one["algorithm"], one["rounds"], one["trust"]) == ("interleaved-shuffle", 1, "local")
    folder = Path(found["run"])
    statement = json.loads((folder / "statement.json").read_text())
    for claimed in statement["guarantees"]:
        event: dict[str, Any] = claimed["event"]
        assert (event["event"], event["release"], event["placement"]) == ("Iteration", "last", "every-step")
        assert 0 < event["private"] < event["n"]
        assert "only the last iterate leaves" in claimed["sentence"]
        assert "continuous noise leaks" in claimed["sentence"]
        assert "public records that the model was trained with are not protected" in claimed["sentence"]
    metrics = json.loads((folder / "metrics.json").read_text())
    assert not metrics["results"][0].get("trace")
    assert "exact noise goes with algorithms whose iterates are seen" in statement["notes"][-1]
    report = (folder / "report.html").read_text()
    assert "trace" not in report
    assert "can change on every step inside the silo." in report
    assert "A silo makes 20 passes by itself, and nothing but the point where it ends may leave it" in report
    protected, limits = report[: report.index("Not protected")], report[report.index("Not protected") :]
    assert "it may show any of them" in limits
    assert "it may show any of them" not in protected
    assert "noise 'discrete-gaussian' is exact" not in report  # which these methods do not take
    assert main(["account", "verify", str(folder / "statement.json")]) == 0


def test_simulations_on_public_data_have_no_trace_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--data", "digits-odd-even", "--seed", "0", "--trust", "local"]
    traces = []
    for more in (["dp-shuffle", "--option", "epochs=2"], ["minibatch", "--rounds", "2"]):
        found = results([*common, "--algorithm", *more], tmp_path, capsys)
        metrics = json.loads((Path(found["run"]) / "metrics.json").read_text())
        traces.append(metrics["results"][0].get("trace") or [])
    assert [len(trace) for trace in traces] == [0, 2]


def test_a_preview_promises_nothing_by_numbers_that_say_nothing(
    table: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--data", str(table), *TRAIN, "--algorithm", "dp-shuffle", "--dry-run"]
    code, out, _ = run(arguments, tmp_path, capsys)
    (row,) = [line.split() for line in out.splitlines() if line.startswith("local  dp-shuffle")]
    assert (code, row[-2:]) == (0, ["none", "none"])  # an error of one mean, and a bound of one silo
    assert "dp-shuffle: A silo makes 20 passes by itself" in out
    code, out, _ = run([*arguments, "--json"], tmp_path, capsys)
    assert (code, json.loads(out)["runs"][0]["gradient_error"]) == (0, None)


def test_labels_that_nothing_trains_on_are_named(
    table: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--data", str(table), *TRAIN, "--public", str(public_file(table)), "--dry-run"]
    said = "does not train on their labels, as --algorithm semi-dp would"
    for name, unused in (("whitened", True), ("semi-dp", False)):
        code, out, _ = run([*arguments, "--algorithm", name], tmp_path, capsys)
        assert (code, said in " ".join(out.split())) == (0, unused), name


def test_reports_of_semi_ldp_speak_of_no_noise_on_sums(
    table: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = results(["--data", str(table), *TRAIN, "--algorithm", "semi-ldp"], tmp_path, capsys)
    report = (Path(found["run"]) / "report.html").read_text()
    assert "by drawing at random what each record reports." in report
    assert "noise with a standard deviation" not in report
    assert "noise 'discrete-gaussian' is exact" not in report


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--option", "release=epochs"], "so there is no trace"),
        (["--noise", "discrete-gaussian"], "noise must be 'auto' or 'gaussian' for an algorithm with hidden"),
        (["--trust", "central"], "trust must be local for the algorithm 'dp-shuffle'"),
        (["--loss", "hinge", "--smoothing", "inf"], "smooth"),
        (["--domain", "box:0:1"], "takes l1, l2 and a ball around 0"),
        (["--option", "private=0.5"], "private is not an option of the algorithm 'dp-shuffle'"),
    ],
)
def test_what_cannot_be_hidden_is_refused(
    more: list[str],
    said: str,
    table: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run(["--data", str(table), *TRAIN, "--algorithm", "dp-shuffle", *more], tmp_path, capsys)
    assert code == 2
    assert said in err
    assert not (tmp_path / "runs").exists()


def test_public_records_are_needed_and_must_be_enough(
    table: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--data", str(table), *TRAIN, "--algorithm", "private-public-shuffle"]
    code, _, err = run(arguments, tmp_path, capsys)
    assert (code, "needs public records with labels" in err) == (2, True)
    code, _, err = run([*arguments, "--public", str(public_file(table))], tmp_path, capsys)
    assert (code, "with the option cycle=true" in err) == (2, True)


def test_a_ledger_that_counts_refuses_continuous_noise(
    table: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "books"
    create = ["ledger", "create", str(folder), "--silos-from", str(table), "--silo-column", "site"]
    assert main([*create, "--epsilon", "5", "--delta", "1e-3"]) == 0
    arguments = ["--data", str(table), *TRAIN, "--algorithm", "dp-shuffle", "--ledger", str(folder)]
    code, _, err = run(arguments, tmp_path, capsys)
    assert (code, "refuses continuous noise" in err) == (6, True)
