"""`tacit account`: prices that agree with closed forms, and statements that are checked again."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from scipy import special

from tacit.cli import main
from tacit.cli.mean import notes_on
from tacit.privacy import (
    CONTINUOUS,
    Compose,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Neighbours,
    NonPrivate,
    PureDP,
    Relation,
    event_from_builtins,
    guarantee,
)

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "account.md"


def answer(argv: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*argv, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    return found


def gaussian_delta(z: float, epsilon: float) -> float:
    """Delta of one Gaussian release: Balle and Wang (2018), arXiv:1805.06530v2, Theorem 8."""
    upper = special.ndtr(1 / (2 * z) - epsilon * z)
    return float(upper - math.exp(epsilon) * special.ndtr(-1 / (2 * z) - epsilon * z))


def write(path: Path, content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


# noise


def test_the_noise_of_one_release_meets_the_budget_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["account", "noise", *BUDGET], capsys)
    assert found == {
        "version": 1, "noise_multiplier": 3.730632, "epsilon": 1.0, "delta": 1e-5, "rounds": 1,
        "sample_rate": 1.0, "neighbours": "replace-one", "method": "analytic Gaussian",
    }  # fmt: skip
    assert gaussian_delta(3.730632, 1.0) <= 1e-5 < gaussian_delta(3.730630, 1.0)


def test_rounds_add_up_like_one_release_with_less_noise(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["account", "noise", *BUDGET, "--rounds", "25"], capsys)
    assert found["noise_multiplier"] == pytest.approx(5 * 3.730632, abs=1e-5)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "zero-out"])
def test_the_printed_noise_of_samples_costs_no_more_than_the_budget(
    neighbours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sampling = ["--rounds", "100", "--sample-rate", "0.01", "--neighbours", neighbours]
    z = answer(["account", "noise", *BUDGET, *sampling], capsys)["noise_multiplier"]
    assert z < 3.730632
    options = ["--delta", "1e-5", *sampling]
    at = [
        answer(["account", "epsilon", "--noise", str(noise), *options], capsys) for noise in (z, z * 0.9999)
    ]
    assert at[0]["epsilon"] <= 1.0 < at[1]["epsilon"]
    assert at[0]["neighbours"] == neighbours
    sampled = at[0]["guarantees"][0]["event"]["part"]
    assert sampled["how"] == ("fixed" if neighbours == "replace-one" else "poisson")
    assert sampled["part"]["neighbours"]["relation"] == neighbours


POISSON = ["--delta", "1e-5", "--sample-rate", "0.1", "--sampling", "poisson"]


def test_poisson_samples_under_replace_one_cost_the_antipodal_pair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Noise of half the sensitivity is noise of what one record contributes at most.
    options = ["account", "subsample", "gaussian:0.5", "--rounds", "10", *POISSON]
    found = answer(options, capsys)
    assert found["epsilon"] == pytest.approx(3.4344, abs=5e-4)
    assert found["epsilon_per_round"] == pytest.approx(1.7891, abs=1e-4)
    assert found["sampling"] == "poisson"
    fixed = answer(options[:-2], capsys)
    assert fixed["epsilon"] == pytest.approx(12.4825, abs=5e-4)
    assert "sampling" not in fixed
    event = found["guarantees"][0]["event"]
    assert event["part"]["event"] == "Replaced"
    # What the number rests on is said, and a statement without it is refused.
    clause = "no record contributes more than half of the sensitivity that the noise is measured in"
    assert clause in found["guarantees"][0]["assumptions"]
    statement = tmp_path / "statement.json"
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 0
    for cut in (clause, "sampling"):
        changed = json.loads(json.dumps(found))
        claim = changed["guarantees"][0]
        if cut == "sampling":
            del changed["sampling"]
        else:
            bare = guarantee(event_from_builtins(claim["event"]), 1e-5, observer=claim["observer"])
            changed["guarantees"] = [bare.to_builtins()]
        statement.write_text(json.dumps(changed))
        assert main(["account", "verify", str(statement)]) == 1
        said = capsys.readouterr().err
        assert ("leaves out what its price rests on" if cut == clause else "of different releases") in said


@pytest.mark.parametrize("command", ["epsilon", "noise", "calibrate"])
def test_every_price_of_samples_takes_poisson(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--noise", "0.5"] if command == "epsilon" else ["--epsilon", "1"]
    found, fixed = (
        answer(["account", command, *given, *options], capsys) for options in (POISSON, POISSON[:-2])
    )
    assert found["sampling"] == "poisson"
    less = "epsilon" if command == "epsilon" else "noise_multiplier"
    assert found[less] < fixed[less]


def test_poisson_samples_under_replace_one_are_of_gaussian_noise(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "subsample", "laplace:2", *POISSON]) == 2
    assert "sampling must be 'fixed' under replace-one" in capsys.readouterr().err
    assert (
        main(["account", "calibrate", "--epsilon", "1", "--trust", "local", *POISSON[:2], *POISSON[-2:]]) == 2
    )
    assert "sampling goes with --trust central only" in capsys.readouterr().err


def test_people_read_the_noise(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "noise", *BUDGET, "--rounds", "10", "--sample-rate", "0.1"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"noise multiplier +\d+\.\d{6}", out)
    assert "fixed-size samples of 10% of the records" in out
    assert len(out.splitlines()) <= 8


# epsilon


def test_one_release_costs_its_closed_form(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["account", "epsilon", "--noise", "2", "--delta", "1e-6"], capsys)
    assert gaussian_delta(2.0, found["epsilon"]) <= 1e-6 < gaussian_delta(2.0, found["epsilon"] - 2e-6)
    assert (found["noise_multiplier"], found["mechanism"], found["version"]) == (2.0, "gaussian", 5)


def test_laplace_noise_is_pure(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--noise", "4", "--rounds", "3", "--delta", "0", "--mechanism", "laplace"]
    assert answer(["account", "epsilon", *options], capsys)["epsilon"] == 0.75


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "zero-out"])
def test_a_price_is_a_statement_that_can_be_verified(
    mechanism: str, neighbours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--noise", "3", "--rounds", "20", "--sample-rate", "0.1", "--delta", "1e-5"]
    found = answer(
        ["account", "epsilon", *options, "--neighbours", neighbours, "--mechanism", mechanism], capsys
    )
    assert main(["account", "verify", write(tmp_path / "statement.json", found)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert found["guarantees"][0]["sentence"] in out
    assert "nobody learns which records are sampled" in out


def test_people_read_the_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "epsilon", "--noise", "3.730632", "--delta", "1e-5"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^epsilon +1 *$", out, re.MULTILINE)
    assert "3.730632 (gaussian)" in out
    assert "replacing one record" in out


# what is refused


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["noise", "--epsilon", "nan", "--delta", "1e-5"], 2, "epsilon must be a finite number > 0, got nan"),
        (["noise", "--epsilon", "0", "--delta", "1e-5"], 2, "epsilon must be a finite number > 0, got 0.0"),
        (["noise", "--epsilon", "-1", "--delta", "1e-5"], 2, "epsilon must be a finite number > 0, got -1.0"),
        (["noise", "--epsilon", "inf", "--delta", "1e-5"], 2, "epsilon must be a finite number > 0, got inf"),
        (["noise", "--epsilon", "1", "--delta", "1"], 2, "delta must be in [0, 1), got 1.0"),
        (["noise", "--epsilon", "1", "--delta", "nan"], 2, "delta must be in [0, 1), got nan"),
        (["noise", "--epsilon", "1", "--delta", "-1e-9"], 2, "delta must be in [0, 1)"),
        (["noise", "--epsilon", "1", "--delta", "0"], 4, "choose delta > 0"),
        (["noise", *BUDGET, "--rounds", "0"], 2, "rounds must be a whole number >= 1, got 0"),
        (["noise", *BUDGET, "--rounds", "1.5"], 2, "'1.5' is not a valid"),
        (["noise", *BUDGET, "--sample-rate", "0"], 2, "sample-rate must be in (0, 1], got 0.0"),
        (["noise", *BUDGET, "--sample-rate", "1.5"], 2, "sample-rate must be in (0, 1], got 1.5"),
        (["noise", *BUDGET, "--sample-rate", "nan"], 2, "sample-rate must be in (0, 1], got nan"),
        (["noise", *BUDGET, "--neighbours", "replace"], 2, "got 'replace'; did you mean 'replace-one'?"),
        (["epsilon", "--noise", "0", "--delta", "1e-5"], 2, "noise must be a finite number > 0, got 0.0"),
        (["epsilon", "--noise", "nan", "--delta", "1e-5"], 2, "noise must be a finite number > 0, got nan"),
        (["epsilon", "--noise", "1", "--delta", "2"], 2, "delta must be in [0, 1), got 2.0"),
        (["epsilon", "--noise", "1", "--delta", "0"], 2, "delta must be > 0 for this release"),
        (["epsilon", "--noise", "1", "--delta", "0", "--mechanism", "gauss"], 2, "did you mean 'gaussian'?"),
        (["epsilon", "--noise", "1", "--delta", "0", "--neighbours", "add"], 2, "did you mean 'add-remove'?"),
    ],
)
def test_bad_input_is_one_line(
    argv: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["account", *argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tacit: ")
    assert len(captured.err.splitlines()) == 1
    assert said in captured.err


# verify

CLAIM = guarantee(Gaussian(3.730632), 1e-5, observer="the server", assumptions=(CONTINUOUS,)).to_builtins()
OTHER = guarantee(
    Compose((PureDP(0.25), PureDP(0.5))), 0.0, observer="one silo", assumptions=("clocks agree",)
).to_builtins()
NOTHING = guarantee(NonPrivate(), 1e-5, observer="the public").to_builtins()


def listed(*parts: object, **fields: object) -> dict[str, object]:
    """Return a statement that lists guarantees."""
    return {"version": 5, "kind": "mean", "count": len(parts), "guarantees": list(parts), **fields}


MEAN = guarantee(
    DiscreteGaussian(200.0, 100.0, dim=1), 1e-5, observer="an observer of the released means"
).to_builtins()


def means(**fields: object) -> dict[str, object]:
    """Return the statement of a mean, with other fields."""
    facts = {"table": "t.csv", "columns": ["x"], "mean": {"x": 1.0}, "noise_std": {"x": 0.1},
             "confidence": 0.95, "confidence_interval": {"x": [0.8, 1.2]}, "epsilon": MEAN["epsilon"],
             "delta": 1e-5, "trust": "central", "unit": "record", "simulated": False, "n": 100}  # fmt: skip
    found = {**facts, **fields}
    notes = [*notes_on(int(str(found["n"])), 0.95), "Look out."]
    return listed(MEAN, about=[{"trust": "central", "units": 100}], notes=notes, **found)


def test_a_true_statement_is_confirmed_with_its_sentences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "statement.json", means(run="demo"))
    statement = json.loads(Path(path).read_text())
    assert main(["account", "verify", path]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == f"verified: 1 guarantee in {path}"
    assert "run: demo" in lines
    assert "note: Look out." in lines
    assert lines[-1] == "arithmetic verified; origin not verified"
    assert MEAN["sentence"] in " ".join(captured.out.split())
    found = answer(["account", "verify", path], capsys)
    assert found == {
        "version": 1,
        "file": path,
        "verified": True,
        "origin_verified": False,
        "guarantees": statement["guarantees"],
        "files": {},
        "warnings": [],
    }


def test_one_guarantee_is_a_statement_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.json"
    path.write_bytes(guarantee(Gaussian(3.730632), 1e-5, observer="the server").to_json())
    assert main(["account", "verify", str(path)]) == 0
    assert capsys.readouterr().out.startswith("verified: 1 guarantee in ")


def changed(**fields: object) -> dict[str, object]:
    """Return a claim with other fields, and a sentence that fits them."""
    part: dict[str, object] = {**CLAIM, **fields}
    del part["sentence"]
    return part


ADD_REMOVE = {"relation": "add-remove", "unit": "record", "part": "all"}


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (changed(epsilon=0.999999), "claims epsilon 0.999999 at delta 1e-05, but its event costs 1"),
        (changed(epsilon=1.000001), "claims epsilon 1.000001"),
        (changed(epsilon=None), "claims epsilon inf"),
        (changed(delta=1e-6), "claims epsilon 1"),
        (changed(delta=7.0), "delta must be in [0, 1), got 7.0"),
        (changed(neighbours=ADD_REMOVE), "is about adding or removing one record"),
        (changed(version=1), "has version 1; this tacit reads 5: an older tacit wrote it"),
        (changed(version=True), "has version True; this tacit reads 5"),
        (changed(event={"event": "Magic"}), "event must be one of"),
        (changed(surprise=1), "Guarantee has no field 'surprise'"),
        ({**CLAIM, "sentence": "All is well."}, "does not say what its fields say"),
        ({**CLAIM, "observer": "nobody"}, "does not say what its fields say"),
        (listed(OTHER, 3), "guarantee 2 of 2: a guarantee must be a JSON object"),
        (listed(), "holds no guarantees"),
        ({**listed(), "guarantees": CLAIM}, "holds no guarantees"),
        ({"version": 5, "kind": "mean"}, "holds no guarantees"),
        ({"version": 1, "guarantees": [CLAIM]}, "has version 1; this tacit reads 5: an older tacit wrote it"),
        ({"version": 6, "guarantees": [CLAIM]}, "has version 6; this tacit reads 5."),
        ({"version": True, "guarantees": [CLAIM]}, "has version True"),
        ({"guarantees": [CLAIM]}, "has version None"),
        (
            listed(CLAIM, kind="magic"),
            "kind must be one of train, mean, frequencies, frequencies levels, frequencies large,",
        ),
        (listed(CLAIM, kind=["mean"]), "kind must be one of"),
        (listed(CLAIM, kind="guarantee"), "kind must be one of"),
        (listed(CLAIM, certified=True), "a statement of kind 'mean' has no field 'certified'"),
        (listed(CLAIM, count=2), "it names 2 guarantees and holds 1"),
        (listed(CLAIM, count=True), "it cannot be read: Expected `int`, got `bool`"),
        (means(epsilon=0.5), "it says epsilon 0.5 at the top, but"),
        (listed(CLAIM, epsilon=True), "epsilon at the top must not be a truth value"),
        (means(delta=0.0), "it says delta 0.0 at the top"),
        (means(simulated=0), "it says simulated 0 at the top"),
        (means(guarantee="All is well."), "it says guarantee 'All is well.' at the top"),
        (listed(NOTHING), "the facts at the top cannot be used: 'trust'"),
        (listed(CLAIM, OTHER, about=[{"trust": "central"}]), "holds 2 guarantees and says of 1"),
        (means(n=9), "it says n 9 at the top, but 100"),
        (listed(CLAIM, about=[{"trust": "central", "units": -1}]), "units must be >= 0"),
        (listed(CLAIM, about=[{"trust": "central", "size": 1}]), "unknown field `size`"),
        (listed(CLAIM, digests={"../model.json": "0" * 64}), "must name files beside the statement"),
        (listed(CLAIM, digests={"model.json": "0"}), "is not a SHA-256"),
        (listed(CLAIM, created="yesterday"), "created must be a date and time"),
        ([CLAIM], "is not a JSON object, but a list"),
        ("text", "is not a JSON object, but a single value"),
    ],
)
def test_a_false_statement_is_one_line(
    statement: object, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "statement.json", statement)
    for flags in ([], ["--json"]):
        assert main(["account", "verify", path, *flags]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert path in captured.err
        assert said in captured.err


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b'{"epsilon": NaN}', b"[" * 100_000, b'{"a": 1, "a": 1}', b" " * 2**25],
)
def test_what_is_not_json_is_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "statement.json"
    path.write_bytes(content)
    assert main(["account", "verify", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"tacit: the statement {path} is refused: it is not JSON that can be ")
    assert len(captured.err.splitlines()) == 1


def test_a_missing_statement_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "verify", str(tmp_path / "none.json")]) == 2
    expected = f"tacit: the statement {tmp_path / 'none.json'} cannot be read: No such file or directory.\n"
    assert capsys.readouterr().err == expected


def test_a_text_in_a_statement_cannot_move_the_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = Guarantee.from_builtins(changed(observer="[bold]everyone[/bold]"))
    assert main(["account", "verify", write(tmp_path / "s.json", claim.to_builtins())]) == 0
    assert "[bold]everyone[/bold]" in capsys.readouterr().out
    for text in ("\x1b[2Jeveryone", "the server\nverified: 7 guarantees", "x\u2028y", "x\u202ey", "\ud800"):
        assert main(["account", "verify", write(tmp_path / "s.json", changed(observer=text))]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert "characters that do not print" in captured.err


def test_neighbours_of_the_command_line_are_those_of_the_library() -> None:
    known = {relation.value for relation in Relation}
    assert known == {"replace-one", "add-remove", "zero-out"}  # as the help of --neighbours says
    assert Neighbours().relation is Relation.REPLACE_ONE


# docs


def test_the_how_to_shows_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    runs = [run for block in blocks for run in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    for run in runs:
        command, _, shown = run.partition("\n")
        words = shlex.split(command)
        to = words.index(">") if ">" in words else len(words)
        main(words[1:to])
        captured = capsys.readouterr()
        if to < len(words):
            Path(words[to + 1]).write_text(captured.out)
            continue
        printed = "\n".join(line.rstrip() for line in (captured.out + captured.err).splitlines())
        assert printed == shown.rstrip(), command
    assert len(runs) >= 6
