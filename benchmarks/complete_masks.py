"""What all-or-nothing masks cost a party: set-up once a run, one vector a step; and the sum."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation.masking.complete import CompleteMasks, CompleteSums
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.masking.streams import centred, stream_words
from tacit.federation.network.keys import SigningKey
from tacit.federation.store import MemorySecrets

QUERY = b"the query"


def _masks(smoke: bool, *, parties: int, dim: int, width: int) -> dict[str, float]:
    parties, dim, repeats = (4, 65, 1) if smoke else (parties, dim, 7)
    keys = [SigningKey.make() for _ in range(parties)]
    names = tuple(f"silo-{k}" for k in range(parties))
    context = MaskContext(MaskingRoster(names, tuple(key.public.raw for key in keys)), b"plan", "bench")
    masks = [CompleteMasks(context, key, MemorySecrets()) for key in keys]
    cards = [party.advertise() for party in masks]

    def set_up() -> None:
        party = CompleteMasks(context, keys[0], MemorySecrets())
        party.agree([party.advertise(), *cards[1:]])

    setting_up = best_seconds(set_up, repeats)
    half, rng = 2 ** (width - 1), np.random.default_rng(0)
    vectors = [rng.integers(-half, half, dim, dtype=np.int64) for _ in range(parties)]
    few = list(range(parties))[: 4 if smoke else 1]
    for k in few:
        masks[k].agree(cards)
    masking = best_seconds(lambda: masks[0].mask(0, QUERY, vectors[0], width), repeats)

    def streams_alone() -> None:  # what no way to mask can do without
        for _ in range(parties - 1):
            stream_words(bytes(32), dim, width)

    streams = best_seconds(streams_alone, repeats)
    server = CompleteSums(parties)
    # Any vectors take as long to add; in smoke they are masked, and the sum is checked.
    answers = dict(enumerate(vectors)) | {k: masks[k].mask(1, QUERY, vectors[k], width) for k in few}
    opening = best_seconds(lambda: server.open(1, QUERY, answers, lambda _, data: dict(data)), repeats)
    if smoke:
        opened = server.open(1, QUERY, answers, lambda _, data: dict(data))
        total = centred(np.sum(vectors, axis=0).view(np.uint64), width)
        if opened is None or np.any(centred(opened[0].view(np.uint64), width) != total):
            raise RuntimeError("the sum is wrong")
    return {
        "parties": parties,
        "dim": dim,
        "width": width,
        "set_up_seconds": setting_up,
        "mask_seconds": masking,
        "stream_seconds": streams,
        "open_seconds": opening,
        "ratio": masking / streams,
    }


def _say(m: dict[str, float]) -> str:
    return (
        f"{m['parties']:,.0f} parties, {m['dim']:,.0f} coordinates of {m['width']:.0f} bits: a party masks "
        f"in {1e3 * m['mask_seconds']:.2f} ms a step, {m['ratio']:.2f} x its bare streams, after "
        f"{1e3 * m['set_up_seconds']:.1f} ms once a run; the server adds in {1e3 * m['open_seconds']:.2f} ms"
    )


CASES = (
    Case(
        "complete-masks/25-parties",
        "hiding a message takes less than a millisecond",
        lambda smoke: _masks(smoke, parties=25, dim=785, width=23),
        _say,
    ),
    Case(
        "complete-masks/100-parties",
        "at most 10 ms a step for 10,000 coordinates",
        lambda smoke: _masks(smoke, parties=100, dim=10**4, width=22),
        _say,
    ),
    Case(
        "complete-masks/1000-parties",
        "likewise with ten times as many pairs",
        lambda smoke: _masks(smoke, parties=1000, dim=785, width=23),
        _say,
    ),
)
