"""`tacit account verify` of what commands answer: no condition can be cut, no fact at the top changed."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.cli.account.mix import check_prices
from tacit.cli.account.statements import check_facts
from tacit.errors import VerificationError
from tacit.privacy import (
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
from tacit.privacy.statement_file import read_statement
from tacit.privacy.work import VERIFY_WORK, work_of
from tests.cli.verifying import (
    SAMPLED,
    VERDICT,
    Data,
    check_large_numbers,
    check_refused,
    reworded,
    with_about,
)


def commands(tmp_path: Path) -> dict[str, tuple[list[str], tuple[str, ...]]]:
    """Return a call of every command that writes a statement, and clauses that its price rests on."""
    np.save(tmp_path / "votes.npy", np.ones((2, 5), dtype=np.int8))
    (tmp_path / "t.csv").write_text("x,who\n" + "1,a\n1,b\n" * 10)
    gamma = str(tmp_path / "gamma.json")
    teachers = ["--teachers", "5", "--epsilon", "0.1", "--m", "3", "--method", "constant"]
    assert main(["vote", "design", *teachers, "--out", gamma]) == 0
    rounds = ["--delta", "1e-5", "--rounds", "3", "--sample-rate", "0.1"]
    few = ["--local-epsilon", "1", "--clients", "60", "--drawn", "6", "--rounds", "2"]
    hundred = ["--trust", "shuffle", "--n", "100", "--mechanism", "2rr"]
    column = ["--columns", "x", "--lower", "0", "--upper", "2"]
    whose = ["--person", "who", "--neighbours", "zero-out", "--trust", "local"]
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
        "reports": (
            ["account", "reports", *few, "--dim", "8", "--delta", "1e-5"],
            (shuffler, "every batch holds 6 honest messages"),
        ),
        "halving": (
            [
                "account",
                "halving",
                "gaussian:9@0.1x40",
                "--check",
                "laplace:99",
                "--rounds",
                "40",
                "--delta=1e-5",
            ],
            (SAMPLED,),
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
        "mean of persons": (
            ["mean", str(tmp_path / "t.csv"), *column, "--epsilon", "1", "--seed", "0", *whose],
            ("a person who is blanked out keeps the id, so that the number of ids is public",),
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
                "private": 5, "step_times_smoothness": 1.0, "worst_case_order": True,
                "neighbours": "zero-out"},
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
    "mean of no number": ("mean", inside("mean", "1.0"), "must be a finite number, got '1.0'"),
    "mean of a truth": ("mean", inside("mean", True), "must be a finite number, got True"),
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
    "records that are persons": ("mean", lambda d: d.update(unit="person"), "unit at the top must be"),
    "persons that are records": (
        "mean of persons",
        lambda d: d.update(unit="record"),
        "unit at the top must be that of the guarantee",
    ),
    "a unit that is none": ("mean", lambda d: d.update(unit=["record"]), "unit at the top must be that of"),
    "messages of records": (
        "mean of persons",
        lambda d: reworded(d, 0, observer="an observer of every record's own noisy message"),
        "the observer is \"an observer of every person's own noisy message\"",
    ),
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
        "local_epsilon is not a fact of trust 'central'",
    ),
    "parties of a central release": (
        "calibrate",
        lambda d: d.update(mechanism="2rr"),
        "is not a fact of trust",
    ),
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
            with pytest.raises(VerificationError, match=r"at the top|a note that its facts ask for"):
                check(data)


def test_a_single_guarantee_is_verified_and_its_origin_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim: Guarantee = guarantee(Gaussian(2.0), 1e-5, observer="anybody")
    (tmp_path / "one.json").write_bytes(claim.to_json())
    assert main(["account", "verify", str(tmp_path / "one.json")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == VERDICT


@pytest.mark.parametrize("name", ["mean", "calibrate, shuffle", "vote"])
def test_no_number_of_an_answer_can_be_too_large_to_compute_with(
    name: str, answers: dict[str, tuple[str, tuple[str, ...]]]
) -> None:
    check_large_numbers(answers[name][0])


def test_units_and_delta_that_a_float_cannot_hold_are_refused(
    answers: dict[str, tuple[str, tuple[str, ...]]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = json.loads(answers["mean"][0])
    data["n"] = data["about"][0]["units"] = 10**390
    check_refused(tmp_path, json.dumps(data), "is too large or too long", capsys)


def test_the_prices_of_single_releases_share_one_limit_of_work(
    answers: dict[str, tuple[str, tuple[str, ...]]],
) -> None:
    data = json.loads(answers["compose"][0])
    event = Repeat(Sampled(Laplace(3.0), 0.1), 10**9)
    count = int(VERIFY_WORK / work_of(event)) + 1
    data["releases"] = [{"release": f"laplace:3@0.1x{10**9 + k}", "epsilon": 1.0} for k in range(count)]
    with pytest.raises(VerificationError, match="computed within 4e\\+08 numbers in all"):
        check_prices(data)


def test_no_note_on_what_means_mean_can_be_cut_out(
    answers: dict[str, tuple[str, tuple[str, ...]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in ("mean", "mean of persons"):
        notes = json.loads(answers[kind][0])["notes"]
        assert len(notes) == 3
        for note in notes:
            forged = json.loads(answers[kind][0])
            forged["notes"].remove(note)
            check_refused(tmp_path, json.dumps(forged), f"a note that its facts ask for: {note}", capsys)
