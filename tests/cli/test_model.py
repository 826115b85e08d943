"""`tacit model show`: weights in words, as numbers, and as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.jobs import load_model
from tests.jobs.tables import write_charges, write_patients

TRAIN = "--trust none --rounds 20 --algorithm minibatch --name run"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of runs without privacy, whose weights have the signs of the truth."""
    folder = tmp_path_factory.mktemp("trained")
    jobs = {
        "patients": f"--data {write_patients(folder)} --label ill",
        "charges": f"--data {write_charges(folder)} --label charges --task regression",
        "digits": "--data digits",
    }
    for name, job in jobs.items():
        assert main(f"train {job} {TRAIN} --out {folder / name}".split()) == 0
    return {name: folder / name / "run" for name in jobs}


def shown(run: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    capsys.readouterr()
    assert main(["model", "show", str(run), *more]) == 0
    return capsys.readouterr().out


def test_a_larger_value_speaks_for_what_it_makes_likelier(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line.split() for line in shown(runs["patients"], capsys).splitlines() if line]
    rows = {line[0]: line[1:] for line in lines if line[0] in ("age", "bmi")}
    assert rows["age"][1:] == ["ill"]
    assert rows["bmi"][1:] == ["ill"]
    assert all(row[0].startswith("+") for row in rows.values())
    text = shown(runs["charges"], capsys)
    assert "charges from 0 to 60000" in text
    assert text.count("a larger prediction") == 2
    assert "No privacy is claimed" in text


def test_a_larger_date_is_said_to_be_an_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("born,y\n" + "1950-01-01,1\n1990-01-01,0\n" * 60)
    (tmp_path / "t.columns.toml").write_text(
        '[label]\nkind = "classes"\nclasses = [0, 1]\n[columns.born]\nkind = "date"\n'
        "reference = 2020-01-01\nlower = 0\nupper = 100\n"
    )
    assert main(f"train {tmp_path / 't.csv'} --label y {TRAIN} --out {tmp_path}".split()) == 0
    assert "born (years before 2020-01-01)" in shown(tmp_path / "run", capsys)
    assert repr(load_model(tmp_path / "run")) == "TrainedModel(run='run', trust='none', features=1)"


def test_several_classes_name_the_two_that_a_feature_tells_apart(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model = load_model(runs["digits"])
    spread = model.coef_.max() - model.coef_.min()
    text = shown(runs["digits"], capsys, "--top", "3")
    first = model.coef_.abs().max().idxmax()
    assert f"{spread[first]:.3g}" in text
    assert f"{model.coef_[first].idxmax()}, against {model.coef_[first].idxmin()}" in text
    assert "3 of 64 features; --top 64 shows all." in text


@pytest.mark.parametrize("name", ["patients", "charges", "digits"])
def test_programs_read_all_weights(
    name: str, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model = load_model(runs[name])
    found = json.loads(shown(runs[name], capsys, "--json", "--top", "1"))
    assert found["version"] == 1
    assert list(found["weights"]) == list(model.feature_names)
    for feature, weights in found["weights"].items():
        assert list(weights.values()) == pytest.approx(
            list(map(float, [*model.coef_.T.loc[[feature]].to_numpy().ravel()]))
        )
    assert found["statement"] == model.statement_digest


@pytest.mark.parametrize("name", ["patients", "charges", "digits"])
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_pictures_are_drawn(
    name: str, suffix: str, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"weights.{suffix}"
    shown(runs[name], capsys, "--plot", str(path))
    assert path.stat().st_size > 2_000


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--top", "0"], "top must be"),
        (["--plot", "a.gif"], "plot must be a file that ends with one of"),
        (["--plot", "nowhere/a.png"], "plot must be a file in a folder that exists"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    more: list[str], message: str, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "show", str(runs["patients"]), *more]) == 2
    assert message in capsys.readouterr().err
