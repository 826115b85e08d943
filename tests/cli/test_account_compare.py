"""`tacit account compare`: every method with its status, for shuffles and for releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.cli.account import plots
from tacit.literature.shuffling.bounds import BOUNDS
from tests.cli.accounting import answer, check_refusal, printed

SHUFFLE = ["compare", "--local-epsilon", "0.4", "--n", "100000", "--delta", "1e-6"]


def test_every_bound_on_a_shuffle_that_applies_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(SHUFFLE, capsys)
    rows = {row["method"]: row for row in found["bounds"]}
    assert all(row["epsilon"] > 0 for row in found["bounds"])
    known = {bound.name: bound for bound in BOUNDS}
    # Only what is about samples, or needs a larger local level, is left out.
    left_out = set(known) - set(rows)
    assert left_out == {
        "thesis subsampled bound",
        "thesis subsampled bound, tight",
        "thesis bound 1, general subsampling",
        "printed lemma, constant 1536",
        "printed lemma, two shuffles of a sample",
    }
    for name in set(known) & set(rows):
        assert rows[name]["status"] == known[name].status
        assert rows[name]["note"] == known[name].note
    assert rows["no shuffler"]["epsilon"] == pytest.approx(0.4, abs=1e-4)
    assert {row["status"] for row in found["bounds"]} == {"lower bound", "proof", "paper only"}


def test_bounds_on_samples_are_listed_with_samples(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([*SHUFFLE, "--sample-rate", "0.1", "--rounds", "10"], capsys)
    names = {row["method"] for row in found["bounds"]}
    assert names >= {"thesis subsampled bound", "thesis subsampled bound, tight", "no shuffler"}
    assert found["event"]["part"]["rate"] == 0.1


def test_a_release_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["compare", "gaussian:2x10", "--delta", "1e-6"], capsys)
    assert [row["method"] for row in found["bounds"][:3]] == [
        "analytic Gaussian",
        "Rényi differential privacy",
        "concentrated privacy, closed form",
    ]
    assert found["bounds"][0]["epsilon"] == pytest.approx(8.30623, abs=1e-5)
    composed = answer(["compose", "gaussian:2x10", "--delta", "1e-6"], capsys)["epsilon"]
    assert found["bounds"][0]["epsilon"] == pytest.approx(composed, abs=1e-6)


def test_people_read_what_guarantees_use(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(["compare", "gaussian:2x10", "--delta", "1e-6"], capsys)
    assert "method epsilon status note" in out
    assert out.endswith("Guarantees use analytic Gaussian: epsilon 8.30623 at delta 1e-06.")


def test_a_tighter_proof_is_not_kept_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit import literature

    bounds = (
        literature.Bound("new theorem", 0.5),
        literature.Bound("old theorem", 0.6, note="what guarantees use"),
    )
    monkeypatch.setattr(literature, "compare", lambda event, delta: bounds)
    out = printed(["compare", "gaussian:2", "--delta", "1e-6"], capsys)
    assert "Guarantees use old theorem: epsilon 0.6 at delta 1e-06." in out
    assert "A tighter proof is new theorem: epsilon 0.5." in out


def test_a_picture_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "_COUNT", 2)
    path = tmp_path / "bounds.svg"
    argv = ["compare", "--local-epsilon", "1", "--n", "50", "--delta", "1e-5", "--against", "local-epsilon"]
    assert f"Drawn into {path}" in printed([*argv, "--plot", str(path)], capsys)
    assert "<svg" in path.read_text()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "give a release, or --local-epsilon and --n for a shuffle"),
        (["--n", "100"], "give a release, or --local-epsilon and --n for a shuffle"),
        (["--local-epsilon", "1"], "give a release, or --local-epsilon and --n for a shuffle"),
        (["--local-epsilon", "1", "--n", "1"], "a shuffle of one message hides nothing"),
        (["--local-epsilon", "-1", "--n", "10"], "local-epsilon must be a finite number > 0"),
        (["--local-epsilon", "1", "--n", "10", "--delta", "0"], "delta must be in (0, 1), got 0.0"),
        (["--local-epsilon", "1", "--n", "10", "--mechanism", "x"], "mechanism must be one of general"),
        (
            ["--local-epsilon", "1", "--n", "10", "--neighbours", "add-remove"],
            "neighbours must be replace-one",
        ),
        (["--local-epsilon", "1", "--n", "10", "--against", "x"], "against must be one of n, rounds"),
        (["--local-epsilon", "1", "--n", "10", "--plot", "x.doc"], "plot must be a file that ends with"),
        (["gaussian:2", "--delta", "1"], "delta must be in (0, 1), got 1.0"),
        (["gaussian:2", "--plot", "x.png"], "plot is for a shuffle of --local-epsilon and --n"),
        (["gaussian:2", "--n", "10"], "n is for a shuffle"),
        (["gaussian:2", "--rounds", "10"], "rounds is for a shuffle"),
        (["gaussian:2", "--sample-rate", "0.1"], "sample-rate is for a shuffle"),
        (["gauss:2"], "start with one of gaussian, laplace"),
    ],
)
def test_bad_input_is_one_line(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_refusal(["compare", "--delta", "1e-6", *argv], said, capsys)
