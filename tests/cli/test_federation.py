"""`tacit federation`: what it makes, refuses and never touches, and what a server says of itself."""

from __future__ import annotations

import importlib
import json
import re
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.cli import main
from tacit.cli.forms import OUTPUTS
from tacit.data import FILL_IN
from tacit.federation import Plan
from tacit.federation.network.certificates import Credential, client_context, server_context
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.masked_rounds import masking_roster_of
from tacit.federation.network.roster import Roster
from tacit.jobs.deployed.configs import ServerConfig, ShufflerConfig, read_config
from tacit.jobs.deployed.demo import free_ports
from tacit.jobs.deployed.federation_job import FederationJob, read_job
from tacit.jobs.deployed.server_role import ServerRole
from tacit.jobs.deployed.transports import hub_of
from tests.jobs.deployed.world import NAMES, consent, founded, server_config, silos_of
from tests.jobs.tables import write_patients


def made(folder: Path, *words: str) -> Path:
    assert main(["federation", "init", "--out", str(folder / "fed"), *words]) == 0
    return folder / "fed"


def toml(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.toml.decode(path.read_bytes())
    return found


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("trust", ["local", "aggregate", "shuffle"])
def test_every_party_has_what_it_needs(trust: str, tmp_path: Path) -> None:
    fed = made(tmp_path, "--silos", "4", "--trust", trust, "--epsilon", "3")
    roster = Roster.load(fed / "roster.toml")
    config = read_config(fed / "server.toml", ServerConfig)
    job = FederationJob.of(read_job(config.job), roster)
    assert [one.name for one in roster.silos] == ["silo-1", "silo-2", "silo-3", "silo-4"]
    assert SigningKey.load(config.signing).public == roster.verify_key("server")
    assert OpeningKey.load(config.opening).public == roster.sealing_key
    assert Plan.from_toml((fed / "plan.toml").read_text()).digest() == job.plan.digest()
    assert (job.trust, job.terms.config.epsilon) == (trust, 3.0)
    said = (fed / "plan.toml").read_text()
    assert said.startswith(f"# Under {trust} trust this plan costs at most epsilon ")
    shuffler = read_config(fed / "shuffler.toml", ShufflerConfig)
    assert SigningKey.load(shuffler.signing).public == roster.verify_key("shuffler")
    for one in roster.silos:
        silo = toml(fed / f"{one.name}.toml")
        assert SigningKey.load(fed / silo["signing"]).public == roster.verify_key(one.name)
    for service in (config, shuffler):
        server_context(service.certificate, service.certificate_key)
    assert client_context(config.authority).get_ca_certs()
    Credential.load(fed / "ca.pem", fed / "authority" / "ca.key")
    assert (config.host, config.port, shuffler.port) == ("127.0.0.1", 8443, 8444)


def test_only_in_a_trial_the_founder_speaks_for_the_owners(tmp_path: Path) -> None:
    words = ["--silos", "4", "--trust", "aggregate", "--colluding", "1", "--recover", "--n-min", "3"]
    fed = made(tmp_path, *words)
    plan = Plan.from_toml((fed / "plan.toml").read_text())
    assert (plan.n_min, plan.colluding, plan.recover) == (3, 1, True)
    assert plan.roster == masking_roster_of(Roster.load(fed / "roster.toml")).digest
    assert "learns up to" in (fed / "plan.toml").read_text().splitlines()[0]
    assert [toml(fed / f"silo-{k}.toml")["colluding"] for k in range(1, 5)] == [1] * 4
    for role, name in [("server", None), ("shuffler", None), *(("silo", f"s{k}") for k in range(3))]:
        told = ["--url", "https://127.0.0.1:8443"] if name is None else ["--name", name]
        assert (
            main(["federation", "join", "--out", str(tmp_path / (name or role)), "--role", role, *told]) == 0
        )
    cards = ",".join(map(str, sorted(tmp_path.glob("*/*.card.toml"))))
    joined = tmp_path / "joined"
    words = ["--out", str(joined), "--cards", cards, "--trust", "aggregate", "--colluding", "1"]
    assert main(["federation", "init", *words]) == 0
    assert "colluding" not in toml(joined / "s0.toml")
    assert "`colluding = ...`, which leaves it open" in (joined / "README.md").read_text()


def test_private_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    fed = made(tmp_path)
    private = [path for path in fed.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
    assert len(private) == 4 + 3 + 2 + 1  # silos; server; shuffler; authority
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in private} == {0o700}
    public = b"".join(
        (fed / name).read_bytes() for name in ("roster.toml", "job.toml", "plan.toml", "ca.pem")
    )
    assert b"PRIVATE" not in public


def test_nothing_is_ever_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fed = made(tmp_path)
    before = everything(tmp_path)
    capsys.readouterr()
    assert main(["federation", "init", "--out", str(fed)]) == 2
    assert "is there already, and its keys are never overwritten" in capsys.readouterr().err
    assert everything(tmp_path) == before
    (tmp_path / "file").write_text("mine")
    assert main(["federation", "init", "--out", str(tmp_path / "file")]) == 2
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert main(["federation", "init", "--out", str(tmp_path / "empty")]) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--silos", "0"], "silos must be"),
        (["--names", "a,a"], "names must be different"),
        (["--names", "a,../b"], "the name of a silo must be none of"),
        (["--names", "a,server"], "the name of a silo must be none of"),
        (
            ["--names", "a,authority"],
            "a silo must not be called 'authority': a folder of that name is needed",
        ),
        (["--names", "Runs,a"], "a silo must not be called 'Runs': a folder of that name is needed"),
        (["--names", "a,b", "--silos", "3"], "names must say one for each of the 3 silos, got 2"),
        (["--silos", "1", "--trust", "shuffle"], "trust must not be shuffle with 1 silo a round"),
        (["--silos", "1", "--trust", "aggregate"], "trust must not be aggregate with 1 silo"),
        (["--silos", "2", "--trust", "aggregate", "--colluding", "1"], "colluding must be at most n-min - 2"),
        (["--trust", "aggregate", "--n-min", "3"], "n-min must be the number of silos (4)"),
        (["--trust", "aggregate", "--recover", "--n-min", "2"], "n-min must be above half of silos"),
        (["--trust", "aggregate", "--recover", "--n-min", "5"], "n-min must be at most the number of silos"),
        (["--recover"], "recover is for trust='aggregate'"),
        (["--colluding", "1"], "n-min and colluding are for trust='shuffle' or trust='aggregate'"),
        (["--server", "http://127.0.0.1:1"], "server.url must be 'https://host[:port]'"),
        (["--trust", "shuffle", "--shuffler", "x"], "shuffler.url must be 'https://host[:port]'"),
        (["--epsilon", "-1"], "epsilon must be"),
        (["--data", "adullt"], "did you mean 'adult'"),
        (["--sizes", "1,two", "--columns", "c.toml"], "sizes must be whole numbers, separated by commas"),
        (["--sizes", "10,20", "--columns", "c.toml"], "c.toml cannot be read"),
    ],
)
def test_what_is_wrong_leaves_nothing_behind(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["federation", "init", "--out", str(tmp_path / "fed"), *words]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert list(tmp_path.iterdir()) == []


def test_tables_that_are_here_are_counted(tmp_path: Path) -> None:
    table = write_patients(tmp_path, visits=2)
    wards = tmp_path / "wards"
    wards.mkdir()
    text = table.read_text().splitlines()
    for name in ("north", "south"):
        rows = [line for line in text[1:] if name in line]
        (wards / f"{name}.csv").write_text("\n".join([text[0], *rows]) + "\n")
    (tmp_path / "patients.columns.toml").rename(wards / "columns.toml")
    job = tmp_path / "job.toml"
    job.write_text('label = "ill"\nperson = "patient"\nrounds = 3\n')
    words = ("--data", f"{wards}/", "--job", str(job), "--delta", "1e-4", "--name", "wards")
    fed = made(tmp_path, *words)
    roster = Roster.load(fed / "roster.toml")
    assert [(one.name, one.size) for one in roster.silos] == [("north", 60), ("south", 60)]
    assert toml(fed / "north.toml")["data"] == str(wards / "north.csv")
    assert toml(fed / "server.toml")["columns"] == "columns.toml"
    assert "test" not in toml(fed / "server.toml")
    assert toml(fed / "job.toml")["data"] == "wards.csv"
    config = read_config(fed / "server.toml", ServerConfig)
    assert FederationJob.of(read_job(config.job), roster, columns=config.columns).trust == "local"


def test_a_roster_that_is_wrong_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fed = made(tmp_path, "--silos", "2", "--rounds", "3")
    roster = fed / "roster.toml"
    roster.write_text(roster.read_text().replace("https:", "http:"))
    capsys.readouterr()
    assert main(["silo", "check", "--config", str(fed / "silo-1.toml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(roster) in line
    assert "server.url must be 'https://host[:port]'" in line


def test_a_folder_needs_no_slash_and_numbers_need_their_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wards").mkdir()
    for name in ("north", "south"):
        rows = [f"{k},{k / 2}" for k in range(30)]
        Path(f"wards/{name}.csv").write_text("\n".join(["age,days", *rows]) + "\n")
    Path("columns.toml").write_text(
        'version = 1\n[label]\nkind = "numeric"\nlower = 0\nupper = 20\ncolumn = "days"\n'
        '[columns.age]\nkind = "numeric"\nlower = 0\nupper = 40\n'
    )
    words = ("--data", "wards", "--columns", "columns.toml", "--rounds", "3")
    assert main(["federation", "init", "--out", "fed", *words]) != 0
    assert "say --task regression" in capsys.readouterr().err
    fed = made(tmp_path, *words, "--task", "regression")
    assert [(one.name, one.size) for one in Roster.load(fed / "roster.toml").silos] == [
        ("north", 30), ("south", 30)
    ]  # fmt: skip
    assert toml(fed / "job.toml")["task"] == "regression"


def test_tables_that_are_elsewhere_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_patients(tmp_path)
    columns = tmp_path / "patients.columns.toml"
    job = tmp_path / "job.toml"
    job.write_text('label = "ill"\ndelta = 1e-4\n')
    words = ("--columns", str(columns), "--sizes", "60,70", "--names", "a,b", "--job", str(job), "--json")
    fed = made(tmp_path, *words, "--name", "wards")
    said = json.loads(capsys.readouterr().out)
    assert said["silos"] == {"a": 60, "b": 70}
    assert said["federation"] == "wards"
    assert sorted(said["files"]) == sorted(
        str(path.relative_to(fed)) for path in fed.rglob("*") if path.is_file()
    )
    assert toml(fed / "a.toml")["data"] == FILL_IN
    assert (fed / "columns.toml").read_bytes() == columns.read_bytes()


def test_a_server_says_how_far_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fed = founded(tmp_path)
    (port,) = free_ports(1)
    config = server_config(fed, port=port)
    roster = fed.folder / "roster.toml"
    roster.write_text(roster.read_text().replace(":8443", f":{port}"))
    for name in NAMES:
        consent(fed, name)
    words = ["federation", "status", "--config", str(fed.folder / "server.toml")]
    role = ServerRole(config)
    with hub_of(role), silos_of(fed) as channel:
        assert main([*words, "--json"]) == 0
        before = json.loads(capsys.readouterr().out)
        msgspec.convert(before, OUTPUTS["federation status"])
        assert (before["state"], before["done"]) == ("waiting", 0)
        assert main(words) == 0
        assert "No round is over yet." in capsys.readouterr().out
        role.run(channel)
        assert main([*words, "--json"]) == 0
        after = json.loads(capsys.readouterr().out)
        msgspec.convert(after, OUTPUTS["federation status"])
        assert (after["state"], after["done"]) == ("done", 4)
        assert after["epsilon_so_far"] == pytest.approx(4.0, rel=1e-3)
        assert main(words) == 0
        said = capsys.readouterr().out
        assert "ward-local" in said
        assert all(name in said for name in NAMES)
    assert main(words) == 1
    assert f"the server at https://127.0.0.1:{port} cannot be reached" in capsys.readouterr().err


def test_a_finished_run_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fed = founded(tmp_path)
    server_config(fed)
    path = fed.folder / "server.toml"
    (port,) = free_ports(1)
    path.write_text(path.read_text().replace("port = 8443", f"port = {port}"))
    run = fed.folder / "runs" / "ward"
    run.mkdir(parents=True)
    (run / "model.json").write_text("{}")
    assert main(["server", "--config", str(path)]) == 2
    assert "holds this run, finished; another one needs another name" in capsys.readouterr().err
    assert list(run.iterdir()) == [run / "model.json"]


@pytest.mark.parametrize("role", ["server", "shuffler"])
def test_a_role_names_the_file_and_the_field_that_are_wrong(
    role: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fed = founded(tmp_path, trust="shuffle")
    path = fed.folder / f"{role}.toml"
    path.write_text(path.read_text().replace("port = ", "prot = "))
    assert main([role, "--config", str(path)]) == 2
    assert f"{path}: field must be one of" in capsys.readouterr().err
    assert main([role, "--config", str(tmp_path / "no.toml")]) == 2
    assert "no.toml cannot be read" in capsys.readouterr().err


def test_flower_starts_the_server_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fed = founded(tmp_path)
    server_config(fed, transport="flower")
    config = fed.folder / "server.toml"
    assert main(["server", "--config", str(config)]) == 0
    said = capsys.readouterr().out
    bundle = fed.folder / "server" / "state" / "tacit-round"
    assert toml(bundle / "pyproject.toml")["tool"]["flwr"]["app"]["publisher"] == "tacit"
    assert f"flwr run {bundle}" in said
    job, given = re.findall(r'(?:job|config)="([^"]*)"', said)
    assert given == str(config)
    module, _, name = job.partition(":")
    for silo in NAMES:
        consent(fed, silo)
    with silos_of(fed) as channel:
        getattr(importlib.import_module(module), name)(channel, config)
    assert "round 4 of 4  silos=3/3 bytes_up=" in capsys.readouterr().err
    assert (fed.folder / "runs" / "ward" / "statement.json").is_file()
    assert main(["server", "--config", str(config)]) == 0  # the bundle stays as it is
