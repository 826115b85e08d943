"""What commands print with `--json`, and what runs leave, has the form that `tacit schema` publishes."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.cli import main
from tacit.cli.app import command
from tacit.cli.forms import FILES, OUTPUTS
from tests.cli.test_options import COMMANDS

DATA = Path(__file__).parents[1] / "data"
TABLE = "--data clinics.csv --label y --silo-column site --person patient --rounds 2 --delta 1e-4"
BUDGET = "--epsilon 1 --delta 1e-5"
TEACHERS = "--teachers 5 --m 2 --epsilon 0.3"
RUNS = {
    "train": f"train {TABLE} --name one",
    "train --dry-run": f"train {TABLE} --dry-run",
    "train --algorithm list": "train --algorithm list",
    "train --sensitive": "train --data clinics.csv --label y --sensitive smoker --name fair",
    "fairness audit": "fairness audit --data clinics.csv --label y --sensitive smoker --prediction y",
    "fairness curve": "fairness curve --data clinics.csv --label y --sensitive smoker --at 0,1",
    "predict": "predict runs/one clinics.csv --out scored.csv",
    "mean": "mean clinics.csv --columns age --lower 18 --upper 95 --epsilon 1 --ledger one.ledger",
    "frequencies": "frequencies --data clinics.csv --column smoker --epsilon 1 --ledger one.ledger",
    "frequencies tables": "frequencies --data clinics.csv --column smoker --column y --values y=0,1 "
    "smoker=yes,no --epsilon 1 --ledger one.ledger",
    "frequencies large": "frequencies --data clinics.csv --column smoker --epsilon 1 --heavy-hitters "
    "--domain 32 --ledger one.ledger",
    "frequencies levels": "frequencies --data clinics.csv --column smoker --levels 0.2,1 --ledger one.ledger",
    "audit": "audit --runs 300",
    "reproduce list": "reproduce",
    "model show": "model show runs/one",
    "report compare": "report compare runs/one runs/two",
    "report compare fair": "report compare runs/fair fair",
    "account noise": f"account noise {BUDGET}",
    "account epsilon": "account epsilon --noise 3 --delta 1e-5",
    "account subsample": "account subsample gaussian:1.5 --sample-rate 0.1 --delta 1e-5",
    "account shuffle": "account shuffle --local-epsilon 1 --n 100 --delta 1e-5",
    "account aggregate": "account aggregate --parties 10 --colluding 2 --noise 3 --dim 5",
    "account reports": "account reports --local-epsilon 1 --clients 60 --drawn 6 --rounds 3 --dim 8 "
    "--delta 1e-5",
    "account halving": "account halving gaussian:20x10 --check laplace:50 --rounds 100 --delta 1e-5",
    "account iterate": f"account iterate --n 100 --epochs 2 {BUDGET}",
    "account compose": "account compose gaussian:2x10 pure:0.1 --delta 1e-5",
    "account calibrate": f"account calibrate {BUDGET}",
    "account compare": "account compare gaussian:2 --delta 1e-5",
    "account verify": "account verify runs/one/statement.json",
    "plan mean": f"plan mean --n 100 --dim 4 {BUDGET} --simulate 2 --points 1 --all",
    "plan frequencies": "plan frequencies --k 4 --n 100 --epsilon 1",
    "plan frequencies levels": "plan frequencies --k 4 --n 100 --levels 0.5,1",
    "plan train": f"plan train --silos 4 --records 100 --dim 5 {BUDGET}",
    "plan reports": f"plan reports --clients 60 --dim 8 --drawn 6 --rounds 5 {BUDGET}",
    "vote design": f"vote design {TEACHERS} --out gamma.json",
    "vote certify": "vote certify gamma.json",
    "vote release": "vote release gamma.json --votes votes.npy --out bits.npy",
    "vote plan": f"vote plan {TEACHERS} --queries 3",
    "vote plot": "vote plot gamma.json --out gamma.png",
    "bandit simulate": "bandit simulate --actions 4 --horizon 1000 --epsilon 1",
    "bandit plan": "bandit plan --actions 4 --horizon 1000 --epsilon 1 --runs 1",
    "bandit run": "bandit run run.json --actions actions.csv --horizon 100 --epsilon 1 --trust central",
    "messages encode": "messages encode --data clinics.csv --column smoker --epsilon 1 --out m.bin "
    "--ledger one.ledger",
    "messages count": "messages count m.bin --out counts.json",
    "messages estimate": "messages estimate counts.json",
    "data check": "data check clinics.csv --columns clinics.columns.toml",
    "data describe": "data describe adult",
    "data fetch": "data fetch digits-odd-even",
    "data list": "data list",
    "ledger create": "ledger create other.ledger --epsilon 1 --delta 0",
    "ledger show": "ledger show one.ledger",
    "federation init": "federation init --out fed",
    "federation join": "federation join --name silo-1 --out new",
    "federation fingerprint": "federation fingerprint fed/roster.toml new/silo-1.card.toml",
    "federation amend": "federation amend --folder fed --cards new/ --expire silo-2=2099-12-31",
    "federation renew": "federation renew fed/server/tls.pem --folder fed",
    "silo check": "silo check --config fed/silo-1.toml",
    "silo rotate": "silo rotate --config fed/silo-1.toml --signing new/silo-1/signing.pem",
    "silo log": "silo log --config fed/silo-1.toml",
    "schema": "schema",
}
"""A run of each command; those that need what another leaves come after it."""
LONG = {"reproduce", "server", "federation demo", "federation status"}
"""Take minutes, or processes: `test_reproduce.py` and `tests/federation/deployed` look at what they print."""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what every command prints, in one folder."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("schema")
    for name in ("clinics.csv", "clinics.columns.toml"):
        shutil.copy(DATA / name, folder)
    found: dict[str, Any] = {"folder": folder}
    with contextlib.chdir(folder):
        np.savetxt("actions.csv", np.eye(2), delimiter=",")
        np.save("votes.npy", np.ones((3, 5), dtype=np.int64))
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["ledger", "create", "one.ledger", "--epsilon", "9", "--delta", "0"]) == 0
            assert main(f"train {TABLE} --name two --trust none".split()) == 0
        for name, line in RUNS.items():
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                assert main([*line.split(), "--json"]) == 0, line
            found[name] = json.loads(out.getvalue())
    return found


@pytest.mark.parametrize("name", RUNS)
def test_an_output_has_its_form(name: str, printed: dict[str, Any]) -> None:
    found = printed[name]
    assert next(iter(found)) == "version"
    msgspec.convert(found, OUTPUTS[name])
    # What the form does not say, or a version of another time, is refused.
    for wrong in ({**found, "surprise": 1}, {**found, "version": 99}, {}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, OUTPUTS[name])


def test_every_command_with_json_has_a_form() -> None:
    names = {
        " ".join(path) for path, leaf in COMMANDS.items() if any(one.name == "json" for one in leaf.params)
    }
    assert names <= set(OUTPUTS), names - set(OUTPUTS)
    assert set(OUTPUTS) == set(RUNS) | LONG


def test_files_of_a_run_have_their_forms(printed: dict[str, Any]) -> None:
    folder = printed["folder"]
    for name in ("model.json", "metrics.json", "statement.json"):
        found = json.loads((folder / "runs/one" / name).read_text())
        assert found["version"] >= 1
        msgspec.convert(found, FILES[name])
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({**found, "surprise": 1}, FILES[name])
    for name in ("model.json", "statement.json", "fairness.json"):
        msgspec.convert(json.loads((folder / "runs/fair" / name).read_text()), FILES[name])
    for name, path in (("plan", "runs/one/plan.toml"), ("columns", "clinics.columns.toml")):
        msgspec.convert(tomllib.loads((folder / path).read_text()), FILES[name])
    msgspec.convert({"data": "digits-odd-even", "rounds": 5}, FILES["job"])


@pytest.mark.parametrize("name", [*FILES, *OUTPUTS])
def test_a_schema_is_printed_for_each(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    top = found["$defs"][found["$ref"].rpartition("/")[2]] if "$ref" in found else found
    assert top["additionalProperties"] is False
    if name in OUTPUTS:
        assert "version" in top["required"]


def test_an_unknown_name_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "nothing"]) == 2
    assert "name must be one of job, columns, plan, model.json" in capsys.readouterr().err
    assert "schema" in command().commands
