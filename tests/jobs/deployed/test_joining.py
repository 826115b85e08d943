"""A federation of parties that made their own keys: it trains, and nobody ever had a key of somebody else."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Barrier

import pytest

from tacit.cli import main
from tacit.errors import ParameterError
from tacit.federation.network.cards import Card
from tacit.federation.network.certificates import server_context
from tacit.federation.network.channel import LocalChannel
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.roster import Roster
from tacit.jobs.deployed.configs import ServerConfig, ShufflerConfig, read_config
from tacit.jobs.deployed.demo import change_config
from tacit.jobs.deployed.joining import Joined, join
from tacit.jobs.deployed.server_role import ServerRole
from tacit.jobs.deployed.silo_config import read_silo_config
from tacit.jobs.deployed.silo_job import SiloJob
from tacit.reports import write_run
from tacit.reports.run_folder import claim_folder

SILOS = ("silo-1", "silo-2", "silo-3")
PARTIES = (*SILOS, "server", "shuffler")
PUBLIC = ("roster.toml", "job.toml", "plan.toml", "ca.pem")


def joined(folder: Path, name: str) -> Path:
    words = ["--role", name, "--url", "https://127.0.0.1:8443"] if name in ("server", "shuffler") else []
    words = words or ["--name", name]
    assert main(["federation", "join", "--out", str(folder), *words]) == 0
    return folder


def founded(folder: Path) -> Path:
    """Have five parties join in folders of their own, and found their federation; hand out what it says."""
    for name in PARTIES:
        joined(folder / name, name)
    cards = ",".join(str(folder / name / f"{name}.card.toml") for name in PARTIES)
    words = ["--cards", cards, "--delta", "1e-5", "--epsilon", "4", "--rounds", "3", "--name", "ward"]
    assert main(["federation", "init", "--out", str(folder / "fed"), *words]) == 0
    for name in PARTIES:
        for file in (*PUBLIC, f"{name}.toml", *([f"{name}/tls.pem"] if name not in SILOS else [])):
            shutil.copy(folder / "fed" / file, folder / name / file)
    return folder


@contextmanager
def services(folder: Path) -> Iterator[LocalChannel]:
    """Start every silo in its own folder, with its owner's consent."""
    with ExitStack() as stack:
        doors = {}
        for name in SILOS:
            config = folder / name / f"{name}.toml"
            assert main(["silo", "check", "--config", str(config), "--accept"]) == 0
            doors[name] = stack.enter_context(SiloJob.of(read_silo_config(config)).service()).handle
        channel = LocalChannel(doors)
        stack.callback(channel.close)
        yield channel


def trained(folder: Path) -> Path:
    """Train, and return the run's folder, as `tacit server` leaves it."""
    config = folder / "server" / "server.toml"
    change_config(config, {"deadline": 20.0, "patience": 30.0})
    role = ServerRole(read_config(config, ServerConfig))
    with services(folder) as channel:
        served = role.run(channel)
    run = claim_folder(role.job.terms.config, role.folder, again="")
    (run.path / "roster.toml").write_text(role.roster.to_toml())
    write_run(served.result, run, signatures=served.signatures)
    return run.path


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return founded(tmp_path_factory.mktemp("ward"))


def test_no_private_key_is_outside_of_its_owners_folder(ward: Path) -> None:
    where = {
        str(path.relative_to(ward))
        for path in ward.rglob("*")
        if path.is_file() and b"PRIVATE KEY" in path.read_bytes()
    }
    own = {f"{name}/{name}/signing.pem" for name in PARTIES}
    own |= {"server/server/opening.pem", "server/server/tls.key", "shuffler/shuffler/tls.key"}
    assert where == own | {"fed/authority/ca.key"}
    for text in where:
        assert stat.S_IMODE((ward / text).stat().st_mode) == 0o600
        assert stat.S_IMODE((ward / text).parent.stat().st_mode) == 0o700
    secrets = [(ward / text).read_bytes().splitlines()[1] for text in own]
    public = b"".join(path.read_bytes() for path in (ward / "fed").rglob("*") if path.is_file())
    assert not any(secret in public for secret in secrets)


def test_every_party_starts_from_its_own_folder(ward: Path) -> None:
    roster = Roster.load(ward / "fed" / "roster.toml")
    assert [one.name for one in roster.silos] == list(SILOS)
    server = read_config(ward / "server" / "server.toml", ServerConfig)
    shuffler = read_config(ward / "shuffler" / "shuffler.toml", ShufflerConfig)
    assert SigningKey.load(server.signing).public == roster.verify_key("server")
    assert OpeningKey.load(server.opening).public == roster.sealing_key
    assert SigningKey.load(shuffler.signing).public == roster.verify_key("shuffler")
    for service in (server, shuffler):
        server_context(service.certificate, service.certificate_key)
    text = (ward / "fed" / "README.md").read_text()
    for name in PARTIES:
        assert Card.load(ward / name / f"{name}.card.toml").fingerprint() in text
    assert roster.fingerprint() in text


def test_they_train_and_sign(ward: Path) -> None:
    run = trained(ward)
    words = ["account", "verify", str(run / "statement.json"), "--keys"]
    assert main([*words, str(ward / "fed" / "roster.toml")]) == 0
    assert main(["federation", "amend", "--folder", str(ward / "fed"), "--revoke", "silo-2"]) == 0
    assert main([*words, str(ward / "fed" / "roster-2.toml")]) == 1
    assert main([*words, str(run / "roster.toml")]) == 0  # what is true of the past stays so


def test_a_silo_and_the_server_go_on_with_new_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The silo keeps its ledger and its log; its old key counts with the old roster only."""
    ward = founded(tmp_path)
    with services(ward):
        pass  # every silo has a log
    for name in ("silo-1", "server"):
        joined(ward / "new" / name, name)
    new = ward / "new"
    words = ["federation", "amend", "--folder", str(ward / "fed"), "--cards", f"{new}/silo-1,{new}/server"]
    assert main(words) == 0
    config = ward / "silo-1" / "silo-1.toml"
    key = new / "silo-1" / "silo-1" / "signing.pem"
    for name in PARTIES:
        shutil.copy(ward / "fed" / "roster-2.toml", ward / name)
        change_config(ward / name / f"{name}.toml", {"roster": "roster-2.toml"})
    with pytest.raises(ParameterError, match="signing must be the key that the roster has"):
        SiloJob.of(read_silo_config(config))
    assert main(["silo", "rotate", "--config", str(config), "--signing", str(key)]) == 0
    assert "names the new key" in " ".join(capsys.readouterr().out.split())
    change_config(config, {"signing": str(key)})
    shutil.copy(ward / "fed" / "server" / "tls-2.pem", ward / "server" / "server")
    private = new / "server" / "server"
    own = {"signing": "signing.pem", "opening": "opening.pem", "certificate_key": "tls.key"}
    changes = {field: str(private / file) for field, file in own.items()}
    change_config(ward / "server" / "server.toml", changes | {"certificate": "server/tls-2.pem"})
    run = trained(ward)
    words = ["account", "verify", str(run / "statement.json"), "--keys"]
    assert main([*words, str(ward / "fed" / "roster-2.toml")]) == 0
    assert main([*words, str(ward / "fed" / "roster.toml")]) == 1
    assert main(["silo", "log", "--config", str(config), "--verify"]) == 0
    service = read_config(ward / "server" / "server.toml", ServerConfig)
    server_context(service.certificate, service.certificate_key)


def test_a_second_call_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = joined(tmp_path / "a", "silo-1")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["federation", "join", "--name", "silo-1", "--out", str(folder)]) == 2
    assert "is there already, and its keys are never overwritten" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert list(tmp_path.iterdir()) == [folder]


def test_of_two_at_the_same_time_one_joins(tmp_path: Path) -> None:
    """Whoever comes second is refused, and what the first one made is whole."""
    for attempt in range(10):
        out, start = tmp_path / str(attempt), Barrier(4)

        def run(_: int, out: Path = out, start: Barrier = start) -> Joined | None:
            start.wait()
            try:
                return join(out, name="silo-1")
            except ParameterError:
                return None

        with ThreadPoolExecutor(4) as pool:
            made = [one for one in pool.map(run, range(4)) if one is not None]
        assert len(made) == 1
        assert Card.load(made[0].file) == made[0].card
        assert SigningKey.load(out / "silo-1" / "signing.pem").public.to_text() == made[0].card.verify
        assert sorted(path.name for path in out.iterdir()) == ["silo-1", "silo-1.card.toml"]
    assert len(list(tmp_path.iterdir())) == 10


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name must say how the silo is called"),
        (["--name", "a/b"], "the name of a silo must be none of"),
        (["--name", "shuffler"], "the name of a silo must be none of"),
        (["--name", "a", "--size", "0"], "size"),
        (["--name", "a", "--url", "https://a"], "url must not stand on the card of a silo"),
        (["--role", "server"], "url must stand on the card of a server"),
        (["--role", "server", "--url", "http://a"], "server.url must be 'https://host"),
        (["--role", "server", "--name", "a", "--url", "https://a"], "name must be 'server'"),
        (["--role", "shuffler", "--url", "https://a", "--size", "3"], "size must not stand"),
        (["--role", "boss"], "role must be one of silo, shuffler, server, got 'boss'"),
    ],
)
def test_what_is_wrong_leaves_nothing_behind(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["federation", "join", "--out", str(tmp_path / "a"), *words]) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["{silo-1},{silo-2}"], "got 0 of a server"),
        (["{server}"], "the number of cards of silos"),
        (["{server},{silo-1},{silo-1}"], "names must be different"),
        (["{server},{server},{silo-1}"], "got 2 of a server"),
        (["{server},{silo-1},{silo-2}", "--trust", "shuffle"], "cards must have that of a shuffler"),
        (["{server},{silo-1}", "--silos", "2"], "silos must not be given with cards"),
        (["{server},{silo-1}", "--server", "https://a"], "server must not be given with cards"),
        (["{server},{silo-1}", "--shuffler", "https://a"], "shuffler must not be given with cards"),
        (["{server},{silo-1}", "--names", "a"], "names must not be given with cards"),
        (["{server},gone.card.toml"], "the card gone.card.toml cannot be read"),
        (["{server},{empty}"], "a folder without any *.card.toml"),
        (["{server},{roster}"], "the card cannot be read"),
        (["{server},{edited}"], "is not signed by its own key"),
    ],
)
def test_cards_that_found_nothing(
    words: list[str], says: str, ward: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {name: ward / name / f"{name}.card.toml" for name in PARTIES}
    (tmp_path / "empty").mkdir()
    edited = tmp_path / "edited.card.toml"
    edited.write_text(names["silo-1"].read_text().replace('name = "silo-1"', 'name = "silo-9"'))
    names |= {"empty": tmp_path / "empty", "edited": edited, "roster": ward / "fed" / "roster.toml"}
    for name, path in names.items():
        words = [one.replace("{" + name + "}", str(path)) for one in words]
    assert main(["federation", "init", "--out", str(tmp_path / "fed"), "--cards", *words]) != 0
    assert says in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edited.card.toml", "empty"]
