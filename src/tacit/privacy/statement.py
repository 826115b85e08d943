"""Statements: the guarantees of a run or an answer in their one form, with all that is needed to check them.

Every command that prices something writes a `Statement`, and `tacit account verify` reads all of them:
unknown fields, contradictions and changed files are refused. What this shows is that the numbers follow from
the events; that the events are what ran is the word of whoever hands the statement out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tacit.errors import ParameterError, VerificationError
from tacit.privacy.events import Event, Gaussian, Laplace, parts_of
from tacit.privacy.guarantee import CONTINUOUS, FORMAT_VERSION, Guarantee, verify
from tacit.privacy.neighbours import Unit

__all__ = ["FIELDS", "KINDS", "About", "DataFacts", "NotPrivate", "Statement", "digest_of", "which"]

_PRICE = frozenset({"epsilon", "delta", "method"})
_ROUNDS = _PRICE | {"rounds", "sample_rate", "neighbours"}

KINDS: dict[str, frozenset[str]] = {
    "guarantee": frozenset(),
    "train": frozenset(),
    "mean": frozenset(
        {"table", "n", "columns", "mean", "noise_std", "confidence", "confidence_interval"}
        | {"epsilon", "delta", "trust", "simulated", "guarantee"}
    ),
    "vote release": frozenset(
        {"out", "queries", "teachers", "method", "epsilon", "delta", "simulated", "guarantee"}
    ),
    "account epsilon": _ROUNDS | {"noise_multiplier", "mechanism"},
    "account subsample": _ROUNDS | {"release", "epsilon_per_round", "epsilon_without_sampling"},
    "account shuffle": _PRICE
    | {"local_epsilon", "n", "parties_per_round", "mechanism", "messages", "rounds", "sample_rate"}
    | {"seconds", "plot"},
    "account iterate": _PRICE
    | {"noise_multiplier", "n", "epochs", "private", "release", "order", "worst_case_order"}
    | {"step_times_smoothness", "loss"},
    "account compose": _PRICE | {"neighbours", "releases"},
    "account calibrate": _ROUNDS
    | {"noise_multiplier", "local_epsilon", "budget_epsilon", "trust", "n", "mechanism"},
}
"""What a statement of each kind holds beside the fields that all have: facts of the answer."""


class About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom one guarantee is about.

    Attributes:
        trust: Who is trusted, "local", "central" or "shuffle".
        silo: Whose records; None for all silos together.
        units: How many protected units, where that number is public.
    """

    trust: str
    silo: str | None = None
    units: int | None = None


class NotPrivate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was computed without privacy beside it."""

    trust: str
    sentence: str


class DataFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is public about the data.

    Attributes:
        name: Of the file or data set.
        public: Whether anybody may see the data anyway.
        silos: How many silos.
        unit: What is protected, "record", "person" or "party".
        sizes: Units of each silo, by its name; None where that number is not public.
    """

    name: str
    public: bool
    silos: int
    unit: Unit
    sizes: dict[str, int | None]


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
        not_private: What was computed without privacy beside it.
        data: What is public about the data.
        notes: Whole sentences that must be known besides.
        digests: SHA-256 of the files that belong to the statement, in hexadecimal, by the name of the file.
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
    not_private: tuple[NotPrivate, ...] = ()
    data: DataFacts | None = None
    notes: tuple[str, ...] = ()
    digests: dict[str, str] = {}
    answer: dict[str, Any] = {}

    def to_builtins(self) -> dict[str, Any]:
        """Return what JSON can hold; fields that are empty are left out, but for the number of guarantees.

        Raises:
            ParameterError: A fact that statements of this kind do not have: it could not be read again.
        """
        if unknown := set(self.answer) - KINDS[self.kind]:
            raise ParameterError(f"a statement of kind {self.kind!r} has no field {min(unknown)!r}.")
        rest = {
            name: msgspec.to_builtins(value)
            for name in FIELDS
            if (value := getattr(self, name)) or (self.kind == "train" and name in _OF_RUNS)
        }
        notes = [*self.notes, *(said for said in self.warnings if said not in self.notes)]
        return {
            "version": FORMAT_VERSION,
            "kind": self.kind,
            **self.answer,
            "count": len(self.guarantees),
            "guarantees": [one.to_builtins() for one in self.guarantees],
            **rest,
            **({"notes": notes} if notes or self.kind == "train" else {}),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the numbers themselves say that a reader must be told."""
        found = []
        for claim, about in zip(self.guarantees, self.about, strict=False):
            if about.units and math.isfinite(claim.epsilon) and claim.delta * about.units >= 1:
                found.append(
                    f"Delta {claim.delta!r} is not below 1 / {about.units:,}, one over the number of "
                    f"{claim.neighbours.unit.plural}: a release that shows one of them in full, picked at "
                    "random, would meet it."
                )
        return tuple(dict.fromkeys(found))

    def verify(self) -> None:
        """Compute every price again, and compare all fields that say the same.

        Raises:
            VerificationError: Something does not follow, or contradicts something else.
        """
        # What costs nothing comes first: a hostile statement should be refused before it is priced.
        if self.kind in _RELEASES:
            _check_noise(self)
        if self.kind == "train":
            _check_run(self)
        else:
            _check_answer(self)
        priced = set()
        for number, claim in enumerate(self.guarantees, start=1):
            # Silos of one run differ in the observer only: one price is enough.
            same = msgspec.structs.replace(claim, observer="")
            if same in priced:
                continue
            try:
                verify(claim)
            except VerificationError as error:
                raise VerificationError(f"{which(number, len(self.guarantees))}{error}") from error
            priced.add(same)

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


_RELEASES = frozenset({"train", "mean", "vote release"})
"""Kinds that say what left, not what something would cost."""
FIELDS = ("about", "run", "created", "tacit", "released", "algorithm", "not_private", "data", "digests")
"""Fields that a statement may have beside its kind, guarantees, their number, notes and facts."""
_OF_RUNS = ("about", "not_private")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, as `sha256sum` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def which(number: int, count: int) -> str:
    """Say which of several guarantees an error is about."""
    return f"guarantee {number} of {count}: " if count > 1 else ""


def _check_noise(found: Statement) -> None:
    """Refuse noise of real numbers, drawn by a computer, without a word on floating point."""
    for number, claim in enumerate(found.guarantees, start=1):
        if not claim.simulated and _is_continuous(claim.event) and CONTINUOUS not in claim.assumptions:
            where = which(number, len(found.guarantees))
            raise VerificationError(f"{where}the statement leaves out what its price rests on: {CONTINUOUS}.")


def _is_continuous(event: Event) -> bool:
    """Return whether an event holds a law of real numbers that a float sampler only comes close to."""
    return isinstance(event, Gaussian | Laplace) or any(map(_is_continuous, parts_of(event)))


def _check_run(run: Statement) -> None:
    """Refuse a run whose parts contradict each other, such as a silo of the data without a guarantee."""
    data = run.data
    if data is None or run.released is None:
        raise VerificationError("the statement of a run must have the fields `data` and `released`.")
    if data.silos != len(data.sizes):
        raise VerificationError(f"data names {data.silos} silos and the sizes of {len(data.sizes)}.")
    open_ones = [one.trust for one in run.not_private]
    trusts = list(dict.fromkeys(about.trust for about in run.about))
    if len({*trusts, *open_ones}) != len(trusts) + len(open_ones) or not trusts + open_ones:
        raise VerificationError("every trust model must be either among the guarantees or in `not_private`.")
    if run.released not in trusts + open_ones:
        raise VerificationError(
            f"the released model {run.released!r} is in no guarantee and not in `not_private`."
        )
    for trust in trusts:
        _check_silos(trust, [about for about in run.about if about.trust == trust], data.sizes)
    for number, (claim, about) in enumerate(zip(run.guarantees, run.about, strict=True), start=1):
        where = which(number, len(run.guarantees))
        if claim.neighbours.unit is not data.unit:
            raise VerificationError(
                f"{where}it is about {claim.neighbours}, the data about a {data.unit.value}."
            )
        named = about.silo is None or any(f in claim.observer for f in (repr(about.silo), f"'{about.silo}'"))
        if not named:
            raise VerificationError(
                f"{where}its observer does not name silo {about.silo!r}, whom it is about."
            )


def _check_silos(trust: str, about: list[About], sizes: Mapping[str, int | None]) -> None:
    """Refuse guarantees of one trust model that leave a silo out, or give it another size."""
    known = [size for size in sizes.values() if size is not None]
    whole = {None: sum(known) if len(known) == len(sizes) else None}
    stated = {one.silo: one.units for one in about}
    if len(stated) == len(about) and stated in (whole, dict(sizes)):
        return
    left_out = sorted(set(sizes) - {one.silo for one in about if one.silo is not None})
    what = f"silo {left_out[0]!r} is missing" if left_out else "a silo comes twice, or with another size"
    raise VerificationError(
        f"the guarantees of trust {trust!r} must be about all {len(sizes)} silos of the data: {what}."
    )


def _check_answer(found: Statement) -> None:
    """Refuse facts at the top that are not those of the first guarantee."""
    first, answer = found.guarantees[0], found.answer
    about = found.about[0] if found.about else None
    wanted: dict[str, object] = {
        "epsilon": first.epsilon if math.isfinite(first.epsilon) else None,
        "delta": first.delta,
        "method": first.method,
        "simulated": first.simulated,
        "guarantee": str(first),
        "neighbours": first.neighbours.relation.value,
    }
    if found.kind == "vote release":
        del wanted["method"]  # there it is that of the design
    if about is not None:
        wanted |= {"n": about.units, "trust": about.trust}
    for name, value in wanted.items():
        stated = answer.get(name, value)
        if stated != value or isinstance(stated, bool) != isinstance(value, bool):
            raise VerificationError(
                f"it says {name} {stated!r:.80} at the top, but {value!r:.80} in its guarantee: one of them "
                "was changed."
            )
