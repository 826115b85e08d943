"""`tacit bandit` from the outside: simulations, plans, and runs from a log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

from tacit.bandits import Anonymity, RewardPrivacy, random_circle, reward_message
from tacit.bandits.reward_privacy import DEALT
from tacit.cli import main
from tacit.ledger import Ledger
from tacit.privacy import Guarantee, Parallel, PureDP, TrustModel, guarantee, verify

TEN = ["--actions", "10", "--dim", "2", "--horizon", "1e6", "--epsilon", "1"]
FREE = ["simulate", "--actions", "10", "--horizon", "1e6", "--trust", "none"]


def answer(argv: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["bandit", *argv, "--json"]) == 0
    captured = capsys.readouterr()
    assert all(line.startswith("warning: ") for line in captured.err.splitlines())
    found: dict[str, Any] = json.loads(captured.out)
    return found


def refusal(argv: list[str], capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    assert main(["bandit", *argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = [line for line in captured.err.splitlines() if not line.startswith("warning: ")]
    return line


def test_a_simulation_says_regret_and_guarantee(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["simulate", *TEN, "--trust", "shuffle"], capsys)
    assert 0 < found["regret"] < 2e6
    assert sum(batch["rounds"] for batch in found["batches"]) == 10**6
    assert "epsilon = 1, delta = 1e-06" in found["guarantee"]
    assert "Simulated" in found["guarantee"]
    for claim in found["guarantees"]:
        verify(Guarantee.from_builtins(claim))
    assert (found["budget_epsilon"], found["budget_delta"], found["levels"]) == (1.0, 1e-6, "numeric")
    assert found == answer(["simulate", *TEN, "--trust", "shuffle"], capsys)
    other = answer(["simulate", *TEN, "--trust", "shuffle", "--seed", "1"], capsys)
    assert other["regret"] != found["regret"]


def test_every_option_of_a_simulation_reaches_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["simulate", "--actions", "5", "--horizon", "1e5"]
    base = answer([*small, "--epsilon", "1"], capsys)
    assert (base["trust"], base["dim"]) == ("central", 2)
    for options in (
        ["--noise", "laplace", "--trust", "local"],
        ["--radius-mode", "seed"],
        ["--all-actions"],
        ["--rewards", "clipped_gaussian"],
        ["--dim", "3"],
        ["--trust", "local"],
    ):
        assert answer([*small, "--epsilon", "1", *options], capsys)["batches"] != base["batches"], options
    none = answer([*small, "--trust", "none", "--runs", "2"], capsys)
    assert none["regret"] == none["regret_without_privacy"]
    assert none["standard_error"] > 0
    shuffled = [*small, "--epsilon", "1", "--trust", "shuffle"]
    numeric = answer(shuffled, capsys)["batches"][4]["level"]
    assert answer([*shuffled, "--method", "paper"], capsys)["batches"][4]["level"] < numeric
    assert answer([*shuffled, "--anonymity", "action"], capsys)["batches"][4]["level"] != numeric


def test_a_table_is_printed_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bandit", "simulate", "--actions", "5", "--horizon", "1e4", "--epsilon", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("regret ")
    assert "rest" in said
    assert "nan" not in said


def test_a_plan_ranks_trust_models(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["plan", *TEN, "--runs", "2"], capsys)
    assert [row["trust"] for row in found["plans"]] == ["none", "aggregate", "central", "shuffle", "local"]
    assert (found["plans"][1]["parties"], found["plans"][1]["budget_delta"]) == (10, 1e-6)
    assert found["plans"][0]["bound"] == pytest.approx(200369.9, abs=0.1)
    assert all(0 < row["simulated"] < row["bound"] for row in found["plans"])
    # Core sets of few actions may be larger than that of all of them, and the bound is for the largest.
    many = ["plan", "--actions", "50", "--dim", "3", "--horizon", "1e4", "--epsilon", "1"]
    sizes = [answer([*many, "--runs", runs], capsys)["core_set"] for runs in ("0", "4")]
    assert sizes[0] < sizes[1]
    alone = answer(["plan", *TEN, "--runs", "0"], capsys)
    assert alone["plans"][1]["simulated"] is None
    assert main(["bandit", "plan", *TEN, "--runs", "1"]) == 0
    assert "proven bound" in capsys.readouterr().out


@pytest.fixture
def actions(tmp_path: Path) -> Path:
    """Five actions in the plane, on file."""
    rows, _ = random_circle(5, 2, np.random.default_rng(0))
    np.savetxt(tmp_path / "actions.csv", rows, delimiter=",")
    return tmp_path / "actions.csv"


def test_sums_of_silos_are_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["bandit", "simulate", "--actions", "4", "--horizon", "1e5", "--epsilon", "0.1", "--seed", "1"]
    words = [*base, "--trust", "aggregate", "--parties", "6", "--colluding", "3", "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["trust"], found["parties"], found["colluding"]) == ("aggregate", 6, 3)
    assert found["budget_delta"] == 1e-6
    assert found["survived"] == 1
    assert "up to 3 of them together" in json.dumps(found)
    for more, why in (
        (["--trust", "aggregate", "--parties", "1"], "parties must be"),
        (["--trust", "aggregate", "--noise", "laplace"], "noise must be discrete under aggregate trust"),
        (["--trust", "central", "--colluding", "1"], "parties and colluding are for trust 'aggregate'"),
    ):
        assert main([*base, *more]) == 2
        assert why in capsys.readouterr().err
    np.savetxt(tmp_path / "actions.csv", np.eye(2), delimiter=",")
    run = ["bandit", "run", str(tmp_path / "run.json"), "--actions", str(tmp_path / "actions.csv")]
    assert main([*run, "--horizon", "1000", "--trust", "aggregate", "--epsilon", "1"]) == 2
    assert "kept in a file, got aggregate" in capsys.readouterr().err


@pytest.mark.parametrize("trust", ["central", "local", "shuffle", "none"])
def test_a_run_goes_on_with_its_log(
    trust: str, actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, log, out = str(tmp_path / "run.json"), tmp_path / "log.csv", tmp_path / "next.csv"
    start = [*("--actions", str(actions)), "--horizon", "500", "--trust", trust]
    if trust != "none":
        start += ["--epsilon", "1"]
    found = answer(["run", record, *start, "--out", str(out)], capsys)
    rng = np.random.default_rng(1)
    means = np.loadtxt(actions, delimiter=",") @ np.array([0.9, 0.1])
    kind = "message" if trust in ("local", "shuffle") else "reward"
    lines = [f"batch,action,{kind}"]
    mixed = False
    while not found["finished"]:
        batch = found["next"]
        dealt = [int(row) for row in out.read_text().splitlines()[1:]]
        assert len(dealt) == batch["rounds"]
        mixed |= dealt != sorted(dealt)
        assert sorted(dealt) == sorted(np.repeat(batch["actions"], batch["counts"]).tolist())
        rewards = np.where(rng.random(len(dealt)) < (1 + means[dealt]) / 2, 1.0, -1.0)
        if kind == "message":
            rewards = reward_message(rewards, batch["level"], rng).astype(float)
        rows = [f"{batch['batch']},{a},{r:g}" for a, r in zip(dealt, rewards, strict=True)]
        # Half of a batch changes nothing.
        log.write_text("\n".join([*lines, *rows[: len(rows) // 2]]) + "\n")
        half = answer(["run", record, "--log", str(log)], capsys)
        assert (half["answered"], half["next"]) == ([], batch)
        if kind == "reward" and batch["batch"] == 1:
            assert main(["bandit", "run", record, "--log", str(log)]) == 0
            said = capsys.readouterr().out
            assert "in the log" in said
            for action, count in zip(batch["actions"], batch["counts"], strict=True):
                here = dealt[: len(rows) // 2].count(action)
                assert re.search(rf"^{action} +{count} +{here} *$", said, re.MULTILINE)
        lines += rows
        log.write_text("\n".join(lines) + "\n")
        found = answer(["run", record, "--log", str(log), "--out", str(out)], capsys)
        assert found["answered"] == [batch["batch"]]
        # The same log again answers nothing again.
        again = answer(["run", record, "--log", str(log)], capsys)
        assert (again["answered"], again["next"]) == ([], found["next"])
    assert sum(1 for _ in lines) - 1 + found["next"]["rounds"] == 500
    # Behind a shuffler nobody may know who plays what; of 100 clients and more, no deal is in order.
    assert mixed is (trust == "shuffle")
    assert main(["bandit", "run", record]) == 0
    assert "collect nothing" in capsys.readouterr().out
    assert "Simulated" not in found["guarantee"]
    statement = tmp_path / "statement.json"
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 0
    capsys.readouterr()
    forged: list[dict[str, Any]] = [{"trust": "central" if trust != "central" else "local"}]
    if trust != "none":
        forged += [{"budget_epsilon": 0.5}, {"epsilon": 0.5}, {"guarantee": "None."}]
    if trust == "shuffle":
        forged += [{"guarantees": found["guarantees"][::-1]}, {"budget_delta": 0.0}]
    after = found["next"]
    forged += [{"next": {**after, **change}} for change in (
        {"level": 1e-9}, {"rounds": 1}, {"counts": [1] * 9}, {"final": False}, {"batch": 9}
    )]  # fmt: skip
    forged += [{name: None} for name in ("noise", "anonymity", "levels", "reward_range", "next", "left")]
    forged += [{"noise": "laplace"}, {"finished": False}, {"answered": [99]}, {"batches_answered": 0}]
    forged += [{"anonymity": "action"}, {"reward_range": [1, 0]}, {"left": [1, 0]}, {"best": -1}]
    for change in forged:
        statement.write_text(json.dumps({**found, **change}))
        assert main(["account", "verify", str(statement)]) == 1, change


def test_rewards_have_a_range_of_their_own(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, log = tmp_path / "run.json", tmp_path / "log.csv"
    start = ["run", str(record), "--actions", str(actions), "--horizon", "500", "--trust", "none"]
    found = answer([*start, "--lower", "0", "--upper", "0.5"], capsys)
    assert found["reward_range"] == [0.0, 0.5]
    assert "reward_range must be that of the run" in refusal(start, capsys)
    batch = found["next"]
    rows = np.repeat(batch["actions"], batch["counts"]).tolist()
    log.write_text("batch,action,reward\n" + "".join(f"1,{a},{9 if i else -9}\n" for i, a in enumerate(rows)))
    answer(["run", str(record), "--log", str(log)], capsys)
    sums = json.loads(record.read_text())["answered"][0]["sums"]
    assert sum(sums) == 0.5 * (len(rows) - 1)
    assert "reward_range must have low < high" in refusal(
        ["run", str(tmp_path / "b.json"), *start[2:], "--lower", "2"], capsys
    )
    assert "actions must be given" in refusal(["run", str(record), "--upper", "0.5"], capsys)


def test_a_run_refuses_what_it_is_not_of(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, log = tmp_path / "run.json", tmp_path / "log.csv"
    run = ["run", str(record)]
    start = ["--actions", str(actions), "--horizon", "500", "--trust", "central", "--epsilon", "1"]
    assert "give --actions, --horizon and --trust" in refusal(run, capsys)
    assert "horizon must be given" in refusal([*run, "--actions", str(actions), "--trust", "local"], capsys)
    assert "epsilon must be given" in refusal([*run, *start[:-2]], capsys)
    assert "noise must be discrete" in refusal([*run, *start, "--noise", "laplace"], capsys)
    assert not record.exists()
    found = answer([*run, *start], capsys)
    assert "seed must be that of the run" in refusal([*run, "--seed", "3"], capsys)
    assert "epsilon must be that of the run, 1.0, got 2.0" in refusal([*run, *start[:-1], "2"], capsys)
    assert answer([*run, *start], capsys)["next"] == found["next"]
    before = record.read_bytes()
    for text, why in (
        ("batch,action,reward\n1e300,0,1\n", "log must have whole numbers"),
        ("batch,action,reward\n0,0,1\n", "log must have whole numbers"),
        ("batch,action,reward\n1,,1\n", "log must have whole numbers"),
        ("batch,action,reward\n1,0,1,5\n", "line 2: 4 fields, the header has 3"),
        ("batch,action,reward\n1.5,0,1\n", "log must have whole numbers"),
        ("batch,action\n1,0\n", "columns batch, action, reward"),
        ("batch,action,reward\n7,0,1\n", "rows of batch 7, which is not out"),
        ("batch,action,reward\n" + "1,4,1\n" * found["next"]["rounds"], "batch 1"),
    ):
        log.write_text(text)
        assert why in refusal([*run, "--log", str(log)], capsys, code=3)
    assert main(["bandit", *run, "--log", "none.csv"]) == 2
    (said,) = capsys.readouterr().err.splitlines()  # of no ledger where nothing is asked
    assert "log must be a file" in said
    assert record.read_bytes() == before


def test_one_cell_of_text_refuses_no_log(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Parquet column of text is read cell by cell: what one client wrote must not show in an error."""
    pytest.importorskip("pyarrow")
    record, log = tmp_path / "run.json", tmp_path / "log.parquet"
    start = ["--actions", str(actions), "--horizon", "500", "--trust", "none"]
    found = answer(["run", str(record), *start], capsys)["next"]
    begun = record.read_bytes()
    rows = np.repeat(found["actions"], found["counts"])
    for cell, value in (("0.5", 0.5), ("x", -1.0), ("", -1.0), (None, -1.0)):
        record.write_bytes(begun)
        rewards = [cell, *["0.5"] * (len(rows) - 1)]
        pd.DataFrame({"batch": 1, "action": rows, "reward": rewards}).to_parquet(log)
        assert answer(["run", str(record), "--log", str(log)], capsys)["answered"] == [1]
        sums = json.loads(record.read_text())["answered"][0]["sums"]
        assert sum(sums) == pytest.approx(value + 0.5 * (len(rows) - 1))


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["simulate", "--actions", "10", "--horizon", "1e6"], "epsilon must be given for trust 'central'"),
        (["simulate", *TEN, "--trust", "none"], "epsilon is for a trust model"),
        ([*FREE, "--delta", "1e-6"], "delta is for a trust model, got 1e-06"),
        ([*FREE, "--noise", "laplace"], "noise is for a trust model, got 'laplace'"),
        ([*FREE, "--anonymity", "action"], "anonymity is for a trust model"),
        ([*FREE, "--method", "paper"], "method is for a trust model"),
        (["simulate", *TEN, "--delta", "1e-6"], "delta must be 0"),
        (["simulate", *TEN[:-1], "0"], "epsilon must be a number > 0"),
        (["simulate", *TEN[:-1], "nan"], "epsilon must be a finite number"),
        (["simulate", "--actions", "0", "--horizon", "99", "--epsilon", "1"], "actions must be a whole"),
        (
            ["simulate", "--actions", "none.csv", "--horizon", "99", "--epsilon", "1"],
            "actions must be a CSV file that exists, or a number where they are simulated",
        ),
        (["simulate", "--actions", "3", "--horizon", "5", "--epsilon", "1"], "horizon must be"),
        (["simulate", "--actions", "3", "--horizon", "99.5", "--epsilon", "1"], "horizon must be a whole"),
        (["simulate", "--actions", "3", "--horizon", "1e400", "--epsilon", "1"], "horizon must be a finite"),
        (["simulate", *TEN, "--runs", "0"], "runs must be"),
        (["simulate", *TEN, "--anonymity", "action"], "for shuffle trust"),
        (["plan", "--actions", "3", "--horizon", "99", "--epsilon", "1", "--dim", "0"], "dim must be"),
        (["plan", "--actions", "3", "--horizon", "99"], "epsilon must be given"),
    ],
)
def test_mistakes_are_one_line(argv: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why in refusal(argv, capsys)


def test_actions_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.csv"
    simulate = ["simulate", "--actions", str(file), "--horizon", "1e4", "--epsilon", "1"]
    file.write_text("\ufeff1,0\n0,1\n", encoding="utf-8")
    assert answer(simulate, capsys)["actions"] == 2
    assert "dim must be that of the actions, 2, got 3" in refusal([*simulate, "--dim", "3"], capsys)
    for text, why in (
        ("1,x\n", "rows of numbers"),
        ("2,0\n", "norm of at most 1"),
        ("1e300,0\n", "norm of at most 1"),
        ("0,0\n", "all be zero"),
        ("\n", "rows of numbers"),
        ("# 0.5,0\n1,0\n", "rows of numbers"),
    ):
        file.write_text(text)
        assert why in refusal(simulate, capsys)


CENTRAL = ["--horizon", "500", "--trust", "central", "--epsilon", "1"]


def filled(batch: dict[str, Any], reward: object = 1) -> str:
    rows = np.repeat(batch["actions"], batch["counts"]).tolist()
    return "".join(f"{batch['batch']},{a},{reward}\n" for a in rows)


def test_what_is_to_be_played_replaces_no_file_of_the_run(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, log = tmp_path / "run.json", tmp_path / "log.csv"
    start = ["run", str(record), "--actions", str(actions), *CENTRAL]
    log.write_text("batch,action,reward\n" + filled(answer(start, capsys)["next"]))
    before = [file.read_bytes() for file in (record, log, actions)]
    for out in (record, log, actions, tmp_path / "run.json.lock", tmp_path / "x" / ".." / "run.json"):
        (tmp_path / "x").mkdir(exist_ok=True)
        said = refusal([*start, "--log", str(log), "--out", str(out)], capsys)
        assert "out must be a file of its own" in said
    assert [file.read_bytes() for file in (record, log, actions)] == before


@pytest.mark.parametrize("cell", ["", "abc", "nan", "#", '"0,5"', "\u00e9"])
def test_one_reward_that_is_no_number_is_the_lowest_one_and_no_error(
    cell: str, actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, log = tmp_path / "run.json", tmp_path / "log.csv"
    start = ["run", str(record), "--actions", str(actions), "--horizon", "500", "--trust", "none"]
    rows = filled(answer(start, capsys)["next"])
    log.write_bytes(("batch,action,reward\n" + rows.replace(",1\n", f",{cell}\n", 1)).encode("latin-1"))
    assert answer(["run", str(record), "--log", str(log)], capsys)["answered"] == [1]
    sums = json.loads(record.read_text())["answered"][0]["sums"]
    assert sum(sums) == len(rows.splitlines()) - 2


def test_a_log_that_is_ahead_of_its_record_is_not_answered_twice(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, log = tmp_path / "run.json", tmp_path / "log.csv"
    run = ["run", str(record), "--log", str(log)]
    first = answer(["run", str(record), "--actions", str(actions), *CENTRAL], capsys)["next"]
    older = record.read_bytes()
    lines = "batch,action,reward\n" + filled(first)
    log.write_text(lines)
    second = answer(run, capsys)["next"]
    log.write_text(lines + filled(second).splitlines()[0] + "\n")
    assert answer(run, capsys)["next"] == second
    record.write_bytes(older)
    assert "fresh noise for the same rewards" in refusal(run, capsys, code=3)
    assert record.read_bytes() == older


def test_messages_may_be_decoded_again(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, log = tmp_path / "run.json", tmp_path / "log.csv"
    run = ["run", str(record), "--log", str(log)]
    start = ["run", str(record), "--actions", str(actions), "--horizon", "500", "--trust", "local"]
    found = answer([*start, "--epsilon", "1"], capsys)
    older, lines = record.read_bytes(), "batch,action,message\n"
    for _ in range(2):
        lines += filled(found["next"])
        log.write_text(lines)
        found = answer(run, capsys)
    newer = record.read_bytes()
    record.write_bytes(older)
    assert answer(run, capsys)["answered"] == [1, 2]
    assert record.read_bytes() == newer


@pytest.mark.parametrize("trust", ["central", "local", "shuffle"])
def test_an_event_that_no_batch_is_does_not_verify(
    trust: str, actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, statement = tmp_path / "run.json", tmp_path / "statement.json"
    start = ["run", str(record), "--actions", str(actions), *CENTRAL[:3], trust, "--epsilon", "1"]
    found = answer(start, capsys)
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 0
    claim = Guarantee.from_builtins(found["guarantees"][0])
    of = claim.neighbours
    for event in (PureDP(0.0, of), PureDP(0.5, of), Parallel((PureDP(0.25, of), PureDP(0.5, of)))):
        forged = guarantee(event, claim.delta, observer=claim.observer, assumptions=claim.assumptions)
        facts = {"epsilon": forged.epsilon, "guarantee": str(forged)}
        guarantees = [forged.to_builtins(), *found["guarantees"][1:]]
        statement.write_text(json.dumps({**found, **facts, "guarantees": guarantees}))
        assert main(["account", "verify", str(statement)]) == 1
        assert "its event is not what a bandit" in capsys.readouterr().err


def test_a_statement_names_that_actions_are_dealt_in_secret(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ["--actions", str(actions), "--horizon", "1e7", "--trust", "shuffle", "--epsilon", "1"]
    record, statement = tmp_path / "run.json", tmp_path / "statement.json"
    found = answer(["run", str(record), *start], capsys)
    assert DEALT not in found["guarantee"]  # four clients: each message is as private by itself
    batch = {"actions": [0, 1], "counts": [500, 500]}
    privacy = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=1e-6)
    counts = np.array(batch["counts"])
    claims = privacy.guarantees([(counts, privacy.level(counts))], simulated=False)
    assert DEALT in claims[0].assumptions
    assert DEALT not in claims[1].assumptions
    known = replace(privacy, anonymity=Anonymity.ACTION)
    (other, _) = known.guarantees([(counts, known.level(counts))], simulated=False)
    assert DEALT not in other.assumptions
    found["next"] |= {**batch, "rounds": 1000, "level": privacy.level(counts)}
    for claim, right in ((claims[0], 0), (_without(claims[0], DEALT), 1), (other, 1)):
        said = {"epsilon": claim.epsilon, "guarantee": str(claim)}
        guarantees = [claim.to_builtins(), claims[1].to_builtins()]
        statement.write_text(json.dumps({**found, **said, "guarantees": guarantees}))
        assert main(["account", "verify", str(statement)]) == right
        capsys.readouterr()


def _without(claim: Guarantee, clause: str) -> Guarantee:
    kept = tuple(one for one in claim.assumptions if one != clause)
    return guarantee(claim.event, claim.delta, observer=claim.observer, assumptions=kept)


@pytest.mark.parametrize("trust", ["central", "local", "shuffle"])
@pytest.mark.parametrize("epsilon", ["1e-8", "0.12345678", "0.3333333333333333"])
def test_a_budget_between_millionths_verifies(
    trust: str, epsilon: str, actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, statement = tmp_path / "run.json", tmp_path / "statement.json"
    start = ["run", str(record), "--actions", str(actions), *CENTRAL[:3], trust, "--epsilon", epsilon]
    statement.write_text(json.dumps(answer(start, capsys)))
    assert main(["account", "verify", str(statement)]) == 0


def _rewarded(found: dict[str, Any], rng: np.random.Generator) -> str:
    """Return the rows of a log for the batch that is out."""
    batch = found["next"]
    rows = np.repeat(batch["actions"], batch["counts"])
    return "".join(
        f"{batch['batch']},{a},{r}\n" for a, r in zip(rows, rng.choice([-1, 1], rows.size), strict=True)
    )


def _rounds_out(record: bytes) -> int:
    """Return how many clients the batch of a record takes."""
    return sum(json.loads(record)["issued"]["counts"])


def test_a_ledger_pays_for_a_run_once(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two records that are fed one log are two releases of the same rewards, and both are paid for."""
    log, ledger = tmp_path / "log.csv", tmp_path / "log.ledger"
    start = [*("--actions", str(actions)), "--horizon", "500", "--trust", "central", "--epsilon", "1"]
    first, second, third = (["run", str(tmp_path / f"{name}.json")] for name in "abc")
    rng = np.random.default_rng(0)

    def spent() -> float:
        with Ledger.open(ledger) as account:
            return account.spent().epsilon

    found = answer([*first, *start], capsys)
    # A log that nothing was written to yet is no mistake.
    log.write_text("batch,action,reward\n")
    assert main(["bandit", *first, "--log", str(log)]) == 0
    assert f"`tacit ledger create {ledger} --epsilon E --delta D --part reward`" in capsys.readouterr().err
    create = ["ledger", "create", str(ledger), "--epsilon", "2", "--delta", "0"]
    assert main([*create, "--part", "reward"]) == 0
    capsys.readouterr()
    assert answer([*first, "--log", str(log)], capsys)["answered"] == []
    assert spent() == 0
    log.write_text("batch,action,reward\n" + _rewarded(found, rng))
    early = (tmp_path / "a.json").read_bytes()
    assert answer([*first, "--log", str(log)], capsys)["answered"] == [1]
    found = answer([*first, "--log", str(log)], capsys)
    assert spent() == 1
    with log.open("a") as more:
        more.write(_rewarded(found, rng))
    assert answer([*first, "--log", str(log)], capsys)["answered"] == [2]
    assert spent() == 1
    # An older copy of the record has the same noise, not a fresh one, and so may go on.
    late = json.loads((tmp_path / "a.json").read_bytes())
    (tmp_path / "a.json").write_bytes(early)
    assert answer([*first, "--log", str(log)], capsys)["answered"] == [1, 2]
    assert json.loads((tmp_path / "a.json").read_bytes()) == late
    assert spent() == 1
    # Other records know only the first batch, as nothing else is out yet.
    log.write_text("".join(log.read_text().splitlines(keepends=True)[: 1 + _rounds_out(early)]))
    answer([*second, *start], capsys)
    assert answer([*second, "--log", str(log)], capsys)["answered"] == [1]
    assert spent() == 2
    answer([*third, *start], capsys)
    before = (tmp_path / "c.json").read_bytes()
    assert "above what" in refusal([*third, "--log", str(log)], capsys, code=4)
    assert (tmp_path / "c.json").read_bytes() == before
    refused = refusal(["run", str(tmp_path / "d.json"), *start, "--ledger", str(ledger)], capsys, code=4)
    assert "nothing was spent" in refused
    assert not (tmp_path / "d.json").exists()


def test_a_ledger_that_cannot_pay_is_refused(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = [*("--actions", str(actions)), "--horizon", "500", "--epsilon", "1"]
    for part in ("all", "reward"):
        create = ["ledger", "create", str(tmp_path / f"{part}.ledger"), "--epsilon", "2", "--delta", "0"]
        assert main([*create, "--part", part]) == 0
    capsys.readouterr()
    record = str(tmp_path / "r.json")
    named = ["--ledger", str(tmp_path / "reward.ledger")]
    other = ["--ledger", str(tmp_path / "all.ledger")]
    assert "is about replacing one record, the plan about replacing one record's reward" in refusal(
        ["run", record, *start, "--trust", "central", *other], capsys, code=5
    )
    for options in (["--trust", "local"], ["--trust", "central", "--seed", "1"]):
        assert "a ledger pays where the server adds the noise" in refusal(
            ["run", record, *start, *options, *named], capsys
        )
    assert not Path(record).exists()


def test_pictures_and_pages_are_written_and_cost_nothing(
    actions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, log = tmp_path / "r.json", tmp_path / "log.csv"
    page, picture = tmp_path / "page.html", tmp_path / "picture.png"
    both = ["--report", str(page), "--plot", str(picture)]
    answer(["simulate", "--actions", "5", "--horizon", "1e4", "--epsilon", "1", "--runs", "2", *both], capsys)
    assert "2 simulated worlds with actions of 2 coordinates, seed 0." in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    run = ["run", str(record)]
    start = [*("--actions", str(actions)), "--horizon", "500", "--trust", "none"]
    assert "none is answered yet" in refusal([*run, *start, "--plot", str(picture)], capsys)
    assert not record.exists()
    found = answer([*run, *start, "--report", str(page)], capsys)
    assert "Nothing is protected" in page.read_text()
    before = record.read_bytes()
    assert "plot is of the estimates of a batch" in refusal([*run, "--plot", str(picture)], capsys)
    log.write_text("batch,action,reward\n" + _rewarded(found, np.random.default_rng(0)))
    for wrong, why in (
        (["--report", str(tmp_path / "page.txt")], "report must be a file that ends with .html"),
        (["--plot", str(tmp_path / "p.html")], "plot must be a file that ends with one of"),
        (["--report", str(tmp_path / "none" / "page.html")], "report must be a file in a folder"),
        (["--out", str(page), "--report", str(page)], "out must be a file of its own"),
    ):
        assert why in refusal([*run, "--log", str(log), *wrong], capsys)
    assert record.read_bytes() == before
    picture.unlink()
    assert answer([*run, "--log", str(log), *both], capsys)["answered"] == [1]
    assert "Estimates of batch 1" in page.read_text()
    assert picture.is_file()
