"""The roster: who takes part in a federation, by which keys, and where they are. Public, one for all."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from tacit.errors import (
    LARGEST_COUNT,
    AuthenticationError,
    ParameterError,
    check_count,
    check_name,
    check_text,
    shown,
)
from tacit.federation.network.keys import SealingKey, VerifyKey, fingerprint
from tacit.federation.public_texts import check_known_version, read_versioned, save_new

__all__ = ["SERVER", "SHUFFLER", "Roster", "ServerEntry", "ShufflerEntry", "SiloEntry"]

_ROSTER_VERSION: Final = 1
SERVER: Final = "server"
SHUFFLER: Final = "shuffler"
"""How messages name the two roles that are no silo."""

_MOST_SILOS: Final = 10_000
_LONGEST_ROSTER: Final = 2**22
_LONGEST_URL: Final = 1000


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server.

    Attributes:
        verify: Its key for signatures, as base64.
        seal: The key that messages to it are sealed with, as base64.
        url: Where silos reach it, "https://host[:port]".
    """

    verify: str
    seal: str
    url: str

    def __post_init__(self) -> None:
        _checked("server.verify", VerifyKey.from_text, self.verify)
        _checked("server.seal", SealingKey.from_text, self.seal)
        _check_url("server.url", self.url)


class ShufflerEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shuffler.

    Attributes:
        verify: Its key for signatures, as base64.
        url: Where silos and the server reach it, "https://host[:port]".
    """

    verify: str
    url: str

    def __post_init__(self) -> None:
        _checked("shuffler.verify", VerifyKey.from_text, self.verify)
        _check_url("shuffler.url", self.url)


class SiloEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One silo.

    Attributes:
        name: How statements, messages and logs call it.
        size: Public number of protected units.
        verify: Its key for signatures, as base64.
        revoked: Whether nothing by this key counts any more.
        expires: The last day, in UTC, on which the key counts; None for no last day.
    """

    name: str
    size: int
    verify: str
    revoked: bool = False
    expires: dt.date | None = None

    def __post_init__(self) -> None:
        check_name("the name of a silo", self.name)
        # Files are called by it, and messages name the roles that are no silo in the same place.
        if self.name in (SERVER, SHUFFLER) or self.name.startswith(".") or set(self.name) & set("/\\"):
            raise ParameterError(
                f"the name of a silo must be none of {SERVER!r}, {SHUFFLER!r}, begin with no dot and hold no "
                f"slash, got {shown(self.name)}."
            )
        check_count(f"the size of silo {self.name!r}", self.size, high=LARGEST_COUNT)
        _checked(f"the key of silo {self.name!r}", VerifyKey.from_text, self.verify)

    def why_not(self, now: dt.datetime) -> str | None:
        """Return why the key does not count at a time (with its zone); None where it does."""
        if self.revoked:
            return f"silo {self.name!r} is revoked in the roster"
        if self.expires is not None and _day(now) > self.expires:
            return f"the key of silo {self.name!r} has expired on {self.expires}"
        return None


class Roster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Who takes part. The place of a silo in it is the silo's index in every run.

    Attributes:
        federation: Its name.
        server: The server.
        silos: In the order of their indices.
        shuffler: None where no run trusts one.
        version: Of this form.
    """

    federation: str
    server: ServerEntry
    silos: tuple[SiloEntry, ...]
    shuffler: ShufflerEntry | None = None
    version: int = _ROSTER_VERSION

    def __post_init__(self) -> None:
        check_known_version(self.version, known=_ROSTER_VERSION, what="roster")
        check_name("federation", self.federation)
        check_count("the number of silos", len(self.silos), high=_MOST_SILOS)
        _check_different("the name of a silo", [one.name for one in self.silos])
        keys = [self.server.verify, *(one.verify for one in self.silos)]
        _check_different("a key", [*keys, *([] if self.shuffler is None else [self.shuffler.verify])])

    @cached_property
    def _places(self) -> dict[str, int]:
        """Indices by name."""
        return {one.name: k for k, one in enumerate(self.silos)}

    @cached_property
    def _verify_keys(self) -> dict[str, VerifyKey]:
        """Keys that were used, ready to verify."""
        return {}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Public number of units of every silo."""
        return tuple(one.size for one in self.silos)

    def index(self, name: str) -> int:
        """Return the index of a silo.

        Raises:
            AuthenticationError: There is no such silo.
        """
        place = self._places.get(name)
        if place is None:
            raise AuthenticationError(f"silo {shown(name)} is not in the roster of {self.federation!r}.")
        return place

    def silo(self, name: str) -> SiloEntry:
        """Return the entry of a silo; errors as `index`."""
        return self.silos[self.index(name)]

    def active(self, now: dt.datetime) -> tuple[SiloEntry, ...]:
        """Return the silos that are neither revoked nor expired at a time (with its zone)."""
        return tuple(one for one in self.silos if one.why_not(now) is None)

    def check_active(self, name: str, now: dt.datetime) -> SiloEntry:
        """Return the entry of a silo whose key counts at a time (with its zone).

        Raises:
            AuthenticationError: There is no such silo, or it is revoked or expired.
        """
        entry = self.silo(name)
        if (why := entry.why_not(now)) is not None:
            raise AuthenticationError(f"{why}.")
        return entry

    def verify_key(self, who: str) -> VerifyKey:
        """Return the key for signatures of a silo, of `SERVER` or of `SHUFFLER`.

        Raises:
            AuthenticationError: There is nobody of this name. Whether a silo is revoked is not looked at.
        """
        if who not in self._verify_keys:
            self._verify_keys[who] = VerifyKey.from_text(self._verify_text(who))
        return self._verify_keys[who]

    def _verify_text(self, who: str) -> str:
        if who == SERVER:
            return self.server.verify
        if who != SHUFFLER:
            return self.silo(who).verify
        if self.shuffler is None:
            raise AuthenticationError(f"the roster of {self.federation!r} names no shuffler.")
        return self.shuffler.verify

    @property
    def sealing_key(self) -> SealingKey:
        """The key that messages to the server are sealed with."""
        return SealingKey.from_text(self.server.seal)

    def digest(self) -> bytes:
        """Return 32 bytes that differ for any other roster."""
        return hashlib.blake2b(msgspec.json.encode(self), digest_size=32).digest()

    def fingerprint(self) -> str:
        """Return digits that two people compare, see `tacit.federation.network.keys.fingerprint`."""
        return fingerprint(msgspec.json.encode(self))

    def to_toml(self) -> str:
        """Write the roster as TOML; `from_toml` reads it back equal."""
        rest = {name: value for name, value in msgspec.structs.asdict(self).items() if name != "silos"}
        # One table a silo, so that people find what they change: left alone, short ones go on one line.
        silos = (f"\n[[silos]]\n{_toml(msgspec.structs.asdict(one))}" for one in self.silos)
        return _toml(rest) + "".join(silos)

    @classmethod
    def from_toml(cls, text: str) -> Roster:
        """Read a roster.

        Raises:
            ParameterError: Not TOML, an unknown version, or a value that is not allowed.
        """
        if len(text) > _LONGEST_ROSTER:
            raise ParameterError(f"a roster must be a text of at most {_LONGEST_ROSTER:,} characters.")
        return read_versioned(text, cls, known=_ROSTER_VERSION, what="roster")

    @classmethod
    def load(cls, path: Path | str) -> Roster:
        """Read a roster from a file; errors as `from_toml`, and ParameterError if there is no such file."""
        try:
            with Path(path).open("rb") as file:
                data = file.read(4 * _LONGEST_ROSTER + 1)
            return cls.from_toml(data.decode())
        except OSError as error:
            raise ParameterError(f"the roster {path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise ParameterError(f"the roster {path} must be a text in UTF-8.") from error
        except ParameterError as error:
            raise ParameterError(f"{path}: {error}") from error

    def save(self, path: Path | str) -> None:
        """Write the roster to a new file.

        Raises:
            ParameterError: There is something of this name already, or it cannot be written.
        """
        save_new(self.to_toml(), path)


def _toml(fields: dict[str, Any]) -> str:
    """Write fields as TOML, which has no word for what is left out."""
    said = {name: value for name, value in fields.items() if value is not None and value is not False}
    return msgspec.toml.encode(said).decode()


def _checked(name: str, read: Callable[[str], object], text: str) -> None:
    """Refuse the text of a key, by the name of its field."""
    try:
        read(text)
    except ParameterError as error:
        raise ParameterError(f"{name}: {error}") from error


def _check_url(name: str, url: str) -> None:
    """Refuse anything but the address of a machine: services have paths of their own."""
    check_text(name, url, low=1, high=_LONGEST_URL)
    try:
        parts = urlsplit(url)
        good = parts.scheme == "https" and parts.hostname and (parts.port is None or parts.port > 0)
        plain = not (parts.username or parts.password or parts.query or parts.fragment)
        good = good and plain and parts.path in ("", "/") and " " not in url
    except ValueError:
        good = False
    if not good:
        raise ParameterError(f"{name} must be 'https://host[:port]', got {shown(url)}.")


def _check_different(what: str, values: list[str]) -> None:
    """Refuse a value that stands twice."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ParameterError(f"{what} must stand once in a roster, got {shown(value)} twice.")
        seen.add(value)


def _day(now: dt.datetime) -> dt.date:
    """Return the day of a time, in UTC."""
    if now.tzinfo is None:
        raise ParameterError(f"now must be a time with its zone, got {now.isoformat()}.")
    return now.astimezone(dt.UTC).date()
