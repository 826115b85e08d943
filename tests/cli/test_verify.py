"""`tacit account verify` against forgers: what arithmetic can catch is refused in one line."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as replace_fields
from rich.cells import cell_len

from tacit.cli import main
from tacit.cli.account.mix import check_prices
from tacit.cli.account.statements import check_facts
from tacit.cli.output import print_foreign
from tacit.errors import VerificationError
from tacit.learning.job import Job, JobResult
from tacit.learning.job_config import JobConfig
from tacit.privacy import (
    CONTINUOUS,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    Neighbours,
    PureDP,
    Repeat,
    Sampled,
    Unit,
    event_to_json,
    guarantee,
)
from tacit.privacy.statement import About, Statement
from tacit.privacy.statement_file import read_statement
from tacit.privacy.work import VERIFY_WORK, work_of
from tacit.reports import write_run
from tests.learning.job_tables import write_patients
from tests.reports.runs import compared, open_run

VERDICT = "arithmetic verified; origin not verified"
SAMPLED = "nobody learns which records are sampled"
Data = dict[str, Any]


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


def statement_of(folder: Path) -> Data:
    found: Data = json.loads((folder / "statement.json").read_text())
    return found


def check_refused(folder: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Fail unless a file is refused with exit code 1 and one line on the error stream."""
    (folder / "statement.json").write_text(text)
    assert main(["account", "verify", str(folder / "statement.json")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith("tacit: the statement ")
    assert said in captured.err


def test_a_run_is_verified_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statement = statement_of(folder)
    assert statement["count"] == len(statement["guarantees"]) == 3
    assert set(statement["digests"]) == {"model.joblib", "plan.toml", "columns.toml"}
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("verified: 3 guarantees in ")
    assert out.endswith(VERDICT)
    for shown in (
        f"run: {statement['run']}, {statement['created']}, tacit ",
        "data: patients.csv, 3 silos with 48 records each",
        "released: the local model",
        "files as they were: model.joblib, plan.toml, columns.toml",
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
    assert out.count("(epsilon = 2, ") == 2  # local, and central
    assert "none, not private: No privacy is claimed" in out
    assert "data: digits" in out


def test_a_run_that_claims_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(open_run(), tmp_path / "run")
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("verified: 0 guarantees in ")
    assert "released: the none model" in out
    assert "none, not private: No privacy is claimed" in out


def strip(data: Data, clause: str) -> None:
    for part in data["guarantees"]:
        assert clause in part["assumptions"]
        part["assumptions"].remove(clause)
        del part["sentence"]


def with_about(data: Data, k: int, **fields: object) -> object:
    data["about"][k].update(fields)
    return data


def reworded(data: Data, k: int, **fields: object) -> object:
    data["guarantees"][k].update(fields)
    data["guarantees"][k].pop("sentence", None)
    return data


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
        "must be about trust 'local' or 'central', got 'certified'",
    ),
    "an open trust model of its own": (
        lambda d: d.update(not_private=[{"trust": "verified", "sentence": "x"}], released="verified"),
        "not_private must be about local, central or none, got 'verified'",
    ),
    "a condition twice": (
        lambda d: [reworded(d, k, assumptions=2 * d["guarantees"][k]["assumptions"]) for k in range(3)],
        "names a condition twice",
    ),
    "no model": (lambda d: d["digests"].pop("model.joblib"), "must name model.joblib in its digests"),
    "no plan": (lambda d: d["digests"].pop("plan.toml"), "must name plan.toml in its digests"),
    "no digests": (lambda d: d.pop("digests"), "must name model.joblib in its digests"),
    "a field of about": (lambda d: with_about(d, 0, seen_by="nobody"), "unknown field `seen_by`"),
    "another released model": (
        lambda d: d.update(released="central"),
        "the released model 'central' is in no",
    ),
    "no released model": (lambda d: d.pop("released"), "must have the fields `data` and `released`"),
    "no data": (lambda d: d.pop("data"), "must have the fields `data` and `released`"),
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


def test_names_that_do_not_print_reach_a_statement_as_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_patients(tmp_path, silos=("a", "b"))
    run = Job(JobConfig(data=str(path), label="ill", silo_column="site", rounds=1))
    run.data = replace(run.data, notes=("bounds of x\ny do not matter",))  # as a column may be called
    folder = write_run(run.run(), tmp_path / "x\ny")
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert r"bounds of x\ny do not matter" in out
    assert r"run: x\ny, " in out


@pytest.mark.parametrize("name", ["model.joblib", "plan.toml", "columns.toml"])
def test_changed_files_are_refused_and_missing_ones_named(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert f"files not found beside the statement: {name}" in capsys.readouterr().out
    (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    text = (folder / "statement.json").read_text()
    check_refused(folder, text, f"{name} is not the file that the statement is about", capsys)


def test_continuous_noise_is_admitted_where_it_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = statement_of(folder)
    observer = data["guarantees"][0]["observer"]
    for assumptions, code in (((), 1), ((CONTINUOUS,), 0)):
        claim = guarantee(Repeat(Gaussian(9.0), 3), 1e-6, observer=observer, assumptions=assumptions)
        about = [{"trust": "local", "silo": "a", "units": 48}]
        facts = {**data["data"], "silos": 1, "sizes": {"a": 48}}
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
             "delta": claim.delta, "trust": "central", "simulated": False}  # fmt: skip
    loud, small = (
        Statement(
            kind="mean",
            guarantees=(claim,),
            about=(About(trust="central", units=n),),
            answer={**facts, "n": n},
        ).to_builtins()
        for n in (100, 99)
    )
    assert loud["notes"][0].startswith(said)
    assert "notes" not in small
    del loud["notes"]  # a forger would
    for data, aloud in ((loud, True), (small, False)):
        path = tmp_path / "s.json"
        path.write_text(json.dumps(data))
        assert main(["account", "verify", str(path)]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert (f"warning: {said}" in out) == aloud


# what every command states


def commands(tmp_path: Path) -> dict[str, tuple[list[str], tuple[str, ...]]]:
    """Return a call of every command that writes a statement, and clauses that its price rests on."""
    np.save(tmp_path / "votes.npy", np.ones((2, 5), dtype=np.int8))
    (tmp_path / "t.csv").write_text("x\n" + "1\n" * 20)
    gamma = str(tmp_path / "gamma.json")
    teachers = ["--teachers", "5", "--epsilon", "0.1", "--m", "3", "--method", "constant"]
    assert main(["vote", "design", *teachers, "--out", gamma]) == 0
    rounds = ["--delta", "1e-5", "--rounds", "3", "--sample-rate", "0.1"]
    hundred = ["--trust", "shuffle", "--n", "100", "--mechanism", "2rr"]
    column = ["--columns", "x", "--lower", "0", "--upper", "2"]
    shuffler, parties = "the shuffler is honest", "nobody learns which parties are sampled"
    batch = "every batch holds 100 honest messages"
    votes = ["--votes", str(tmp_path / "votes.npy"), "--out", str(tmp_path / "labels.npy")]
    return {
        "epsilon": (["account", "epsilon", "--noise", "2", *rounds], (SAMPLED,)),
        "subsample": (["account", "subsample", "pure:1", *rounds], (SAMPLED,)),
        "shuffle": (
            ["account", "shuffle", "--local-epsilon", "1", "--n", "1000", "--mechanism", "2rr", *rounds],
            (shuffler, batch, parties),
        ),
        "iterate": (
            ["account", "iterate", "--n", "10", "--epochs", "2", "--noise", "4", "--delta", "1e-5"],
            ("the order of the records does not depend on their values", "only the last iterate leaves"),
        ),
        "compose": (
            ["account", "compose", "binomial:7148,10,1", "gaussian:2@0.1", "--delta", "1e-5"],
            (shuffler, "honest parties add 7,148 noise bits to every coordinate", SAMPLED),
        ),
        "calibrate": (["account", "calibrate", "--epsilon", "1", *rounds], (SAMPLED,)),
        "calibrate, shuffle": (
            ["account", "calibrate", "--epsilon", "1", "--delta", "1e-5", *hundred],
            (shuffler, batch),
        ),
        "mean": (
            ["mean", str(tmp_path / "t.csv"), *column, "--epsilon", "1", "--seed", "0"],
            (),
        ),
        "vote": (
            ["vote", "release", gamma, *votes, "--teachers-are", "fresh"],
            ("the teachers share no randomness", "every vote is private by itself with epsilon 0.1"),
        ),
        "vote, disjoint": (
            ["vote", "release", gamma, *votes, "--teachers-are", "fixed", "--shards", "disjoint"],
            ("records are dealt to disjoint parts without looking at any of them",),
        ),
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What every command prints with --json, and clauses that its price rests on."""
    found = {}
    for name, (argv, clauses) in commands(tmp_path_factory.mktemp("answers")).items():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main([*argv, "--json"]) == 0, name
        found[name] = out.getvalue(), clauses
    return found


def test_every_command_states_what_its_price_rests_on_and_none_of_it_can_be_cut(
    answers: dict[str, tuple[str, tuple[str, ...]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "statement.json"
    for name, (text, clauses) in answers.items():
        path.write_text(text)
        assert main(["account", "verify", str(path)]) == 0, name
        assert capsys.readouterr().out.splitlines()[-1] == VERDICT
        first = json.loads(text)["guarantees"][0]
        for clause in clauses:
            assert clause in first["assumptions"], name
            assert clause in first["sentence"], name
            forged = json.loads(text)
            forged["guarantees"][0]["assumptions"].remove(clause)
            del forged["guarantees"][0]["sentence"]
            forged.pop("guarantee", None)
            check_refused(tmp_path, json.dumps(forged), f"its price rests on: {clause}", capsys)


FACTS: dict[str, dict[str, object]] = {
    "epsilon": {"epsilon": 0.1, "delta": 1e-9, "noise_multiplier": 3.0, "rounds": 1, "sample_rate": 0.2,
                "neighbours": "add-remove", "mechanism": "laplace", "method": "magic"},
    "subsample": {"release": "pure:0.5", "rounds": 4, "epsilon_per_round": 0.01,
                  "epsilon_without_sampling": 0.1},
    "shuffle": {"n": 100_000, "local_epsilon": 0.5, "parties_per_round": 1000, "mechanism": "general",
                "messages": 2, "rounds": "3", "sample_rate": [0.1]},
    "iterate": {"n": 11, "epochs": 1, "noise_multiplier": 5.0, "release": "all", "order": "ig", "loss": "any",
                "private": 5, "step_times_smoothness": 1.0, "worst_case_order": True},
    "compose": {"releases": [{"release": "pure:0.1", "epsilon": 0.1}], "neighbours": "zero-out"},
    "calibrate": {"noise_multiplier": 50.0, "budget_epsilon": 0.5, "trust": "local", "n": 10**6},
    "mean": {"n": 10**6, "trust": "local", "simulated": False, "guarantee": "None."},
    "vote": {"epsilon": 0.01, "simulated": True},
}  # fmt: skip


def check(data: Data) -> None:
    """Do what the command does, without the command."""
    statement = read_statement(json.dumps(data).encode())
    check_facts(statement)
    statement.verify()


def again(data: Data) -> None:
    """State everything twice."""
    data["guarantees"] *= 2
    data["about"] *= 2
    data["count"] = 2


def inside(name: str, value: object) -> Callable[[Data], object]:
    """Return what sets one value of the only column in a fact of means."""
    return lambda d: d[name].update(x=value)


ANSWERS: dict[str, tuple[str, Callable[[Data], object], str]] = {
    "mean without about": ("mean", lambda d: d.pop("about"), "says of 1 guarantees whom they are about"),
    "mean without about, fewer": (
        "mean",
        lambda d: (d.pop("about"), d.update(n=5)),
        "says of 1 guarantees whom they are about",
    ),
    "shuffle without about": ("shuffle", lambda d: d.pop("about"), "says of 2 guarantees"),
    "calibrate without about": ("calibrate", lambda d: d.pop("about"), "says of 1 guarantees"),
    "vote with about": (
        "vote",
        lambda d: d.update(about=[{"trust": "central", "silo": None, "units": 9}]),
        "says of 0 guarantees",
    ),
    "mean twice": ("mean", again, "holds 1 guarantees, got 2"),
    "mean of a silo": ("mean", lambda d: with_about(d, 0, silo="a"), "and silo 'a'"),
    "mean by another server": ("mean", lambda d: with_about(d, 0, trust="notary"), "got trust 'notary'"),
    "mean of other trust": (
        "mean",
        lambda d: (with_about(d, 0, trust="local"), d.update(trust="local")),
        "the observer is \"an observer of every record's own noisy message\"",
    ),
    "mean of other continuous noise": (
        "mean",
        lambda d: reworded(d, 0, event=json.loads(event_to_json(Laplace(1.0)))),
        "must be discrete noise",
    ),
    "mean of no number": ("mean", inside("mean", "1.0"), "must be finite numbers, got '1.0'"),
    "mean of a truth": ("mean", inside("mean", True), "must be finite numbers, got True"),
    "mean outside": ("mean", inside("mean", 1e9), "must lie in its interval"),
    "no noise": ("mean", inside("noise_std", 0.0), "its noise be above 0"),
    "negative noise": ("mean", inside("noise_std", -1.0), "its noise be above 0"),
    "noise in words": ("mean", lambda d: d.update(noise_std="large"), "noise_std at the top must hold one"),
    "an interval of one end": ("mean", inside("confidence_interval", [1.0]), "must be two numbers"),
    "an interval in words": ("mean", inside("confidence_interval", "all"), "must be two numbers"),
    "mean of another column": ("mean", lambda d: d["mean"].update(y=1.0), "mean at the top must hold one"),
    "a column more": ("mean", lambda d: d["columns"].append("y"), "must be the 1 different ones"),
    "a column twice": ("mean", lambda d: d["columns"].append("x"), "must be the 1 different ones"),
    "columns that are none": ("mean", lambda d: d.update(columns="x"), "columns at the top must be a list"),
    "certainty": ("mean", lambda d: d.update(confidence=1.0), "confidence must be"),
    "confidence in words": ("mean", lambda d: d.update(confidence="high"), "confidence must be"),
    "n in words": ("mean", lambda d: d.update(n="many"), "n at the top must be a whole number"),
    "no noise said": ("mean", lambda d: d.pop("noise_std"), "must have 'noise_std' at the top"),
    "other queries": (
        "vote",
        lambda d: d.update(queries=1),
        "the observer is 'an observer of the published bit'",
    ),
    "other queries and observer": (
        "vote",
        lambda d: (d.update(queries=1), d.pop("guarantee"), reworded(d, 0, observer=BIT)),
        "it says 1 queries to 5 teachers at the top, but the event 2 to 5",
    ),
    "more teachers": ("vote", lambda d: d.update(teachers=500), "queries to 500 teachers at the top, but"),
    "fewer teachers": ("vote, disjoint", lambda d: d.update(teachers=1), "at the top"),
    "teachers in words": ("vote", lambda d: d.update(teachers="5"), "teachers at the top must be a whole"),
    "no queries": ("vote", lambda d: d.update(queries=0), "queries at the top must be a whole number"),
    "a method that is none": ("vote", lambda d: d.update(method=3), "method and out at the top"),
    "other bits": ("vote", lambda d: d.update(out="other.npy"), "must name the bits, 'other.npy'"),
    "bits of nobody": ("vote", lambda d: d.pop("digests"), "must name the bits, 'labels.npy'"),
    "teachers unsaid": ("vote", lambda d: d.pop("teachers"), "must have 'teachers' at the top"),
    "a word in a release": (
        "compose",
        lambda d: d["releases"][0].update(certified=True),
        "every one of releases must have a release and its epsilon",
    ),
    "seconds in words": ("shuffle", lambda d: d.update(seconds="none"), "seconds must be a number"),
    "seconds in a list": ("shuffle", lambda d: d.update(seconds=[1]), "seconds must be a number"),
    "seconds that run back": ("shuffle", lambda d: d.update(seconds=-1.0), "seconds must be a number"),
    "a plot of none": ("shuffle", lambda d: d.update(plot=3), "plot must be the name of a file"),
    "a message alone, cheaper": (
        "shuffle",
        lambda d: d["guarantees"].__setitem__(
            1,
            guarantee(
                PureDP(0.1, Neighbours(unit=Unit.PARTY)), 0.0, observer=d["guarantees"][1]["observer"]
            ).to_builtins(),
        ),
        "the guarantee of one message are of different releases",
    ),
    "a budget below": (
        "calibrate",
        lambda d: (d.pop("epsilon"), d.update(budget_epsilon=0.01)),
        "budget_epsilon is below epsilon",
    ),
    "a local level of a central release": (
        "calibrate",
        lambda d: d.update(local_epsilon=0.01),
        "local_epsilon is no fact of trust 'central'",
    ),
    "parties of a central release": ("calibrate", lambda d: d.update(mechanism="2rr"), "is no fact of trust"),
    **{
        f"another observer of {name}": (
            name,
            lambda d: (d.pop("guarantee", None), reworded(d, 0, observer="nobody")),
            "got 'nobody'",
        )
        for name in ("epsilon", "subsample", "shuffle", "iterate", "compose", "calibrate", "mean", "vote")
    },
}  # fmt: skip
BIT = "an observer of the published bit"


def test_an_answer_cannot_contradict_itself(answers: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    for forgery, (name, change, said) in ANSWERS.items():
        data = json.loads(answers[name][0])
        change(data)
        with pytest.raises(VerificationError) as caught:
            check(data)
        assert said in str(caught.value), forgery


HOSTILE: list[object] = [None, "", "sorted", -1, 0, True, [], {}, 10**300, 1e300, [{"release": 3}], [3]]
HARMLESS = {("budget_epsilon", 1e300), ("private", None)}


def test_hostile_facts_at_the_top_are_refused_and_crash_nothing(
    answers: dict[str, tuple[str, tuple[str, ...]]],
) -> None:
    for name in sorted(set(FACTS) - {"mean", "vote"}):
        for field in set(FACTS[name]) - {"epsilon", "delta", "method"}:  # those are the guarantee's
            for value in HOSTILE:
                data = json.loads(answers[name][0])
                if data.get(field) == value and not isinstance(value, bool):
                    continue
                if any(field == f and value == v for f, v in HARMLESS):
                    continue
                data[field] = value
                with pytest.raises(VerificationError, match=r"at the top|too large or too long"):
                    check(data)


def test_facts_at_the_top_cannot_contradict_the_event(
    answers: dict[str, tuple[str, tuple[str, ...]]],
) -> None:
    for name, changes in FACTS.items():
        for field, value in changes.items():
            data = json.loads(answers[name][0])
            assert data.get(field) != value
            data[field] = value
            with pytest.raises(VerificationError, match="at the top"):
                check(data)


def test_a_single_guarantee_is_verified_and_its_origin_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim: Guarantee = guarantee(Gaussian(2.0), 1e-5, observer="anybody")
    (tmp_path / "one.json").write_bytes(claim.to_json())
    assert main(["account", "verify", str(tmp_path / "one.json")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == VERDICT


# whole numbers and work without end


def places(found: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the ways to every number in builtins."""
    if isinstance(found, dict | list):
        rows = found.items() if isinstance(found, dict) else enumerate(found)
        return [place for key, value in rows for place in places(value, (*way, key))]
    return [way] if isinstance(found, int | float) and not isinstance(found, bool) else []


@pytest.mark.parametrize("name", ["mean", "calibrate, shuffle", "vote", "run"])
def test_no_number_of_a_statement_can_be_too_large_to_compute_with(
    name: str, answers: dict[str, tuple[str, tuple[str, ...]]], written: Path
) -> None:
    text = (written / "statement.json").read_text() if name == "run" else answers[name][0]
    ways = places(json.loads(text))
    assert len(ways) > 8
    for way in ways:
        for number in (10**390, 2**62 + 1, -(10**390)):
            data = json.loads(text)
            inner = data
            for key in way[:-1]:
                inner = inner[key]
            inner[way[-1]] = number
            with pytest.raises(VerificationError, match="is too large or too long"):
                read_statement(json.dumps(data).encode())


def test_units_and_delta_that_a_float_cannot_hold_are_refused(
    answers: dict[str, tuple[str, tuple[str, ...]]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = json.loads(answers["mean"][0])
    data["n"] = data["about"][0]["units"] = 10**390
    check_refused(tmp_path, json.dumps(data), "is too large or too long", capsys)


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


def test_the_prices_of_single_releases_share_one_limit_of_work(
    answers: dict[str, tuple[str, tuple[str, ...]]],
) -> None:
    data = json.loads(answers["compose"][0])
    event = Repeat(Sampled(Laplace(3.0), 0.1), 10**9)
    count = int(VERIFY_WORK / work_of(event)) + 1
    data["releases"] = [{"release": f"laplace:3@0.1x{10**9 + k}", "epsilon": 1.0} for k in range(count)]
    with pytest.raises(VerificationError, match="computed within 4e\\+08 numbers in all"):
        check_prices(data)


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
    data["notes"].append(text)
    data["run"] = data["algorithm"] = data["tacit"] = data["data"]["name"] = text
    data["not_private"] = [{"trust": "none", "sentence": text}]
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
        "local, each of silos",
        "none, not private:",
        "note:",
    )
    assert all(line.startswith((*ours, "  ")) or not line for line in lines[:-1])
    assert "\n".join(lines).count("notary.") == 9
    assert lines[-1] == VERDICT


def test_when_and_by_what_a_statement_was_made_is_shown_without_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = statement_of(folder)
    del data["run"]
    (folder / "statement.json").write_text(json.dumps(data))
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert f"made: {data['created']}, tacit {data['tacit']}\n" in capsys.readouterr().out
