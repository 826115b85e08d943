"""Whose masks count: the names and keys that operators agree on, without the server."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tacit.errors import ParameterError, RefusalError, check_count, check_name, shown
from tacit.federation.masking.fields import hashed
from tacit.federation.network.keys import VerifyKey

__all__ = ["MaskingRoster"]

_MOST_PARTIES: Final = 10_000


@dataclass(frozen=True)
class MaskingRoster:
    """The parties of a sum, in the order that fixes the signs of their masks.

    It must not come from the server: with a key of its own in it, the server is one more colluder for each.

    Attributes:
        names: How operators call the parties; distinct.
        keys: Their public keys for signatures (Ed25519), 32 bytes each; distinct.

    Raises:
        ParameterError: Fewer than two parties, more than 10,000, names and keys that do not match, one that
            stands twice, or a key under which anybody's signature would pass.
    """

    names: tuple[str, ...]
    keys: tuple[bytes, ...]

    def __post_init__(self) -> None:
        names = tuple(check_name("the name of a party", name) for name in _listed("names", self.names))
        keys = tuple(VerifyKey(key).raw for key in _listed("keys", self.keys))
        check_count("the number of parties of a roster", len(names), low=2, high=_MOST_PARTIES)
        if len(keys) != len(names):
            raise ParameterError(f"keys must be one for each of {len(names)} names, got {len(keys)}.")
        if len(set(names)) < len(names) or len(set(keys)) < len(keys):
            raise ParameterError("a name or a key stands twice in the roster: parties must be different.")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "keys", keys)

    def __len__(self) -> int:
        """Return the number of parties."""
        return len(self.keys)

    @cached_property
    def digest(self) -> str:
        """What plans name the roster by: 64 hexadecimal digits that differ for any other one."""
        return hashed("masking roster", len(self.names), *self.names, *self.keys).hex()

    @cached_property
    def verify_keys(self) -> tuple[VerifyKey, ...]:
        """The keys, ready to verify."""
        return tuple(VerifyKey(key) for key in self.keys)

    def position(self, key: VerifyKey) -> int:
        """Return the place of whoever has a key.

        Raises:
            RefusalError: It is nobody's.
        """
        try:
            return self.keys.index(key.raw)
        except ValueError:
            raise RefusalError(
                f"the key {key!r} is not in the roster {self.digest[:12]}...: it has no masks."
            ) from None


def _listed(name: str, values: Any) -> tuple[Any, ...]:
    """Return a tuple; refuse a text, whose parts are texts too."""
    if not isinstance(values, tuple | list):
        raise ParameterError(f"{name} must be a tuple, got {shown(values)}.")
    return tuple(values)
