"""What a shuffler knows of a run, what it holds of a round, and how it mixes; see `shuffling`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, RefusalError
from tacit.federation.drawn import DrawnStep, drawn_by_words
from tacit.federation.network.descriptor import Descriptor, RoundOrder, SignedDescriptor
from tacit.federation.network.draws import open_draw
from tacit.federation.network.keys import OpeningKey, SealingKey
from tacit.federation.network.parcels import ParcelForm, SealedBatch, parcel_form
from tacit.federation.network.roster import Roster
from tacit.federation.plan import Plan
from tacit.privacy import TrustModel

__all__ = ["MixedRun", "OpenRound"]

_LONGEST_WAIT: Final = 30 * 86_400.0
_DIGEST_BYTES: Final = {"query": 16, "run": 32}
_FORMS: Final = 256


class MixedRun:
    """A plan as the shuffler enforces it: what all of it says is checked against the shuffler's roster.

    Args:
        plan: Of shuffle trust.
        roster: Who takes part.

    Raises:
        ParameterError: The plan is of other trust, for another number of silos, or its price counts on more
            than they hold.
    """

    def __init__(self, plan: Plan, roster: Roster) -> None:
        if plan.trust is not TrustModel.SHUFFLE:
            raise ParameterError(f"the plan must be of shuffle trust, got {plan.trust.value}.")
        if plan.parties != len(roster.silos):
            raise ParameterError(
                f"the plan must be for the {len(roster.silos)} silos of the roster, got {plan.parties}."
            )
        plan.check_sizes(roster.sizes)
        plan.check_answers(roster.sizes)
        plan.check_honest(roster.sizes)
        self._plan, self._schedule, self._roster = plan, plan.schedule(), roster
        self._forms = lru_cache(maxsize=_FORMS)(
            lambda kind, size: parcel_form(self._schedule.steps[kind], size)
        )

    def enough(self, sizes: Sequence[int]) -> bool:
        """Whether parties of these sizes hide one another as the plan's price says."""
        if len(sizes) < self._plan.n_min:
            return False
        try:
            self._plan.check_honest(sizes)
        except ParameterError:
            return False
        return True

    def rows(self, step: int, sizes: Sequence[int]) -> int:
        """Return the units behind every mean of a step, by parties of these sizes."""
        batch = self._schedule.step(step).batch
        return sum(batch.size_for(n) for n in sizes)

    def drawn(self, step: int) -> DrawnStep | None:
        """Return a step whose parties are drawn; None where all are mixed."""
        found = self._schedule.step(step)
        return found if isinstance(found, DrawnStep) else None

    def form(self, step: int, size: int) -> ParcelForm:
        """Return the form of the parcel of a party of that size in a round."""
        return self._forms(self._schedule.kind(step), size)

    def forms(self, descriptor: Descriptor) -> dict[int, ParcelForm]:
        """Return the form of the parcel of every party of a round."""
        return {party: self.form(descriptor.step, n) for party, n in descriptor.circle.size_of.items()}

    def check_batch(self, batch: SealedBatch, descriptor: Descriptor) -> None:
        """Refuse numbers of a batch that no parties of the circle could have made together.

        Of parties of one size, and of all of a circle, every number follows from how many they are; else each
        is between those of the smallest and of the largest of so many parties.

        Args:
            batch: As the shuffler sent it.
            descriptor: Of the round.

        Raises:
            ParameterError: A number is another; the shuffler is wrong, or lies.
        """
        circle, step = descriptor.circle.size_of, self.drawn(descriptor.step)
        drawn = batch.came if step is None else step.drawn
        # Of those that join by themselves, any number may.
        fewest, most = (0, batch.came) if drawn is None else (drawn, drawn)
        if not self._plan.n_min <= batch.came <= len(circle) or not fewest <= batch.parties <= most:
            raise ParameterError(
                f"a batch of this round must be of {self._plan.n_min} to {len(circle)} silos that came and "
                f"of as many as the plan mixes, got {batch.came} and {batch.parties}."
            )
        forms = self.forms(descriptor)
        sent = np.array(
            [
                [self.rows(descriptor.step, [size]), *forms[party].sealed, *forms[party].symbols]
                for party, size in circle.items()
            ]
        )
        sent.sort(axis=0)
        low, high = sent[: batch.parties].sum(axis=0), sent[len(sent) - batch.parties :].sum(axis=0)
        said = (batch.rows, *batch.sealed, *batch.symbols)
        if len(said) != len(low) or not all(a <= n <= b for a, n, b in zip(low, said, high, strict=True)):
            raise ParameterError(
                f"a batch of {batch.parties} silos of this round cannot have the numbers of rows and "
                "messages that the shuffler says."
            )

    def describe(
        self, order: RoundOrder, *, active: set[int], session: bytes, draw: SealingKey
    ) -> Descriptor:
        """Return what is to be signed of a round.

        Args:
            order: By the server.
            active: Indices of silos whose keys count.
            session: The shuffler's identity.
            draw: Its key for words.

        Raises:
            ParameterError: Not a round of the plan, or a circle that the plan's price does not allow.
        """
        kind, parties = self._schedule.kind(order.step), order.parties
        if self._schedule.steps[kind].alone:
            raise ParameterError(f"step {order.step} is of one silo, which answers by itself.")
        for name, length in _DIGEST_BYTES.items():
            if len(getattr(order, name)) != length:
                raise ParameterError(f"{name} must have {length} bytes, got {len(getattr(order, name))}.")
        if not 0 < order.seconds <= _LONGEST_WAIT:
            raise ParameterError(f"seconds must be in (0, {_LONGEST_WAIT:g}], got {order.seconds!r}.")
        if not set(parties) <= active:
            raise ParameterError("parties must be silos of the roster whose keys count.")
        if 0 < order.accounts.count(None) < len(order.accounts):
            raise ParameterError("accounts must be of all parties or of none: either all keep ledgers.")
        sizes = tuple(self._roster.sizes[party] for party in parties)
        if not self.enough(sizes):
            raise ParameterError(
                f"parties must be at least {self._plan.n_min}, with the honest rows of the plan, "
                f"got {len(parties)}."
            )
        descriptor = Descriptor(
            federation=self._roster.federation,
            run=order.run,
            step=order.step,
            query=order.query,
            parties=parties,
            sizes=sizes,
            accounts=order.accounts,
            session=session,
            seal=self._roster.sealing_key.raw,
            n_min=self._plan.n_min,
            seconds=order.seconds,
            blob_bytes=self._forms(kind, sizes[0]).blob_bytes,
            draw=b"" if self.drawn(order.step) is None else draw.raw,
        )
        try:
            ParcelForm.total(self.forms(descriptor).values())
        except RefusalError as error:  # indices that are not increasing
            raise ParameterError(str(error)) from error
        return descriptor


@dataclass
class OpenRound:
    """A round that waits for parcels: the only place that knows who sent which.

    Attributes:
        signed: What was signed of it.
        run: The run.
        draw: The shuffler's key for words.
        forms: Of the parcels, by party.
        until: When it is over, by the shuffler's clock.
        parcels: What came, by party.
        words: By which those who sent are drawn, by party; none where all are mixed.
    """

    signed: SignedDescriptor
    run: MixedRun
    draw: OpeningKey
    forms: dict[int, ParcelForm]
    until: float
    parcels: dict[int, bytearray] = field(default_factory=dict)
    words: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, signed: SignedDescriptor, run: MixedRun, now: float, *, draw: OpeningKey) -> Self:
        """Return a round that nobody has sent to."""
        about = signed.descriptor
        return cls(signed, run, draw, run.forms(about), now + about.seconds)

    @property
    def descriptor(self) -> Descriptor:
        """What is said of it."""
        return self.signed.descriptor

    def take(self, party: int, parcel: bytearray) -> None:
        """Take the parcel of a party, which has its length.

        Raises:
            AuthenticationError: The word in it is not its own, for this round.
        """
        form = self.forms[party]
        if form.draws:
            sealed = bytes(parcel[form.sums_end :])
            self.words[party] = open_draw(sealed, party=party, info=self.signed.info, key=self.draw)
        self.parcels[party] = parcel

    @property
    def whole(self) -> bool:
        """Whether all of the circle have sent."""
        return len(self.parcels) == len(self.forms)

    @property
    def size(self) -> int:
        """Bytes of all parcels."""
        return sum(form.size for form in self.forms.values())

    def mixed(self, rng: np.random.Generator) -> SealedBatch | None:
        """Return the batch of those that came, or were drawn of them; None where too few came.

        Sealed messages are permuted, masked counts added up modulo 2**64.
        """
        came, size_of = sorted(self.parcels), self.descriptor.circle.size_of
        if not self.run.enough([size_of[party] for party in came]):
            return None
        step = self.run.drawn(self.descriptor.step)
        mixed = came if step is None else drawn_by_words(step, self.words)
        first = self.forms[came[0]]
        nothing = ParcelForm(first.slots, (0,) * len(first.slots), (0,) * len(first.slots))
        of_all = ParcelForm.total([nothing, *(self.forms[party] for party in mixed)])
        sealed: list[npt.NDArray[np.uint8]] = [np.empty((0, first.blob_bytes), dtype=np.uint8)]
        sums = np.zeros(of_all.words, dtype="<u8")
        for party in mixed:
            form, octets = self.forms[party], np.frombuffer(self.parcels[party], dtype=np.uint8)
            sealed.append(octets[: form.sums_at].reshape(form.blobs, form.blob_bytes))
            sums += octets[form.sums_at : form.sums_end].view("<u8")
        return SealedBatch(
            rows=self.run.rows(self.descriptor.step, [size_of[party] for party in mixed]),
            parties=len(mixed),
            came=len(came),
            sealed=of_all.sealed,
            symbols=of_all.symbols,
            body=_permuted(sealed, rng) + sums.tobytes(),
        )

    def erase(self) -> None:
        """Overwrite what tells who sent what, and let go of it."""
        for parcel in self.parcels.values():
            parcel[:] = bytes(len(parcel))
        self.parcels.clear()
        self.words.clear()


def _permuted(sealed: list[npt.NDArray[np.uint8]], rng: np.random.Generator) -> bytes:
    """Return all sealed messages in an order that is uniform; what would tell it is overwritten."""
    in_order = np.concatenate(sealed)
    order = rng.permutation(len(in_order))
    mixed = in_order[order].tobytes()
    in_order.fill(0)
    order.fill(0)
    return mixed
