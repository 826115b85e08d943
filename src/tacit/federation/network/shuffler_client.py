"""How silos and the server reach a shuffler: over HTTPS, or the one in this process."""

from __future__ import annotations

import base64
import hashlib
import ssl
import time
from typing import Any, Final, Protocol, Self
from urllib.parse import quote

import httpx
import msgspec

from tacit.errors import DataError, TacitError
from tacit.federation.network.descriptor import (
    RoundOrder,
    RunOrder,
    SignedDescriptor,
    about_digest,
    about_order,
    about_upload,
)
from tacit.federation.network.faults import Fault, Refusal, RoundError
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.parcels import SealedBatch
from tacit.federation.network.shuffling import Shuffling

__all__ = ["LocalShuffler", "RemoteShuffler", "ShufflerDoor", "ShufflerDownError"]

_LONGEST_REPLY: Final = 2**30
_LONGEST_POLL: Final = 20.0
_PAUSES: Final = (0.05, 0.1, 0.2, 0.5, 1.0)


class ShufflerDownError(TacitError, ConnectionError):
    """The shuffler cannot be reached in time."""


class ShufflerDoor(Protocol):
    """What a party can have done at a shuffler; `RemoteShuffler` and `LocalShuffler` are such doors.

    All raise RoundError where the shuffler refuses, and ShufflerDownError where it cannot be reached.
    """

    def open_run(self, order: RunOrder, *, key: SigningKey, deadline: float = ...) -> None:
        """Make the shuffler ready for a run, as the server.

        Args:
            order: Plan and name of the run.
            key: The server's.
            deadline: Seconds to keep trying.
        """
        ...

    def open_round(self, order: RoundOrder, *, key: SigningKey, deadline: float = ...) -> SignedDescriptor:
        """Have a round described and signed, as the server; arguments as for `open_run`."""
        ...

    def batch(self, round_id: str, *, key: SigningKey, deadline: float) -> SealedBatch:
        """Wait for the batch of a round, as the server.

        Args:
            round_id: `SignedDescriptor.round_id`.
            key: The server's.
            deadline: Seconds to wait.

        Raises:
            RoundError: With the fault WAITING, not there in time, and GIVEN_UP, never: `report` says who is
                missing. Of a round that waits, who is missing has to be asked again: a shuffler that was
                started anew has forgotten what came, and what silos have stored is free.
        """
        ...

    def upload(
        self, round_id: str, parcel: bytes, *, silo: str, key: SigningKey, deadline: float = ...
    ) -> bool:
        """Bring a parcel, as a silo.

        Args:
            round_id: `SignedDescriptor.round_id`.
            parcel: What `make_parcel` returned.
            silo: Name of the silo.
            key: The silo's.
            deadline: Seconds to keep trying.

        Returns:
            Whether it is the one that counts. False: another parcel of this silo had come before, made of the
            same stored answer, and stays; a silo that started anew sees that, and has nothing more to do.
        """
        ...


class LocalShuffler:
    """The door of a shuffler in this process, for simulations and tests.

    Args:
        shuffling: The shuffler.
    """

    def __init__(self, shuffling: Shuffling) -> None:
        self.shuffling = shuffling

    def open_run(self, order: RunOrder, *, key: SigningKey, deadline: float = 0.0) -> None:  # noqa: ARG002
        """Make the shuffler ready for a run."""
        body = msgspec.msgpack.encode(order)
        self.shuffling.open_run(body, key.sign("order", about_order("run", body)))

    def open_round(self, order: RoundOrder, *, key: SigningKey, deadline: float = 0.0) -> SignedDescriptor:  # noqa: ARG002
        """Have a round described and signed."""
        body = msgspec.msgpack.encode(order)
        return SignedDescriptor.from_bytes(
            self.shuffling.open_round(body, key.sign("order", about_order("round", body)))
        )

    def batch(self, round_id: str, *, key: SigningKey, deadline: float) -> SealedBatch:
        """Wait for the batch of a round."""
        signature, until = key.sign("order", about_order(f"batch {round_id}")), time.monotonic() + deadline
        while True:
            try:
                return SealedBatch.from_bytes(self.shuffling.batch(round_id, signature))
            except RoundError as error:
                if error.fault is not Fault.WAITING or time.monotonic() >= until:
                    raise
            time.sleep(_PAUSES[0])

    def upload(
        self,
        round_id: str,
        parcel: bytes,
        *,
        silo: str,
        key: SigningKey,
        deadline: float = 0.0,  # noqa: ARG002
    ) -> bool:
        """Bring a parcel."""
        try:
            self.shuffling.take(round_id, silo, parcel, key.sign("upload", about_upload(round_id, parcel)))
        except RoundError as error:
            if error.fault is not Fault.QUOTA:
                raise
            return False
        return True


class RemoteShuffler:
    """The door of a shuffler on another machine.

    Whatever is repeated changes nothing there, so all requests are tried again, with growing pauses, until
    the deadline: a shuffler that is started anew is waited for.

    Args:
        url: "https://host[:port]".
        trust: Whose certificates are believed: the federation's own authority.
        client: Instead of both, for tests.
    """

    def __init__(
        self, url: str, *, trust: ssl.SSLContext | None = None, client: httpx.Client | None = None
    ) -> None:
        if client is None:
            verify = ssl.create_default_context() if trust is None else trust
            client = httpx.Client(base_url=url, verify=verify, trust_env=False, timeout=httpx.Timeout(10.0))
        self._client, self._url = client, url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def open_run(self, order: RunOrder, *, key: SigningKey, deadline: float = 30.0) -> None:
        """Make the shuffler ready for a run."""
        body = msgspec.msgpack.encode(order)
        signed = _signed(key.sign("order", about_order("run", body)))
        self._ask("POST", "/runs", deadline=deadline, content=body, headers=signed)

    def open_round(self, order: RoundOrder, *, key: SigningKey, deadline: float = 30.0) -> SignedDescriptor:
        """Have a round described and signed."""
        body = msgspec.msgpack.encode(order)
        signed = _signed(key.sign("order", about_order("round", body)))
        return SignedDescriptor.from_bytes(
            self._ask("POST", "/rounds", deadline=deadline, content=body, headers=signed)
        )

    def batch(self, round_id: str, *, key: SigningKey, deadline: float) -> SealedBatch:
        """Wait for the batch of a round."""
        signed = _signed(key.sign("order", about_order(f"batch {round_id}")))
        until = time.monotonic() + deadline
        while True:
            left = max(0.0, until - time.monotonic())
            poll = min(left, _LONGEST_POLL)
            try:
                found = self._ask(
                    "GET",
                    f"/rounds/{round_id}/batch",
                    deadline=left,
                    params={"wait": f"{poll:.3f}"},
                    headers=signed,
                    timeout=httpx.Timeout(10.0, read=poll + 10.0),
                )
                return SealedBatch.from_bytes(found)
            except RoundError as error:
                if error.fault is not Fault.WAITING or time.monotonic() >= until:
                    raise

    def upload(
        self, round_id: str, parcel: bytes, *, silo: str, key: SigningKey, deadline: float = 30.0
    ) -> bool:
        """Bring a parcel."""
        digest = hashlib.sha256(parcel).digest()
        signed = _signed(key.sign("upload", about_digest(round_id, digest)))
        signed |= {"tacit-silo": quote(silo, safe=""), "tacit-digest": digest.hex()}
        path = f"/rounds/{round_id}/parcel"
        try:
            self._ask("POST", path, deadline=deadline, content=parcel, headers=signed)
        except RoundError as error:
            if error.fault is not Fault.QUOTA:
                raise
            return False
        return True

    def _ask(self, method: str, path: str, *, deadline: float, **fields: Any) -> bytes:
        """Send a request until it is answered, or the deadline has passed."""
        until, pauses = time.monotonic() + deadline, iter(_PAUSES)
        while True:
            why = "no answer"
            try:
                with self._client.stream(method, path, **fields) as reply:
                    if reply.status_code < 500:
                        return _content(reply)
                    why = f"status {reply.status_code}"
            except (httpx.TransportError, ssl.SSLError) as error:
                why = type(error).__name__
            pause = next(pauses, _PAUSES[-1])
            if time.monotonic() + pause >= until:
                raise ShufflerDownError(f"the shuffler at {self._url} cannot be reached: {why}.")
            time.sleep(pause)


def _content(reply: httpx.Response) -> bytes:
    """Return what a reply holds, or raise what it says."""
    content = bytearray()
    for part in reply.iter_bytes():
        content += part
        if len(content) > _LONGEST_REPLY:
            raise DataError(f"a shuffler's reply must have at most {_LONGEST_REPLY} bytes.")
    if reply.status_code == httpx.codes.OK:
        return bytes(content)
    try:
        said = msgspec.json.decode(content, type=Refusal)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DataError(
            f"what answers at the shuffler's address is none: status {reply.status_code}."
        ) from None
    raise RoundError(said.fault, said.message, said.report)


def _signed(signature: bytes) -> dict[str, str]:
    """Return the header in which a signature travels."""
    return {"tacit-signature": base64.b64encode(signature).decode()}
