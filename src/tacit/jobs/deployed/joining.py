"""A new party: its keys, made where it lives, and the card that tells of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tacit.errors import ParameterError
from tacit.federation.network.cards import CARD_ENDING, Card, PartyRole
from tacit.federation.network.certificates import ServiceKey
from tacit.federation.network.keys import OpeningKey, SigningKey

__all__ = ["OPENING", "SIGNING", "TLS_KEY", "Joined", "join", "make_keys", "new_folder", "read_cards"]

SIGNING: Final = "signing.pem"
OPENING: Final = "opening.pem"
TLS_KEY: Final = "tls.key"
"""Files of private keys in the folder of a party, which is called by its name."""

_PRIVATE: Final = 0o700


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A party with new keys.

    Attributes:
        folder: Where; the private keys are in the folder of the party's name in it.
        card: What it tells of itself.
        file: The card's, which is public.
    """

    folder: Path
    card: Card
    file: Path


def join(
    out: Path,
    *,
    role: PartyRole = "silo",
    name: str | None = None,
    size: int | None = None,
    url: str | None = None,
) -> Joined:
    """Make the keys of a party in a new folder, and its card.

    Args:
        out: A folder that is not there yet, or is empty.
        role: What the party is.
        name: Of a silo; the other two are called by their role.
        size: Public number of protected units of a silo; None where the data set is public.
        url: Where a server or a shuffler is reached, "https://host[:port]".

    Raises:
        ParameterError: A value that is not allowed, or there is something in the folder.
    """
    if role == "silo" and name is None:
        raise ParameterError("name must say how the silo is called, got None.")
    with new_folder(out) as made:
        card = make_keys(made, role, name=name or role, size=size, url=url)
        card.save(made / f"{card.name}{CARD_ENDING}")
    return Joined(folder=out, card=card, file=out / f"{card.name}{CARD_ENDING}")


def make_keys(
    folder: Path, role: PartyRole, *, name: str, size: int | None = None, url: str | None = None
) -> Card:
    """Write the private keys of a party into a folder of its name, and return its card.

    Args:
        folder: Where the folder is made.
        role: What the party is.
        name: Of it.
        size: Of a silo, or None.
        url: Of a server or a shuffler.

    Raises:
        ParameterError: A value that is not allowed, before anything is written; or a key is there already.
    """
    signing = SigningKey.make()
    opening = OpeningKey.make() if role == "server" else None
    service = None if role == "silo" else ServiceKey.make()
    card = Card(  # made first: it refuses a name that is no part of a path
        role=role,
        name=name,
        verify=signing.public.to_text(),
        size=size,
        url=url,
        seal=None if opening is None else opening.public.to_text(),
        tls=None if service is None else service.public,
    ).signed(signing)
    signing.save(folder / name / SIGNING)
    if opening is not None:
        opening.save(folder / name / OPENING)
    if service is not None:
        service.save(folder / name / TLS_KEY)
    return card


def read_cards(words: Sequence[str]) -> list[Card]:
    """Read cards, in the order in which they are named.

    Args:
        words: Files, separated by commas; a folder stands for all cards in it, in the order of their names.

    Raises:
        ParameterError: A file is no card, or a folder has none.
        AuthenticationError: A card was changed after it was made.
    """
    cards = []
    for text in (one for word in words for one in word.split(",")):
        path = Path(text.strip())
        files = sorted(path.glob(f"*{CARD_ENDING}")) if path.is_dir() else [path]
        if not files:
            raise ParameterError(f"cards must name files, got {path}, a folder without any *{CARD_ENDING}.")
        cards += [Card.load(file) for file in files]
    return cards


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Make a folder beside its final place, which takes the name at the end of the block, for all or nothing.

    Args:
        out: A folder that is not there yet, or is empty.

    Yields:
        Where to write. Whatever ends the block early removes it.

    Raises:
        ParameterError: There is something in `out`, or somebody else has put it there meanwhile.
        OSError: The folder cannot be written.
    """
    _check_new(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        yield made
        made.chmod(_PRIVATE)
        try:
            made.replace(out)  # takes the place of an empty folder, and of nothing else
        except OSError:
            _check_new(out)
            raise
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _check_new(out: Path) -> None:
    """Refuse a folder that holds anything."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ParameterError(
            f"{out} is there already, and its keys are never overwritten: name another folder, or move "
            "that one away."
        )
