"""New keys: the roster names them, old ones are kept and count no more, and the next run goes as before."""

from __future__ import annotations

import datetime as dt
import stat
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.network.audit_log import verify_log
from tacit.federation.network.certificates import check_certificate, server_context
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.roster import Roster
from tacit.federation.network.rounds import MissingSilosError
from tacit.federation.network.silo_service import LOG_FILE
from tacit.jobs.deployed.founding import Founded
from tacit.jobs.deployed.rotation import revoke_silo, rotate_keys
from tacit.jobs.deployed.server_role import ServerRole
from tests.jobs.deployed.world import NAMES, consent, founded, server_config, silos_of

NOW = dt.datetime.now(dt.UTC)


def renewed(fed: Founded) -> Founded:
    """The federation with the roster that is in its folder."""
    return replace(fed, roster=Roster.load(fed.folder / "roster.toml"))


@pytest.mark.parametrize("party", ["silo-2", "server", "shuffler"])
def test_a_run_goes_as_before_with_new_keys(party: str, tmp_path: Path) -> None:
    fed = founded(tmp_path)
    for name in NAMES:
        consent(fed, name)
    with silos_of(fed):  # every silo has a log now
        if party == "silo-2":
            with pytest.raises(ParameterError, match="must be stopped before it has new keys"):
                rotate_keys(fed.folder, party, now=NOW)
    before, old = fed.roster, (fed.folder / party / "signing.pem").read_bytes()
    done = rotate_keys(fed.folder, party, now=NOW)
    assert done.roster == Roster.load(fed.folder / "roster.toml")
    assert done.roster.digest() != before.digest()
    assert Roster.load(fed.folder / "roster-1.toml") == before
    assert [one.name for one in done.roster.silos] == NAMES
    assert (fed.folder / party / "signing-1.pem").read_bytes() == old
    key = SigningKey.load(fed.folder / party / "signing.pem").public
    assert key == done.roster.verify_key(party) != before.verify_key(party)
    for path in fed.folder.rglob("*"):
        if path.is_file() and b"PRIVATE KEY" in path.read_bytes():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert list(fed.folder.rglob("*.new")) == []
    if party == "server":
        assert OpeningKey.load(fed.folder / "server" / "opening.pem").public == done.roster.sealing_key
        assert done.roster.sealing_key != before.sealing_key
    if party != "silo-2":
        place = fed.folder / party
        server_context(place / "tls.pem", place / "tls.key")
        check_certificate(place / "tls.pem", now=NOW)
    with silos_of(renewed(fed)) as channel:
        ServerRole(server_config(fed)).run(channel)
    if party == "silo-2":
        kept = fed.folder / party / "state" / "log-1.jsonl"
        verify_log(kept, before.verify_key(party))
        verify_log(kept.with_name(LOG_FILE), key)


def test_numbers_go_up_and_nothing_is_lost(tmp_path: Path) -> None:
    fed = founded(tmp_path)
    keys = [(fed.folder / "silo-1" / "signing.pem").read_bytes()]
    for _ in range(2):
        rotate_keys(fed.folder, "silo-1", now=NOW)
        keys.append((fed.folder / "silo-1" / "signing.pem").read_bytes())
    kept = [(fed.folder / "silo-1" / f"signing-{k}.pem").read_bytes() for k in (1, 2)]
    assert [*kept, keys[2]] == keys
    assert len({msgspec.json.encode(Roster.load(path)) for path in fed.folder.glob("roster*.toml")}) == 3


def test_a_key_that_was_replaced_or_revoked_counts_no_more(tmp_path: Path) -> None:
    fed = founded(tmp_path)
    for name in NAMES:
        consent(fed, name)
    key = fed.folder / "silo-2" / "signing.pem"
    rotate_keys(fed.folder, "silo-2", now=NOW)
    new = key.rename(key.with_name("new.pem"))
    key.with_name("signing-1.pem").rename(key)
    with silos_of(fed) as channel, pytest.raises(MissingSilosError, match="'silo-2'"):
        ServerRole(server_config(fed, patience=0.5, deadline=2.0)).run(channel)
    (fed.folder / "silo-2" / "state" / LOG_FILE).rename(fed.folder / "log")
    (fed.folder / "silo-2" / "state" / f"{LOG_FILE}.head").unlink()
    new.rename(key)
    done = revoke_silo(fed.folder, "silo-3")
    assert done.roster.silo("silo-3").revoked
    assert [one.name for one in done.roster.active(NOW)] == ["silo-1", "silo-2"]
    with silos_of(renewed(fed)) as channel, pytest.raises(AuthenticationError, match="silo-3' is revoked"):
        ServerRole(server_config(fed, patience=0.5)).run(channel)


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    fed = founded(tmp_path)

    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in fed.folder.rglob("*") if path.is_file()}

    before = everything()
    with pytest.raises(AuthenticationError, match="silo-9"):
        rotate_keys(fed.folder, "silo-9", now=NOW)
    with pytest.raises(AuthenticationError, match="silo-9"):
        revoke_silo(fed.folder, "silo-9")
    assert everything() == before
    (fed.folder / "silo-1" / "signing.pem").unlink()
    SigningKey.make().save(fed.folder / "silo-1" / "signing.pem")
    before = everything()
    with pytest.raises(ParameterError, match="is not the key that"):
        rotate_keys(fed.folder, "silo-1", now=NOW)
    assert everything() == before
    with pytest.raises(ParameterError, match=r"roster\.toml cannot be read"):
        rotate_keys(tmp_path, "silo-1", now=NOW)
