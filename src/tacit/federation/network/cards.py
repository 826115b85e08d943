"""Cards: what a party that made its keys where it lives tells of itself. Public; it goes by mail.

A card is signed by the key that it brings, so that nobody joins with a key that is another party's, and a
card that was changed on its way is refused. Against one that was replaced as a whole, with another key, two
people compare its fingerprint.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from tacit.errors import AuthenticationError, ParameterError, shown
from tacit.federation.network.certificates import ServiceKey
from tacit.federation.network.keys import SIGNATURE_BYTES, SigningKey, VerifyKey, fingerprint
from tacit.federation.network.roster import SERVER, SHUFFLER, Roster, ServerEntry, ShufflerEntry, SiloEntry
from tacit.federation.public_texts import check_known_version, read_versioned, save_new

__all__ = ["CARD_ENDING", "Card", "PartyRole", "roster_of_cards"]

PartyRole = Literal["silo", "shuffler", "server"]
"""What a party is in a federation."""

_CARD_VERSION: Final = 1
CARD_ENDING: Final = ".card.toml"

_LONGEST: Final = 2**16
_BROUGHT: Final[dict[str, frozenset[str]]] = {
    "silo": frozenset(),
    "shuffler": frozenset({"url", "tls"}),
    "server": frozenset({"url", "tls", "seal"}),
}
"""What a card of each role has besides name and key for signatures."""


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a party tells of itself.

    Attributes:
        role: What it is.
        name: Of a silo; the other two are called by their role.
        verify: Its key for signatures, as base64.
        size: Public number of protected units of a silo; None where the data set is public.
        url: Where the server or the shuffler is reached, "https://host[:port]".
        seal: The key that messages to the server are sealed with, as base64.
        tls: The key that a certificate of the server or the shuffler is to be of, as base64.
        signature: By the key for signatures, about all of it, as base64.
        version: Of this form.
    """

    role: PartyRole
    name: str
    verify: str
    size: int | None = None
    url: str | None = None
    seal: str | None = None
    tls: str | None = None
    signature: str = ""
    version: int = _CARD_VERSION

    def __post_init__(self) -> None:
        check_known_version(self.version, known=_CARD_VERSION, what="card")
        if self.role != "silo" and self.name != self.role:
            raise ParameterError(
                f"name must be {self.role!r} on the card of the {self.role}, got {shown(self.name)}."
            )
        for field in ("url", "seal", "tls"):
            said, needed = getattr(self, field) is not None, field in _BROUGHT[self.role]
            if said != needed:
                raise ParameterError(
                    f"{field} must {'' if needed else 'not '}stand on the card of a {self.role}."
                )
        if self.size is not None and self.role != "silo":
            raise ParameterError(f"size must not stand on the card of a {self.role}.")
        if self.tls is not None:
            ServiceKey.check_public("tls", self.tls)
        _ = self.entry(1)  # refuses what no roster holds

    def entry(self, size: int = 0) -> SiloEntry | ShufflerEntry | ServerEntry:
        """Return the party's entry in a roster.

        Args:
            size: Of a silo whose card does not say it.
        """
        if self.role == "silo":
            return SiloEntry(
                name=self.name, size=size if self.size is None else self.size, verify=self.verify
            )
        if self.role == "shuffler":
            return ShufflerEntry(verify=self.verify, url=self.url or "")
        return ServerEntry(verify=self.verify, seal=self.seal or "", url=self.url or "")

    def signed(self, key: SigningKey) -> Card:
        """Return the card with the signature of its own key."""
        signature = base64.b64encode(key.sign("card", self._text())).decode()
        return msgspec.structs.replace(self, signature=signature)

    def check_signature(self) -> None:
        """Refuse a card that the key on it has not signed.

        Raises:
            AuthenticationError: It was changed, or made by somebody who has not this key.
        """
        try:
            raw = base64.b64decode(self.signature, validate=True)
            if len(raw) != SIGNATURE_BYTES:
                raise ValueError("no signature")
            VerifyKey.from_text(self.verify).verify("card", self._text(), raw)
        except (ValueError, AuthenticationError):
            raise AuthenticationError(
                f"the card of {self.name!r} is not signed by its own key: it was changed after it was made."
            ) from None

    def _text(self) -> bytes:
        """Return what is signed and compared: all but the signature."""
        return msgspec.json.encode(msgspec.structs.replace(self, signature=""))

    def fingerprint(self) -> str:
        """Return digits that two people compare, see `fingerprint`."""
        return fingerprint(self._text())

    def to_toml(self) -> str:
        """Write the card as TOML; `from_toml` reads it back equal."""
        said = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.toml.encode(said).decode()

    @classmethod
    def from_toml(cls, text: str) -> Card:
        """Read a card, and check its signature.

        Raises:
            ParameterError: Not TOML, an unknown version, or a value that is not allowed.
            AuthenticationError: It is not signed by its own key.
        """
        card = read_versioned(text, cls, known=_CARD_VERSION, what="card")
        card.check_signature()
        return card

    @classmethod
    def load(cls, path: Path | str) -> Card:
        """Read a card from a file; errors as `from_toml`, and ParameterError if there is no such file."""
        try:
            with Path(path).open("rb") as file:
                data = file.read(_LONGEST + 1)
        except OSError as error:
            raise ParameterError(f"the card {path} cannot be read: {error.strerror}.") from error
        if len(data) > _LONGEST:
            raise ParameterError(f"the card {path} must have at most {_LONGEST:,} bytes.")
        try:
            return cls.from_toml(data.decode())
        except UnicodeDecodeError as error:
            raise ParameterError(f"the card {path} must be a text in UTF-8.") from error
        except (ParameterError, AuthenticationError) as error:
            raise type(error)(f"{path}: {error}") from error

    def save(self, path: Path | str) -> None:
        """Write the card to a new file.

        Raises:
            ParameterError: There is something of this name already, or it cannot be written.
        """
        save_new(self.to_toml(), path)


def roster_of_cards(federation: str, cards: Sequence[Card], sizes: Sequence[int]) -> Roster:
    """Return who takes part, by what each says of itself.

    Args:
        federation: Name.
        cards: Of the server, of a shuffler or none, and of silos in the order of their indices.
        sizes: Of the silos, in the same order.

    Raises:
        ParameterError: No server, two of one role or name, a key twice, or another size than on a card.
    """
    roles = Counter(one.role for one in cards)
    if roles["server"] != 1 or roles["shuffler"] > 1:
        raise ParameterError(
            "cards must be of one server, of at most one shuffler and of the silos, got "
            f"{roles['server']} of a server and {roles['shuffler']} of a shuffler."
        )
    silos = [one for one in cards if one.role == "silo"]
    for one, size in zip(silos, sizes, strict=True):
        if one.size not in (None, size):
            raise ParameterError(
                f"the size of silo {one.name!r} must be {size:,}, got {one.size:,} on its card."
            )
    entries: dict[str, Any] = {one.role: one.entry() for one in cards if one.role != "silo"}
    return Roster(
        federation=federation,
        server=entries[SERVER],
        shuffler=entries.get(SHUFFLER),
        silos=tuple(one.entry(size) for one, size in zip(silos, sizes, strict=True)),  # type: ignore[misc]
    )
