"""What masks cost whose sums open without parties that drop out, beside masks that open all or nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation.masking.complete import CompleteMasks
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.opening import RecoverableSums
from tacit.federation.masking.quorum import Quorum
from tacit.federation.masking.recoverable import RecoverableMasks
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.network.keys import SigningKey
from tacit.federation.store import MemorySecrets

QUERY = b"the query"


class Lab:
    """All parties of a run, who reply to a server; what they replied is played back when it is timed."""

    def __init__(self, parties: int, dim: int, width: int, block: int) -> None:
        self.parties, self.dim, self.width, self.block = parties, dim, width, block
        self.keys = [SigningKey.make() for _ in range(parties)]
        names = tuple(f"silo-{k}" for k in range(parties))
        roster = MaskingRoster(names, tuple(key.public.raw for key in self.keys))
        self.context = MaskContext(roster, b"plan", "bench")
        self.quorum = Quorum(parties, 2 * parties // 3 + 1, parties // 3)
        self.masks = [self.started(k, MemorySecrets()) for k in range(parties)]
        half = 2 ** (width - 1)
        rng = np.random.default_rng(0)
        self.vectors = [rng.integers(-half, half, dim, dtype=np.int64) for _ in range(parties)]
        self.replies: dict[str, dict[int, bytes]] = {}

    def started(self, party: int, secrets: MemorySecrets) -> RecoverableMasks:
        key, block = self.keys[party], self.block
        return RecoverableMasks(self.context, key, secrets, quorum=self.quorum, rounds=block, block=block)

    def server(self) -> RecoverableSums:
        return RecoverableSums(
            self.context,
            quorum=self.quorum,
            rounds=self.block,
            width=lambda _: self.width,
            block=self.block,
        )

    def exchange(self, stage: str, requests: Mapping[int, bytes]) -> dict[int, bytes]:
        self.replies[stage] = {k: self.masks[k].respond(stage, data) for k, data in requests.items()}
        return self.replies[stage]

    def again(self, stage: str, requests: Mapping[int, bytes]) -> dict[int, bytes]:
        return {k: self.replies[stage][k] for k in requests}


def _complete(lab: Lab) -> tuple[float, float]:
    """Seconds of a party's set-up, and of one of its vectors, of masks that open all or nothing."""
    masks = [CompleteMasks(lab.context, key, MemorySecrets()) for key in lab.keys]
    cards = [party.advertise() for party in masks]

    def set_up() -> None:
        party = CompleteMasks(lab.context, lab.keys[0], first)
        party.advertise()
        party.agree(cards)

    first = MemorySecrets()
    cards[0] = CompleteMasks(lab.context, lab.keys[0], first).advertise()
    setting_up = best_seconds(set_up, 5)
    party = CompleteMasks(lab.context, lab.keys[0], first)
    return setting_up, best_seconds(lambda: party.mask(0, QUERY, lab.vectors[0], lab.width), 5)


def _recoverable(smoke: bool, *, parties: int, dim: int, width: int) -> dict[str, float]:
    parties, dim = (4, 65) if smoke else (parties, dim)
    lab = Lab(parties, dim, width, block=2 if smoke else 8)
    server = lab.server()
    if not server.prepare(0, lab.exchange):
        raise RuntimeError("no block was set up")
    fresh = [lab.started(0, MemorySecrets()) for _ in range(3)]

    def share() -> None:
        party = fresh.pop()
        cards = {k: masks.advertise(0) for k, masks in enumerate(lab.masks) if k}
        party.share(0, {0: party.advertise(0), **cards})

    sharing = best_seconds(share, 3) / lab.block
    masking = best_seconds(lambda: lab.masks[0].mask(0, QUERY, lab.vectors[0], width), 5)
    answers = {k: lab.masks[k].mask(0, QUERY, lab.vectors[k], width) for k in range(1, parties)}
    opened = server.open(0, QUERY, answers, lab.exchange)  # party 0 has dropped out
    opening = best_seconds(lambda: server.open(0, QUERY, answers, lab.again), 3)
    total = sum(lab.vectors[k] for k in range(1, parties))
    if opened is None or np.any((opened[0] - total) % 2**width):
        raise RuntimeError("the sum is wrong")
    setting_up, complete = _complete(lab)
    sent = {stage: max(map(len, replies.values())) for stage, replies in lab.replies.items()}
    return {
        "parties": parties,
        "dim": dim,
        "width": width,
        "block": lab.block,
        "share_seconds": sharing,
        "mask_seconds": masking,
        "open_seconds": opening,
        "complete_set_up_seconds": setting_up,
        "complete_mask_seconds": complete,
        "ratio_mask": masking / complete,
        "ratio_step": (sharing + masking) / complete,
        "bytes_up": (sent["advertise"] + sent["share"]) / lab.block + sent["sign"] + sent["reveal"],
    }


def _say(m: dict[str, float]) -> str:
    return (
        f"{m['parties']:.0f} parties, {m['dim']:,.0f} coordinates of {m['width']:.0f} bits: a party shares "
        f"in {1e3 * m['share_seconds']:.2f} ms a step and masks in {1e3 * m['mask_seconds']:.2f} ms, "
        f"{m['ratio_step']:.1f} x and {m['ratio_mask']:.2f} x a complete mask of "
        f"{1e3 * m['complete_mask_seconds']:.2f} ms; the server opens a sum without one party in "
        f"{1e3 * m['open_seconds']:.1f} ms; {m['bytes_up'] / 1e3:.1f} kB up beside a vector"
    )


CASES = (
    Case(
        "recoverable/25-parties",
        "drop-outs cost a few milliseconds, and some exchanges",
        lambda smoke: _recoverable(smoke, parties=25, dim=785, width=22),
        _say,
    ),
    Case(
        "recoverable/100-parties",
        "likewise with four times as many pairs a party",
        lambda smoke: _recoverable(smoke, parties=100, dim=10**4, width=24),
        _say,
    ),
)
