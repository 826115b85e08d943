"""Changes of a federation: a new roster beside the old one, and certificates by the same authority.

Nothing is overwritten: statements of old runs are verified with the roster of their run. No silo changes its
place, which is its index in every run, and none its size, which plans and prices hang on.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tacit.errors import ParameterError, shown
from tacit.federation.network.cards import Card
from tacit.federation.network.certificates import Credential, save_certificate
from tacit.federation.network.roster import SERVER, SHUFFLER, Roster, ServerEntry, ShufflerEntry, SiloEntry
from tacit.jobs.deployed.founding import CA_FILE, CA_KEY, ROSTER_FILE, write_certificate

__all__ = ["Amended", "amend", "amended_roster", "latest_roster", "renew_certificate"]


@dataclass(frozen=True, kw_only=True)
class Amended:
    """What was written.

    Attributes:
        old: The roster before.
        roster: The new one.
        file: Where it is.
        certificates: New ones, by the role of the party.
    """

    old: Path
    roster: Roster
    file: Path
    certificates: Mapping[str, Path]


def amend(
    folder: Path,
    *,
    old: Path | None = None,
    cards: Sequence[Card] = (),
    revoke: Sequence[str] = (),
    expire: Mapping[str, dt.date] | None = None,
    now: dt.datetime,
) -> Amended:
    """Write a new roster beside the old one, and certificates for a new server or shuffler.

    Args:
        folder: Of whoever founded the federation.
        old: The roster that is changed; None is the latest in the folder.
        cards: Of parties with new keys.
        revoke: Names of silos whose keys no longer count.
        expire: The last day, in UTC, on which the key of a silo counts, by name.
        now: The time, with its zone.

    Raises:
        ParameterError: Nothing changes, a file cannot be used or written, or as `amended_roster`.
        AuthenticationError: There is no such silo, or the authority has expired.
    """
    old = latest_roster(folder) if old is None else old
    roster = amended_roster(Roster.load(old), cards=cards, revoke=revoke, expire=expire or {})
    services = [one for one in cards if one.role != "silo"]
    certificates: dict[str, Path] = {}
    if services:
        authority = Credential.load(folder / CA_FILE, folder / CA_KEY)
        for one in services:
            certificates[one.role] = _free(folder / one.role / "tls.pem")
            write_certificate(authority, one, certificates[one.role], now=now)
    file = _free(folder / ROSTER_FILE)
    roster.save(file)
    return Amended(old=old, roster=roster, file=file, certificates=certificates)


def amended_roster(
    roster: Roster, *, cards: Sequence[Card] = (), revoke: Sequence[str] = (), expire: Mapping[str, dt.date]
) -> Roster:
    """Return a roster with changes, every silo at its place.

    A new card replaces a party's key; that of a silo counts from then on, whatever the old one did.

    Args:
        roster: The old one.
        cards: Of parties with new keys.
        revoke: Names of silos whose keys no longer count.
        expire: The last day, in UTC, on which the key of a silo counts, by name.

    Raises:
        ParameterError: Nothing changes, a party is named twice, a key is not new, or a card changes a size.
        AuthenticationError: There is no such silo.
    """
    if not (cards or revoke or expire):
        raise ParameterError("cards, revoke or expire must say what changes, got none of them.")
    named = [*(one.name for one in cards), *revoke]
    for name in named:
        if named.count(name) > 1:
            raise ParameterError(f"cards and revoke must name a party once, got {shown(name)} twice.")
    silos = list(roster.silos)
    used = {roster.server.verify, *(one.verify for one in silos)}
    used |= set() if roster.shuffler is None else {roster.shuffler.verify}
    changed: dict[str, ServerEntry | ShufflerEntry] = {}
    for card in cards:
        if card.verify in used:
            raise ParameterError(
                f"the card of {card.name!r} must bring a new key, got one of the old roster."
            )
        if card.role == "silo":
            place = roster.index(card.name)
            silos[place] = _replaced(silos[place], card)
        else:
            changed[card.role] = card.entry()  # type: ignore[assignment]
    for name in revoke:
        _check_silo(name)
        place = roster.index(name)
        silos[place] = replace(silos[place], revoked=True)
    for name, day in expire.items():
        _check_silo(name)
        place = roster.index(name)
        silos[place] = replace(silos[place], expires=day)
    return replace(roster, silos=tuple(silos), **changed)


def renew_certificate(
    certificate: Path, *, folder: Path, now: dt.datetime, days: int = 397
) -> tuple[Path, dt.datetime]:
    """Write a new certificate of the same key beside an old one.

    Args:
        certificate: The old one, of the server or the shuffler.
        folder: Of whoever founded the federation, with its authority.
        now: The time, with its zone.
        days: How long the new one is valid.

    Returns:
        The new file, and until when it is valid.

    Raises:
        ParameterError: A file cannot be read or written, or a value is not allowed.
        AuthenticationError: Another authority issued the old one, or this one has expired.
    """
    authority = Credential.load(folder / CA_FILE, folder / CA_KEY)
    new = authority.renew(certificate, now=now, days=days)
    path = _free(certificate)
    save_certificate(path, new)
    return path, new.not_valid_after_utc


def latest_roster(folder: Path) -> Path:
    """Return the last roster that was written into a folder: roster.toml, roster-2.toml, and so on."""
    last = folder / ROSTER_FILE
    for one in _numbered(last):
        if not one.exists():
            return last
        last = one
    return last


def _numbered(path: Path) -> itertools.chain[Path]:
    """Yield the names of a file and those that follow it: a.pem, a-2.pem, a-3.pem, ..."""
    stem, _, number = path.stem.rpartition("-")
    base = stem if stem and number.isdigit() else path.stem
    more = (path.with_name(f"{base}-{k}{path.suffix}") for k in itertools.count(2))
    return itertools.chain([path.with_name(f"{base}{path.suffix}")], more)


def _free(path: Path) -> Path:
    """Return the next name of a file that is not there."""
    return next(one for one in _numbered(path) if not one.exists())


def _replaced(entry: SiloEntry, card: Card) -> SiloEntry:
    """Return the entry of a silo with a new key."""
    if card.size not in (None, entry.size):
        raise ParameterError(
            f"the card of silo {card.name!r} must not change its size, {entry.size:,}, got {card.size:,}: "
            "another size is another plan, for which a new federation is founded."
        )
    return replace(entry, verify=card.verify, revoked=False, expires=None)


def _check_silo(name: str) -> None:
    """Refuse the two roles that are in every round: they are replaced, by a new card."""
    if name in (SERVER, SHUFFLER):
        raise ParameterError(
            f"revoke and expire must name silos, got {name!r}: a new card replaces its keys."
        )
