"""What a silo's owner has agreed to: one plan for one run, at most at one price; nothing else is answered."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from tacit.errors import ParameterError, check_name, check_positive, check_probability, check_text, shown
from tacit.federation.network.private_files import make_private_folder
from tacit.ledger.private_files import replace_private
from tacit.privacy import PrivacyBudget

__all__ = ["Consent", "Consents"]

_VERSION: Final = 1
_DIGEST_LETTERS: Final = 64
_LONGEST_FILE: Final = 2**22


class Consent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The owner's word on one plan of one run.

    Attributes:
        federation: In which federation.
        plan: Digest of the plan, hexadecimal.
        run: Name of the run.
        given: When, UTC, ISO 8601.
        epsilon: What the plan may cost the silo at most; None where the silo adds no noise, and so enforces
            no price (central trust, or no privacy).
        delta: That goes with it.
    """

    federation: str
    plan: str
    run: str
    given: str
    epsilon: float | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_name("federation", self.federation)
        check_name("run", self.run)
        check_text("given", self.given)
        if len(self.plan) != _DIGEST_LETTERS or set(self.plan) - set("0123456789abcdef"):
            raise ParameterError(
                f"plan must be a digest of {_DIGEST_LETTERS} hexadecimal letters, got {shown(self.plan)}."
            )
        if self.epsilon is not None:
            check_positive("epsilon", self.epsilon)
        check_probability("delta", self.delta, high_open=True)

    @property
    def limit(self) -> PrivacyBudget | None:
        """What the plan may cost."""
        return None if self.epsilon is None else PrivacyBudget(self.epsilon, self.delta)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """What the file holds."""

    version: int = _VERSION
    consent: list[Consent] = []


class Consents:
    """The consents of one silo, in a file that only its owner may read and write.

    A consent is looked up in the file whenever it is needed: one that is taken out counts no more.

    Args:
        path: A TOML file; nothing there is no consent to anything.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def all(self) -> tuple[Consent, ...]:
        """Return every consent, oldest first.

        Raises:
            ParameterError: The file cannot be read, others can write it, or a field has a wrong value.
        """
        try:
            with self.path.open("rb") as file:
                mode, data = os.fstat(file.fileno()).st_mode, file.read(_LONGEST_FILE)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise ParameterError(f"{self.path} cannot be read: {error.strerror}.") from error
        if mode & 0o022:
            raise ParameterError(f"others can write {self.path}, and so consent: `chmod 600 {self.path}`.")
        try:
            found = msgspec.toml.decode(data, type=_File)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ParameterError(f"{self.path} cannot be read: {str(error)[:300]}") from error
        if found.version != _VERSION:
            raise ParameterError(f"{self.path} has version {found.version}; this tacit reads {_VERSION}.")
        return tuple(found.consent)

    def find(self, federation: str, plan: bytes, run: str) -> Consent | None:
        """Return the consent to a plan, by its digest, in one run; None where there is none.

        Of several, the last one counts. Errors as `all`.
        """
        asked = (federation, plan.hex(), run)
        matching = [one for one in self.all() if (one.federation, one.plan, one.run) == asked]
        return matching[-1] if matching else None

    def give(self, federation: str, plan: bytes, run: str, *, limit: PrivacyBudget | None) -> Consent:
        """Write a consent down, on disk before this returns; errors as `all`.

        Args:
            federation: Its name.
            plan: Digest of the plan.
            run: Name of the run.
            limit: What the plan may cost at most; None where the silo adds no noise.
        """
        given = Consent(
            federation=federation,
            plan=plan.hex(),
            run=run,
            given=datetime.now(UTC).isoformat(timespec="seconds"),
            epsilon=None if limit is None else limit.epsilon,
            delta=0.0 if limit is None else limit.delta,
        )
        entries = [_without_none(one) for one in (*self.all(), given)]
        data = msgspec.toml.encode({"version": _VERSION, "consent": entries})
        make_private_folder(self.path.parent)
        try:
            replace_private(self.path, data)
        except OSError as error:
            raise ParameterError(f"{self.path} cannot be written: {error.strerror}.") from error
        return given


def _without_none(consent: Consent) -> dict[str, Any]:
    """Return what TOML can hold."""
    return {name: value for name, value in msgspec.structs.asdict(consent).items() if value is not None}
