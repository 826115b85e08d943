"""`tacit account verify` against forgers: what arithmetic can catch is refused in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields
from rich.cells import cell_len

from tacit.cli import main
from tacit.cli.mean import notes_on
from tacit.cli.output import print_foreign
from tacit.data import ColumnsSpec
from tacit.errors import PrivacyWarning, VerificationError
from tacit.jobs import Job, JobConfig, JobResult
from tacit.privacy import (
    CONTINUOUS,
    DiscreteGaussian,
    EpochSteps,
    Gaussian,
    Guarantee,
    Iteration,
    IterationSchedule,
    Laplace,
    Neighbours,
    Release,
    Repeat,
    Sampled,
    guarantee,
)
from tacit.privacy.run_clauses import HELD_OUT, OPEN, SCORED, SIMULATED, clauses_of_run, compared_note
from tacit.privacy.statement import About, Statement, digest_of
from tacit.privacy.work import VERIFY_WORK, work_of
from tacit.reports import write_run
from tests.cli.verifying import (
    SAMPLED,
    VERDICT,
    Data,
    check_large_numbers,
    check_refused,
    reworded,
    statement_of,
    strip,
    with_about,
)
from tests.jobs.tables import write_patients
from tests.reports.runs import compared, open_run


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> JobResult:
    """A run on a table with three silos, one with a name that does not print, on secret samples."""
    folder = tmp_path_factory.mktemp("table")
    path = write_patients(folder, silos=("a", "b\u202e", "c's"))
    return Job(JobConfig(data=str(path), label="ill", silo_column="site", rounds=2, batch=10)).run()


@pytest.fixture(scope="module")
def written(job: JobResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder."""
    return write_run(job, tmp_path_factory.mktemp("run") / "run")


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(written, tmp_path / "run"))


def test_a_run_is_verified_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statement = statement_of(folder)
    assert statement["count"] == len(statement["guarantees"]) == 3
    assert set(statement["digests"]) == {"model.json", "plan.toml", "columns.toml"}
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("verified: 3 guarantees in ")
    assert out.endswith(VERDICT)
    for shown in (
        f"run: {statement['run']}, {statement['created']}, tacit ",
        "data: patients.csv, 3 silos with 48 records each",
        f"released: the local model ({statement['model']})",
        "files as they were: model.json, plan.toml, columns.toml",
        r"local, each of silos 'a', 'b\u202e', 'c's': (epsilon = ",
        "whatever everybody outside the silo, the server included, sees",
        SAMPLED,
        *(f"note: {note}" for note in statement["notes"]),
    ):
        assert shown in out
    assert out.count("(epsilon = ") == 1  # equal guarantees are said once


def test_what_is_not_private_and_groups_by_trust_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(compared(), tmp_path / "run")
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "local, each of silos '0', '1', '2', '3', '4', '5', '6', '7', '8', '9': (epsilon = 2, " in out
    assert out.count("(epsilon = 2, ") == 3  # local, aggregate and central
    assert "none, without privacy: No privacy is claimed" in out
    assert "data: digits" in out


def test_bounds_that_were_read_off_cannot_be_cut_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_patients(tmp_path, public=False)
    with pytest.warns(PrivacyWarning, match="read off the data"):
        job = Job(JobConfig(data=str(path), label="ill", silo_column="site", rounds=1))
    folder = write_run(job.run(), tmp_path / "run")
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert "bounds read off the data without privacy: patient, age, bmi, ill\n" in capsys.readouterr().out
    clause, _ = clauses_of_run(Neighbours(), public=False, read_off=job.data.read_off)
    forged = statement_of(folder)
    strip(forged, clause)
    check_refused(folder, json.dumps(forged), f"leaves out what its facts say: {clause}", capsys)
    forged["data"]["read_off"] = []
    check_refused(folder, json.dumps(forged), "one of them was cut out", capsys)


@pytest.mark.parametrize("note", [SIMULATED, compared_note("local")])
def test_no_note_on_a_comparison_or_a_rehearsal_can_be_cut_out(
    note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(compared(), tmp_path / "run")
    data = statement_of(folder)
    data["notes"].remove(note)
    check_refused(folder, json.dumps(data), f"leaves out a note that its facts ask for: {note}", capsys)
    data["notes"].append(note)
    data["not_private"][0]["sentence"] = "All is private."
    check_refused(
        folder, json.dumps(data), f"of what was computed without privacy it must say: {OPEN}", capsys
    )


def test_a_run_that_claims_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(open_run(), tmp_path / "run")
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("verified: 0 guarantees in ")
    assert "released: the model without privacy" in out
    assert "none, without privacy: No privacy is claimed" in out


FORGED: dict[str, tuple[Callable[[Data], object], str]] = {
    "a stripped assumption": (lambda d: strip(d, SAMPLED), f"leaves out what its price rests on: {SAMPLED}"),
    "a removed guarantee": (
        lambda d: d["guarantees"].pop(),
        "it names 3 guarantees and holds 2",
    ),
    "a removed guarantee and its number": (
        lambda d: (d["guarantees"].pop(), d.update(count=2)),
        "holds 2 guarantees and says of 3 whom they are about",
    ),
    "a removed silo that data still names": (
        lambda d: (d["guarantees"].pop(), d["about"].pop(), d.update(count=2)),
        'must be about all 3 silos of the data: silo "c\'s" is missing',
    ),
    "all guarantees removed": (
        lambda d: d.update(guarantees=[], about=[], count=0),
        "every trust model must be either among the guarantees",
    ),
    "a top-level epsilon": (lambda d: d.update(epsilon=0.1), "kind 'train' has no field 'epsilon'"),
    "a top-level n": (lambda d: d.update(n=10**6), "kind 'train' has no field 'n'"),
    "an unknown field": (lambda d: d.update(certified_by="x"), "has no field 'certified_by'"),
    "a silo twice": (lambda d: with_about(d, 2, silo="a"), "must be about all 3 silos"),
    "a larger silo": (lambda d: with_about(d, 0, units=10**6), "comes twice, or with another size"),
    "another silo": (lambda d: with_about(d, 0, silo="z"), "silo 'a' is missing"),
    "silos exchanged": (lambda d: d["about"].reverse(), "guarantee 1 of 3: its observer does not name silo"),
    "another trust model": (
        lambda d: with_about(d, 0, trust="central"),
        "it is about trust 'central', and its observer is \"everybody outside silo",
    ),
    "the observer of a trusted server": (
        lambda d: reworded(d, 0, observer="everybody but the trusted server"),
        "it is about trust 'local', and its observer is 'everybody but",
    ),
    "another observer": (lambda d: reworded(d, 0, observer="nobody at all, says 'a',"), 'is "nobody at all'),
    "a trusted server and one silo": (
        lambda d: (
            with_about(d, 0, trust="central"),
            reworded(d, 0, observer="everybody but the trusted server"),
        ),
        "it is about trust 'central', and",
    ),
    "a trust model of its own": (
        lambda d: ([with_about(d, k, trust="certified") for k in range(3)], d.update(released="certified")),
        "must be about trust 'local', 'aggregate', 'shuffle', 'central', got 'certified'",
    ),
    "an open trust model of its own": (
        lambda d: d.update(not_private=[{"trust": "verified", "sentence": "x"}], released="verified"),
        "not_private must be about local, aggregate, shuffle, central, none, got 'verified'",
    ),
    "a condition twice": (
        lambda d: [reworded(d, k, assumptions=2 * d["guarantees"][k]["assumptions"]) for k in range(3)],
        "names a condition twice",
    ),
    "the score that nobody priced": (
        lambda d: strip(d, HELD_OUT),
        f"guarantee 1 of 3: the statement leaves out what its facts say: {HELD_OUT}",
    ),
    "the note on the score": (
        lambda d: d["notes"].remove(SCORED),
        f"leaves out a note that its facts ask for: {SCORED}",
    ),
    "data that anybody may see": (
        lambda d: d["data"].update(public=True),
        "'patients.csv' is not a data set of tacit",
    ),
    "data of a public name": (
        lambda d: d["data"].update(public=True, name="digits"),
        "what is private of them",
    ),
    "no description": (
        lambda d: d["digests"].pop("columns.toml"),
        "it names no column description in its digests",
    ),
    "bounds without a word": (
        lambda d: d["data"].update(read_off=["age"]),
        "leaves out what its facts say: bounds read off the data without privacy do not matter (age)",
    ),
    "no word on bounds": (lambda d: d["data"].pop("read_off"), "missing required field `read_off`"),
    "no model": (lambda d: d["digests"].pop("model.json"), "must name model.json in its digests"),
    "no plan": (lambda d: d["digests"].pop("plan.toml"), "must name plan.toml in its digests"),
    "no digests": (lambda d: d.pop("digests"), "must name model.json in its digests"),
    "a field of about": (lambda d: with_about(d, 0, seen_by="nobody"), "unknown field `seen_by`"),
    "another released model": (
        lambda d: d.update(released="central"),
        "the released model 'central' is in no",
    ),
    "no released model": (lambda d: d.pop("released"), "must have the fields `data`, `released` and `model`"),
    "no name of a model": (lambda d: d.pop("model"), "must have the fields `data`, `released` and `model`"),
    "no data": (lambda d: d.pop("data"), "must have the fields `data`, `released` and `model`"),
    "another number of silos": (lambda d: d["data"].update(silos=2), "names 2 silos and the sizes of 3"),
    "another unit": (
        lambda d: d["data"].update(unit="person"),
        "replacing one record, the data about a person",
    ),
    "a field of data": (lambda d: d["data"].update(score=1), "unknown field `score`"),
    "a field of neighbours": (
        lambda d: d["guarantees"][1]["neighbours"].update(strength=9),
        "guarantee 2 of 3: the guarantee cannot be read: Guarantee.neighbours: Object contains unknown field",
    ),
    "a field of an event": (lambda d: d["guarantees"][0]["event"].update(x=1), "Repeat has no field 'x'"),
    "version true": (lambda d: d.update(version=True), "has version True"),
    "version 1": (lambda d: d.update(version=1), "an older tacit wrote it"),
    "a guarantee of version 1": (lambda d: d["guarantees"][0].update(version=1), "an older tacit wrote it"),
    "a line break in an observer": (
        lambda d: d["guarantees"][0].update(observer="x\nverified: 9 guarantees"),
        "characters that do not print",
    ),
    "a line break in an assumption": (
        lambda d: d["guarantees"][0]["assumptions"].append("x\r\ny"),
        "characters that do not print",
    ),
    "a line break in a note": (lambda d: d["notes"].append("x\ny"), "characters that do not print"),
    "a line break in a run": (lambda d: d.update(run="x\ny"), "characters that do not print"),
    "a count that is true": (lambda d: d.update(count=True), "got `bool`"),
    "a lower epsilon": (
        lambda d: (d["guarantees"][2].update(epsilon=0.5), d["guarantees"][2].pop("sentence")),
        "guarantee 3 of 3: the statement claims epsilon 0.5",
    ),
    "a file elsewhere": (
        lambda d: d["digests"].update({"/etc/passwd": "0" * 64}),
        "must name files beside the statement",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_run_is_refused(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = statement_of(folder)
    change, said = FORGED[name]
    change(data)
    check_refused(folder, json.dumps(data), said, capsys)


@pytest.mark.parametrize("key", ["version", "count", "guarantees", "released", "epsilon", "observer", "unit"])
def test_a_key_twice_is_refused(key: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "statement.json").read_text()
    at = text.index(f'"{key}":')
    twice = text[:at] + f'"{key}": null, ' + text[at:]
    assert json.loads(twice) == json.loads(text)  # a parser that keeps the last one sees no change
    check_refused(folder, twice, f"the field '{key}' is in one object twice", capsys)


def _with_less_noise(data: Data) -> None:
    """Claim the price of one round in every guarantee, with the arithmetic in order."""
    for k, part in enumerate(data["guarantees"]):
        claim = Guarantee.from_builtins(part)
        event = replace_fields(claim.event, count=1)
        cheaper = guarantee(event, claim.delta, observer=claim.observer, assumptions=claim.assumptions)
        assert cheaper.epsilon < claim.epsilon
        data["guarantees"][k] = cheaper.to_builtins()


@pytest.mark.parametrize("trust", ["local", "central"])
def test_a_price_that_is_not_of_the_plan_beside_it_is_refused(
    trust: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_patients(tmp_path)
    config = {"data": str(path), "label": "ill", "silo_column": "site", "rounds": 2, "delta": 1e-4}
    config["algorithm"] = "accelerated"  # one kind of round
    job = Job(JobConfig.of({**config, "trust": trust}))
    folder = write_run(job.run(), tmp_path / "run")
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    capsys.readouterr()
    forged = statement_of(folder)
    _with_less_noise(forged)
    check_refused(folder, json.dumps(forged), "not of the plan that lies beside it", capsys)
    hidden = statement_of(folder)
    for about in hidden["about"]:
        about["units"] = None
    hidden["data"]["sizes"] = dict.fromkeys(hidden["data"]["sizes"])
    check_refused(folder, json.dumps(hidden), "not of the plan that lies beside it", capsys)
    (folder / "plan.toml").unlink()
    check_refused(
        folder, json.dumps(forged), "no guarantee about the released model says what model.json", capsys
    )


def test_a_plan_or_model_that_cannot_be_read_is_said_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = statement_of(folder)
    for name, text in (
        ("plan.toml", "x = '\x1b\n'"),
        ("plan.toml", "\xff"),
        ("model.json", '{"privacy": 1}'),
        ("model.json", '{"privacy": "", "model": {"kind": "mlp"}}'),
    ):
        data = json.loads(json.dumps(original))
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(text.encode("latin-1"))
        data["digests"][name] = digest_of(folder / name)
        check_refused(folder, json.dumps(data), "beside it cannot be read: ", capsys)
        (folder / name).write_bytes(kept)


def test_a_statement_that_names_another_model_than_lies_beside_it_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = statement_of(folder)
    assert forged["model"].startswith("linear, ")
    forged["model"] = "scattering, 9 parameters"
    check_refused(folder, json.dumps(forged), "model.json beside it is 'linear'", capsys)


def test_bounds_of_some_columns_that_were_read_off_cannot_be_cut_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a description of the others nothing in the statement itself would tell."""
    path = write_patients(tmp_path)
    sidecar = path.with_name("patients.columns.toml")
    spec = ColumnsSpec.read(sidecar)
    rest = {name: column for name, column in spec.columns.items() if name != "bmi"}
    sidecar.write_text(replace_fields(spec, columns=rest).to_toml())
    with pytest.warns(PrivacyWarning, match="of bmi were read off the data"):
        job = Job(JobConfig(data=str(path), label="ill", silo_column="site", rounds=1))
    folder = write_run(job.run(), tmp_path / "run")
    clause, _ = clauses_of_run(Neighbours(), public=False, read_off=("bmi",))
    forged = statement_of(folder)
    strip(forged, clause)
    forged["data"]["read_off"] = []
    check_refused(
        folder, json.dumps(forged), "no guarantee about the released model says what model.json", capsys
    )


def test_names_that_do_not_print_reach_a_statement_as_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_patients(tmp_path, silos=("a", "b"))
    run = Job(JobConfig(data=str(path), label="ill", silo_column="site", rounds=1))
    run.terms = replace(
        run.terms, facts=replace(run.terms.facts, read_off=("x\ny",))
    )  # as a column may be called
    folder = write_run(run.run(), tmp_path / "x\ny")
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert r"bounds read off the data without privacy do not matter (x\ny)" in out
    assert r"bounds read off the data without privacy: x\ny" in out
    assert r"run: x\ny, " in out


@pytest.mark.parametrize("name", ["model.json", "plan.toml", "columns.toml"])
def test_changed_files_are_refused_and_missing_ones_named(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"files not found beside the statement: {name}" in out
    unchecked = "not checked: that the model is the one it names, and starts where it says"
    assert (unchecked in out) is (name == "model.json")
    (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    text = (folder / "statement.json").read_text()
    check_refused(folder, text, f"{name} is not the file that the statement is about", capsys)


def test_continuous_noise_is_admitted_where_it_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = statement_of(folder)
    observer = data["guarantees"][0]["observer"]
    for name in ("plan.toml", "model.json"):  # of the exact noise that really ran
        (folder / name).unlink()
    hidden: dict[str, Any] = {
        "step_times_smoothness": 1.0,
        "convex": True,
        "clip_safe": True,
        "prox_convex": True,
    }
    releases = [
        Repeat(Gaussian(9.0), 3),
        Iteration(9.0, 100, 3, release=Release.LAST, **hidden),
        IterationSchedule(9.0, (EpochSteps(private=100), EpochSteps(private=50, public=50)), **hidden),
    ]
    for release, (stated, code) in product(releases, (((), 1), ((CONTINUOUS,), 0))):
        assumptions = (*stated, HELD_OUT)
        claim = guarantee(release, 1e-6, observer=observer, assumptions=assumptions)
        about = [{"trust": "local", "silo": "a", "units": 100}]
        facts = {**data["data"], "silos": 1, "sizes": {"a": 100}}
        forged = {**data, "data": facts, "about": about, "count": 1, "guarantees": [claim.to_builtins()]}
        (folder / "statement.json").write_text(json.dumps(forged))
        assert main(["account", "verify", str(folder / "statement.json")]) == code
        assert (CONTINUOUS in capsys.readouterr().err) == bool(code)


def test_a_delta_that_lets_records_through_is_said_aloud(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "Delta 0.01 is not below 1 / 100, one over the number of records"
    claim = guarantee(
        DiscreteGaussian(200.0, 100.0, dim=1), 0.01, observer="an observer of the released means"
    )
    facts = {"table": "t.csv", "columns": ["x"], "mean": {"x": 1.0}, "noise_std": {"x": 0.1},
             "confidence": 0.95, "confidence_interval": {"x": [0.8, 1.2]}, "epsilon": claim.epsilon,
             "delta": claim.delta, "trust": "central", "unit": "record", "simulated": False}  # fmt: skip
    loud, small = (
        Statement(
            kind="mean",
            guarantees=(claim,),
            about=(About(trust="central", units=n),),
            answer={**facts, "n": n},
            notes=tuple(notes_on(n, 0.95)),
        ).to_builtins()
        for n in (100, 99)
    )
    assert loud["notes"][-1].startswith(said)
    loud["notes"] = loud["notes"][:-1]  # as a forger would
    assert list(small["notes"]) == notes_on(99, 0.95)
    for data, aloud in ((loud, True), (small, False)):
        path = tmp_path / "s.json"
        path.write_text(json.dumps(data))
        assert main(["account", "verify", str(path)]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert (f"warning: {said}" in out) == aloud


def test_no_number_of_a_run_can_be_too_large_to_compute_with(written: Path) -> None:
    check_large_numbers((written / "statement.json").read_text())


def test_all_guarantees_of_a_statement_share_one_limit_of_work(written: Path) -> None:
    data = statement_of(written)
    event = Repeat(Sampled(Laplace(3.0), 0.1), 1000)
    claims = [Guarantee.from_builtins(part) for part in data["guarantees"]]
    most = int(VERIFY_WORK / work_of(event)) + 1
    assert 1 < most < 1000
    heavy = Statement(
        kind="vote release",
        guarantees=tuple(
            replace_fields(claims[0], event=event, method=f"m{k}", simulated=True) for k in range(most)
        ),
    )
    with pytest.raises(VerificationError, match="computed within 4e\\+08 numbers in all"):
        heavy.verify()


# words of others


FALSE = "arithmetic verified; origin verified by the notary."


@pytest.mark.parametrize("columns", [None, 12, 40, 120])
def test_no_line_of_a_foreign_paragraph_but_its_first_starts_at_the_margin(
    columns: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
    for letter in ("x", "x ", "東"):
        for pad in range(0, 130, 3):
            print_foreign(f"note: {letter * pad} {FALSE}")
            first, *others = capsys.readouterr().out.splitlines()
            assert first.startswith("note:")
            assert all(line.startswith("  ") and line.strip() for line in others)
            assert all(cell_len(line) <= (columns or 80) for line in (first, *others))
            shown = "".join("".join((first, *others)).split())
            assert shown == f"note:{letter * pad}{FALSE}".replace(" ", "")


def test_nothing_that_others_wrote_starts_where_our_lines_do(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = f"{'x' * 59} {FALSE}"
    data = statement_of(folder)
    (folder / "model.json").unlink()  # which says something else
    data["notes"].append(text)
    data["run"] = data["algorithm"] = data["tacit"] = data["data"]["name"] = text
    data["not_private"] = [{"trust": "none", "sentence": OPEN}]
    data["notes"].append(compared_note("local"))
    data["digests"][text] = "0" * 64
    data["about"][0]["silo"] = text
    data["data"]["sizes"] = {text: 48, **dict(list(data["data"]["sizes"].items())[1:])}
    for part in data["guarantees"]:
        part["assumptions"].append(text)
        del part["sentence"]
    data["guarantees"][0]["observer"] = f"everybody outside silo '{text}', the server included,"
    (folder / "statement.json").write_text(json.dumps(data))
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    ours = (
        "verified:",
        "run:",
        "data:",
        "released:",
        "files ",
        "not checked: ",
        "local, each of silos",
        "none, without privacy:",
        "note:",
    )
    assert all(line.startswith((*ours, "  ")) or not line for line in lines[:-1])
    assert "\n".join(lines).count("notary.") == 8
    assert lines[-1] == VERDICT


def test_when_and_by_what_a_statement_was_made_is_shown_without_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = statement_of(folder)
    del data["run"]
    (folder / "statement.json").write_text(json.dumps(data))
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert f"made: {data['created']}, tacit {data['tacit']}\n" in capsys.readouterr().out
