"""A silo's answer under shuffle trust: sealed for the server, and handed to the shuffler."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation.answers import binding, digest_of_run
from tacit.federation.circle import CircleError
from tacit.federation.network.bodies import RefusalCode, WireError
from tacit.federation.network.descriptor import SignedDescriptor, check_descriptor
from tacit.federation.network.keys import SealingKey, SigningKey
from tacit.federation.network.parcels import ParcelForm, make_parcel, parcel_form
from tacit.federation.network.roster import Roster
from tacit.federation.network.silo_refusals import words_of
from tacit.federation.plan import Plan
from tacit.federation.query import Query
from tacit.federation.silo import Silo
from tacit.federation.steps import AnyStep

if TYPE_CHECKING:
    from tacit.federation.network.shuffler_client import ShufflerDoor

__all__ = ["Uploads"]


_DEADLINE: Final = 20.0
"""Seconds to keep trying: the server asks again, and what is stored is sent again."""


class Uploads:
    """Sends answers of one silo to the shuffler.

    Args:
        silo: Whose answers.
        roster: Of the federation.
        key: The silo's.
        door: Of the shuffler; None for a silo that knows none.
    """

    def __init__(self, silo: Silo, *, roster: Roster, key: SigningKey, door: ShufflerDoor | None) -> None:
        self._silo, self._roster, self._key, self._door = silo, roster, key, door

    def send(
        self,
        data: bytes,
        query: Query,
        *,
        plan: Plan,
        run: str,
        party: int,
        leaving: Callable[[SignedDescriptor], None],
    ) -> SignedDescriptor:
        """Answer a query for the circle of a descriptor, and upload the answer.

        Args:
            data: The signed descriptor, as it came with the query.
            query: What is asked.
            plan: The accepted plan.
            run: Name of the run.
            party: Index of the silo.
            leaving: Called when the answer is stored, before a byte of it leaves.

        Raises:
            CircleError: A descriptor that is not the shuffler's, or about another round or other parties.
            RefusalError: As `Silo.answer`.
            WireError: The shuffler does not take the parcel. The answer is stored, and sent when it is asked
                for again.
        """
        try:
            signed = check_descriptor(
                data, roster=self._roster, plan=plan, run=run, query=query, name=self._silo.name
            )
            circle = signed.descriptor.circle
        except (AuthenticationError, RefusalError, ParameterError) as error:
            raise CircleError(str(error)) from error
        schedule = plan.schedule()
        form = _form(schedule.step(query.step), self._silo.size)
        if form.blob_bytes != signed.descriptor.blob_bytes:
            raise CircleError("the descriptor has messages of another length than the plan.")
        answer = self._silo.answer(query, circle)
        # Sealed anew every time; of two parcels of one stored answer, the shuffler keeps the first.
        parcel = make_parcel(
            answer,
            form=form,
            party=party,
            bound=binding(query, circle, digest_of_run(plan, run)),
            info=signed.info,
            key=self._roster.sealing_key,
            draw=SealingKey(signed.descriptor.draw) if form.draws else None,
        )
        leaving(signed)
        self._upload(signed, parcel)
        return signed

    def _upload(self, signed: SignedDescriptor, parcel: bytes) -> None:
        """Bring a parcel to the shuffler, within a bounded time."""
        if self._door is None:
            raise WireError(RefusalCode.SHUFFLER, "the silo knows no shuffler.")
        try:
            self._door.upload(
                signed.round_id, parcel, silo=self._silo.name, key=self._key, deadline=_DEADLINE
            )
        except Exception as error:
            step = signed.descriptor.step
            why = f"the shuffler did not take the parcel of step {step}: {words_of(error)}"
            raise WireError(RefusalCode.SHUFFLER, why) from error


@lru_cache(maxsize=64)
def _form(step: AnyStep, size: int) -> ParcelForm:
    """Return the form of parcels, which takes as long as an answer."""
    return parcel_form(step, size)
