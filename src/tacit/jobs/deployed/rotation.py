"""New keys for a party of a federation, in the folder that has its keys; what was there is kept.

The place of a party in the roster stays, so that ledgers, stored answers and journals go on. A signature by
the old key counts no more under the new roster; statements of earlier runs are checked with the roster of
their time, which is kept under a number.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from tacit.errors import ParameterError
from tacit.federation.network.audit_log import head_path
from tacit.federation.network.certificates import Credential
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.private_files import replace_private
from tacit.federation.network.roster import SERVER, SHUFFLER, Roster
from tacit.federation.network.silo_service import LOG_FILE
from tacit.jobs.deployed.founding import hosts_of

__all__ = ["Rotated", "revoke_silo", "rotate_keys"]

_ROSTER: Final = "roster.toml"
_OPEN: Final = 0o644


@dataclass(frozen=True, kw_only=True)
class Rotated:
    """What has changed.

    Attributes:
        roster: The new one.
        changed: Files that are new, by their paths in the folder.
        kept: Where what was there before is.
    """

    roster: Roster
    changed: tuple[str, ...]
    kept: tuple[str, ...]


def rotate_keys(folder: Path, party: str, *, now: dt.datetime) -> Rotated:
    """Make new keys for a party, and the roster that names them.

    A silo begins a new log, since every line of the old one is signed by the old key. Server and shuffler get
    a new certificate too, where the key of the authority is in the folder.

    Args:
        folder: Of a federation, with the keys of the party.
        party: Name of a silo, `SERVER` or `SHUFFLER`.
        now: The time, with its zone.

    Raises:
        ParameterError: A file is missing, or cannot be written; the roster has another key; or the silo runs.
        AuthenticationError: There is no such party.
    """
    roster = Roster.load(folder / _ROSTER)
    known = roster.verify_key(party)
    place = folder / party
    if SigningKey.load(place / "signing.pem").public != known:
        raise ParameterError(
            f"{place / 'signing.pem'} is not the key that {folder / _ROSTER} has of {party!r}."
        )
    log = place / "state" / LOG_FILE
    _check_stopped(log)
    signing, opening = SigningKey.make(), OpeningKey.make()
    number = _next_number(folder, place)
    old = [place / "signing.pem"]
    signing.save(place / "signing.pem.new")
    if party == SERVER:
        opening.save(place / "opening.pem.new")
        old.append(place / "opening.pem")
        entry = msgspec.structs.replace(
            roster.server, verify=signing.public.to_text(), seal=opening.public.to_text()
        )
        changed = msgspec.structs.replace(roster, server=entry)
    elif party == SHUFFLER and roster.shuffler is not None:
        other = msgspec.structs.replace(roster.shuffler, verify=signing.public.to_text())
        changed = msgspec.structs.replace(roster, shuffler=other)
    else:
        changed = _with_silo(roster, party, verify=signing.public.to_text(), revoked=False, expires=None)
    if party in (SERVER, SHUFFLER) and (folder / "authority" / "ca.key").exists():
        url = roster.server.url if roster.shuffler is None or party == SERVER else roster.shuffler.url
        authority = Credential.load(folder / "ca.pem", folder / "authority" / "ca.key")
        issued = authority.issue(hosts_of(urlsplit(url).hostname or ""), now=now)
        issued.save(place / "tls.pem.new", place / "tls.key.new")
        old += [place / "tls.pem", place / "tls.key"]
    kept = [_kept(path, number) for path in old]
    for path in old:
        Path(f"{path}.new").replace(path)
    if log.exists():
        kept.append(_kept(log, number))
        head_path(log).replace(head_path(kept[-1]))
    kept.append(_write_roster(folder, changed, number))
    return Rotated(
        roster=changed,
        changed=tuple(str(path.relative_to(folder)) for path in (*old, folder / _ROSTER)),
        kept=tuple(str(path.relative_to(folder)) for path in kept),
    )


def revoke_silo(folder: Path, silo: str) -> Rotated:
    """Write a roster under which nothing by the key of a silo counts any more; errors as `rotate_keys`."""
    roster = Roster.load(folder / _ROSTER)
    roster.index(silo)
    changed = _with_silo(roster, silo, revoked=True)
    kept = _write_roster(folder, changed, _next_number(folder, folder / silo))
    return Rotated(roster=changed, changed=(_ROSTER,), kept=(str(kept.relative_to(folder)),))


def _with_silo(roster: Roster, name: str, **fields: object) -> Roster:
    """Return a roster with another entry for a silo, in the same place."""
    place = roster.index(name)
    entries = list(roster.silos)
    entries[place] = msgspec.structs.replace(entries[place], **fields)
    return msgspec.structs.replace(roster, silos=tuple(entries))


def _check_stopped(log: Path) -> None:
    """Refuse to take the log away from a silo that writes into it."""
    if not log.exists():
        return
    with log.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ParameterError(
                f"the silo whose log is {log} must be stopped before it has new keys."
            ) from None


def _next_number(folder: Path, place: Path) -> int:
    """Return a number under which nothing is kept yet."""
    taken = [*folder.glob("roster-*.toml"), *place.glob("*-*.pem"), *place.glob("*-*.key")]
    return next(k for k in itertools.count(1) if not any(path.stem.endswith(f"-{k}") for path in taken))


def _kept(path: Path, number: int) -> Path:
    """Give a file the name under which it is kept."""
    return path.replace(path.with_name(f"{path.stem}-{number}{path.suffix}"))


def _write_roster(folder: Path, roster: Roster, number: int) -> Path:
    """Put a roster in the place of the old one, and return where that is kept."""
    kept = folder / f"roster-{number}.toml"
    Roster.load(folder / _ROSTER).save(kept)
    replace_private(folder / _ROSTER, roster.to_toml().encode())
    (folder / _ROSTER).chmod(_OPEN)
    return kept
