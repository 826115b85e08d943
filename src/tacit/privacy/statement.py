"""Statements: the guarantees of a run or an answer in their one form, with all that is needed to check them.

Every command that prices something writes a `Statement`, and `tacit account verify` reads all of them:
unknown fields, contradictions and changed files are refused. What this shows is that the numbers follow from
the events; that the events are what ran is the word of whoever hands the statement out.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any, Final

import msgspec

from tacit.errors import ParameterError, VerificationError
from tacit.privacy.guarantee import FORMAT_VERSION, Guarantee, verify
from tacit.privacy.neighbours import Unit
from tacit.privacy.signed import ClaimSignature, check_signatures
from tacit.privacy.statement_checks import check_answer, check_noise, check_run, check_work_of_all, which
from tacit.privacy.weak import reveals_one

__all__ = ["COMMON", "KINDS", "SUMMED", "About", "DataFacts", "OpenModel", "Statement", "digest_of"]

_PRICE = frozenset({"epsilon", "delta", "method"})
_ROUNDS = _PRICE | {"rounds", "sample_rate", "neighbours", "sampling"}

SUMMED: Final = frozenset({"tables", "colluding", "epsilon_alone", "guarantee_alone"})
"""What means and frequencies hold besides under aggregate trust."""

KINDS: dict[str, frozenset[str]] = {
    "guarantee": frozenset(),
    "train": frozenset(),
    "mean": frozenset(
        {"table", "n", "columns", "mean", "noise_std", "confidence", "confidence_interval"}
        | {"epsilon", "delta", "trust", "unit", "simulated", "guarantee"}
        | SUMMED
    ),
    "frequencies": frozenset(
        {"table", "column", "n", "k", "mechanism", "local_epsilon", "max_random_bits"}
        | {"bits_per_client", "random_bits_per_client", "rmse"}
        | {"estimates", "projection", "intervals", "confidence"}
        | {"epsilon", "delta", "trust", "unit", "simulated", "guarantee"}
        | {"heavy_hitters", "threshold", "false_alarm"}
        | SUMMED
    ),
    "frequencies levels": frozenset(
        {"table", "column", "n", "k", "levels", "analysts", "projection", "confidence"}
        | {"bits_per_client", "private_bits_per_client", "random_bits_per_client", "separate_messages"}
        | {"epsilon", "delta", "trust", "unit", "simulated", "guarantee"}
    ),
    "frequencies large": frozenset(
        {"table", "column", "items", "hash_seed", "n", "bits", "answering", "kept", "tree"}
        | {"bits_per_client", "random_bits_per_client", "threshold", "false_alarm", "miss", "detectable"}
        | {"heavy_hitters", "confidence", "epsilon", "delta", "trust", "unit", "simulated", "guarantee"}
        | {"epsilon_alone", "guarantee_alone"}
    ),
    "frequencies tables": frozenset(
        {"table", "columns", "n", "answering", "tables", "bits_per_client", "random_bits_per_client"}
        | {"confidence", "epsilon", "delta", "trust", "unit", "simulated", "guarantee"}
        | {"epsilon_alone", "guarantee_alone"}
    ),
    "vote release": frozenset(
        {"out", "queries", "teachers", "method", "epsilon", "delta", "simulated", "guarantee"}
    ),
    "bandit run": frozenset(
        {"trust", "budget_epsilon", "budget_delta", "noise", "anonymity", "levels", "reward_range"}
        | {"answered", "batches_answered", "left", "best", "finished", "next", "out"}
        | {"epsilon", "delta", "simulated", "guarantee"}
    ),
    "account epsilon": _ROUNDS | {"noise_multiplier", "mechanism"},
    "account subsample": _ROUNDS | {"release", "epsilon_per_round", "epsilon_without_sampling"},
    "account shuffle": _PRICE
    | {"local_epsilon", "n", "parties_per_round", "mechanism", "messages", "rounds", "sample_rate"}
    | {"seconds", "plot"},
    "account iterate": _PRICE
    | {"noise_multiplier", "n", "epochs", "private", "release", "order", "worst_case_order"}
    | {"step_times_smoothness", "loss", "placement", "neighbours"},
    "account reports": _PRICE
    | {"local_epsilon", "clients", "drawn", "join_rate", "records", "sampled", "rounds", "dim", "randomizer"}
    | {"bits_per_client", "accountants"},
    "account halving": _PRICE
    | {"run_release", "check_release", "rounds", "check_every", "most_runs", "neighbours"},
    "account compose": _PRICE | {"neighbours", "releases"},
    "account calibrate": _ROUNDS
    | {"noise_multiplier", "local_epsilon", "budget_epsilon", "trust", "n", "mechanism"},
}
"""What a statement of each kind holds beside the fields that all have: facts of the answer."""


class About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom one guarantee is about.

    Attributes:
        trust: Who is trusted, "local", "aggregate", "shuffle" or "central".
        silo: Whose records; None for all silos together.
        units: How many protected units, where that number is public.
        alone: Whether it is about one message alone, with its sender, under shuffle or aggregate trust; left
            out where not.
    """

    trust: str
    silo: str | None = None
    units: int | None = None
    alone: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_alone(self) -> bool:
        """Whether it is about one message alone."""
        return self.alone is True

    @property
    def observed(self) -> str:
        """The trust model and, where it has two, which of its observers."""
        if not self.is_alone:
            return self.trust
        return f"{self.trust}, {'before shuffling' if self.trust == 'shuffle' else 'one message alone'}"


class OpenModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was computed without privacy beside it."""

    trust: str
    sentence: str


class DataFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is public about the data.

    Attributes:
        name: Of the file or data set.
        public: Whether anybody may see the data anyway.
        silos: How many silos.
        unit: What is protected, "record", "person" or "party".
        sizes: Units of each silo, by its name; None where that number is not public.
        read_off: Columns whose bounds, categories or classes were read off the data, without privacy.
        sample: Whether a sample of public records says how features are scaled; left out where not.
        trained_with: How many public records a model was trained with beside the data, by trust model; left
            out where none was.
        sensitive: Attributes that alone are private, where the rest of a record is not; else left out.
    """

    name: str
    public: bool
    silos: int
    unit: Unit
    sizes: dict[str, int | None]
    read_off: tuple[str, ...]
    sample: bool = False
    trained_with: dict[str, int] = {}
    sensitive: tuple[str, ...] = ()


class Statement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Guarantees, whom they are about, and what must be known besides.

    Attributes:
        kind: Which command made it, one of `KINDS`.
        guarantees: At least one, but for a run that claims nothing.
        about: Whom each guarantee is about, in the same order; empty where nothing is known about that.
        run: Name of the run.
        created: When, as ISO 8601.
        tacit: Version of the library.
        released: The trust model whose model is meant to be handed out.
        algorithm: What trained it.
        model: What was trained, by its name, and how many parameters it has.
        not_private: What was computed without privacy beside it.
        data: What is public about the data.
        digests: SHA-256 of the files that belong to the statement, in hexadecimal, by the name of the file.
        notes: Whole sentences that must be known besides.
        signatures: Of the parties who stand behind their guarantees, in a deployed federation.
        answer: The facts that this kind of statement holds at the top, see `KINDS`.
    """

    kind: str
    guarantees: tuple[Guarantee, ...]
    about: tuple[About, ...] = ()
    run: str | None = None
    created: str | None = None
    tacit: str | None = None
    released: str | None = None
    algorithm: str | None = None
    model: str | None = None
    not_private: tuple[OpenModel, ...] = ()
    data: DataFacts | None = None
    digests: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    signatures: tuple[ClaimSignature, ...] = ()
    answer: dict[str, Any] = {}

    def to_builtins(self) -> dict[str, Any]:
        """Return what JSON can hold; fields that are empty are left out, but for the number of guarantees.

        Raises:
            ParameterError: A fact that statements of this kind do not have: it could not be read again.
        """
        if unknown := set(self.answer) - KINDS[self.kind]:
            raise ParameterError(f"a statement of kind {self.kind!r} has no field {min(unknown)!r}.")
        warnings = (said for said in self.warnings if said not in self.notes)
        whole = msgspec.structs.replace(self, notes=(*self.notes, *warnings))
        rest = {
            name: msgspec.to_builtins(value)
            for name in COMMON
            if (value := getattr(whole, name)) or (self.kind == "train" and name in _OF_RUNS)
        }
        return {
            "version": FORMAT_VERSION,
            "kind": self.kind,
            **self.answer,
            "count": len(self.guarantees),
            "guarantees": [one.to_builtins() for one in self.guarantees],
            **rest,
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the numbers themselves say that a reader must be told."""
        most: dict[tuple[float, Unit], int] = {}  # silos of other sizes are no reason to say it again
        for claim, about in zip(self.guarantees, self.about, strict=False):
            if about.units and math.isfinite(claim.epsilon) and claim.delta * about.units >= 1:
                key = (claim.delta, claim.neighbours.unit)
                most[key] = max(about.units, most.get(key, 0))
        return tuple(reveals_one(delta, units, unit).capitalize() for (delta, unit), units in most.items())

    def verify(self) -> None:
        """Compute every price again, and compare all fields that say the same.

        Raises:
            VerificationError: Something does not follow, or contradicts something else.
        """
        # What costs nothing comes first: a hostile statement should be refused before it is priced.
        if self.kind in _RELEASES:
            check_noise(self)
        if self.kind == "train":
            check_run(self)
        else:
            check_answer(self)
        check_signatures(self)
        # Silos of one run differ in the observer only: one price is enough.
        distinct: dict[Guarantee, int] = {}
        for number, claim in enumerate(self.guarantees, start=1):
            distinct.setdefault(msgspec.structs.replace(claim, observer=""), number)
        check_work_of_all(claim.event for claim in distinct)
        for claim, number in distinct.items():
            try:
                verify(claim)
            except VerificationError as error:
                raise VerificationError(f"{which(number, len(self.guarantees))}{error}") from error

    def check_files(self, folder: Path) -> dict[str, bool]:
        """Return whether each file that the statement names lies in a folder, with the stated content.

        Args:
            folder: Where the statement lies.

        Returns:
            By name: True for a file that is as it was, False for one that is not there.

        Raises:
            VerificationError: A file has another content.
        """
        found = {}
        for name, stated in self.digests.items():
            path = folder / name
            found[name] = path.is_file()
            try:
                if found[name] and digest_of(path) != stated:
                    raise VerificationError(
                        f"{name} is not the file that the statement is about: it was changed."
                    )
            except OSError as error:
                raise VerificationError(f"{name} cannot be read: {error.strerror}.") from error
        return found


_RELEASES = frozenset(
    {
        "train",
        "mean",
        "frequencies",
        "frequencies levels",
        "frequencies large",
        "frequencies tables",
        "vote release",
        "bandit run",
    }
)
"""Kinds that say what left, not what something would cost."""
COMMON = tuple(name for name in Statement.__struct_fields__ if name not in ("kind", "guarantees", "answer"))
"""Fields that a statement of any kind may have, beside its kind, its guarantees and their number."""
_OF_RUNS = ("about", "not_private", "notes")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, as `sha256sum` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
