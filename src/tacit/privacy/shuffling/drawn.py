"""Rounds in which a secret part of all parties sends messages: drawn by the shuffler, or by themselves.

What a round shows is a mixture over what is visible of the draw, of releases on samples whose members are
hidden. Source: Girgis (2023), Sections 4.3, 4.4 and Appendix C (docs/theory/shuffling.md, section 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from tacit.errors import LARGEST_COUNT, check_count, check_probability
from tacit.privacy.events import ByChance, Drawn, Event, Sampled, SelfDrawn

__all__ = ["drawn_round", "self_drawn_round"]

_COARSE = (-8.0, -5.0, -3.0, -1.5, -0.5, 0.5, 1.5, 3.0, 6.0)
_FINE = (-8.0, -6.5, -5.0, -4.0, -3.0, -2.25, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.25, 3.0, 4.0, 6.0)
"""Where numbers of parties are cut into groups, in standard deviations from their mean."""

_FAR = (30.0, 150.0)
"""The same for what is rare: beyond them there is next to nothing, however few parties join."""

_RAREST = 1e-300
"""Least probability of a group."""

_FEW = 2000
"""Parties that join on average, below which deviations are so large that groups are to be narrow."""


def drawn_round(
    once: Callable[[int], Event],
    *,
    clients: int,
    drawn: int,
    records: int = 1,
    sampled: int = 1,
    whole: bool | None = None,
) -> Event:
    """Return what a round costs a record: k of n clients send messages about s of their m records each.

    Args:
        once: What a shuffled batch of the messages of that many clients costs, under replace-one.
        clients: n, honest clients of whom nobody knows who is drawn.
        drawn: k, of them, of which a uniform sample is drawn afresh in every round.
        records: m of each client; the fewest if they differ.
        sampled: s, of which each drawn client draws a fresh uniform sample; 1 to m.
        whole: Whether clients may send unlike numbers of messages, which tell of who was drawn; None: not if
            s = 1.

    Returns:
        For s = 1 the batch on a sample of rate k / (n m), as `Drawn`; else with probability k / n the batch
        on a sample of rate s / m. The first is no bound for s > 1: then all messages of a client are in, or
        none.

    Raises:
        ParameterError: A sample that is larger than what it is drawn from.

    Reference:
        Girgis (2023), Lemma 4.3.1, Appendix C.1 and Remark C.1.1.

    Example:
        >>> from tacit.privacy import Repeat, Shuffled, epsilon_of
        >>> one = drawn_round(lambda k: Shuffled(1.5, k), clients=60_000, drawn=10_000)
        >>> round(epsilon_of(Repeat(one, 1200), 1e-5), 3)
        0.556
    """
    check_count("clients", clients, high=LARGEST_COUNT)
    check_count("drawn", drawn, high=clients)
    check_count("records", records, high=LARGEST_COUNT)
    check_count("sampled", sampled, high=records)
    whole = sampled > 1 if whole is None else whole
    if not whole:
        batch, rate = once(drawn), drawn / clients / records
        if drawn == clients:
            return _on_sample(batch, rate)
        return Drawn(batch, rate, clients=clients, drawn=drawn, records=records)
    part = _on_sample(once(drawn), sampled / records)
    return part if drawn == clients else ByChance((part,), (drawn / clients,))


def self_drawn_round(
    once: Callable[[int], Event],
    *,
    clients: int,
    rate: float,
    records: int = 1,
    sampled: int = 1,
    whole: bool | None = None,
) -> Event:
    """Return what a round costs a record: every client joins by itself with probability q.

    The number of those who join is visible, and independent of the data: given it, they are a uniform sample.
    Numbers are put into few groups, each priced as its fewest messages on its largest sample, of which the
    others are a part that chance decides on.

    Args:
        once: What a shuffled batch of the messages of that many clients costs, under replace-one; no less
            with fewer.
        clients: n, honest clients of whom nobody knows who joins.
        rate: q in (0, 1].
        records: m of each client; the fewest if they differ.
        sampled: s, of which each client that joins draws a fresh uniform sample; 1 to m.
        whole: As in `drawn_round`.

    Raises:
        ParameterError: A number out of its range.

    Reference:
        Girgis (2023), Theorem 4.4.1; the mixture over the number of clients is derived here, and has no
        additive e^{-c q n}.

    Example:
        >>> from tacit.privacy import Shuffled, epsilon_of
        >>> one = self_drawn_round(lambda k: Shuffled(1.0, k), clients=1000, rate=0.1)
        >>> round(epsilon_of(one, 1e-6), 3)
        0.074
    """
    check_count("clients", clients, high=LARGEST_COUNT)
    check_probability("rate", rate, low_open=True)
    if rate == 1:
        return drawn_round(
            once, clients=clients, drawn=clients, records=records, sampled=sampled, whole=whole
        )
    check_count("records", records, high=LARGEST_COUNT)
    check_count("sampled", sampled, high=records)
    whole = sampled > 1 if whole is None else whole
    from scipy import stats  # half a second that most commands can do without

    mean, others = clients * rate, stats.binom(clients - 1, rate)
    apart = math.sqrt(mean * (1 - rate)) * np.array((_FINE if mean < _FEW else _COARSE) + _FAR)
    # The last group is priced as a sample of all. Were it more than next to nothing, rare losses of full size
    # among small ones would cost much, and a grid that is as wide as it is fine.
    edges = np.concatenate([[1], np.clip(np.ceil(mean + apart), 1, clients + 1), [clients + 1]])
    parts, weights = [], []
    for first, after in pairwise(np.unique(edges).astype(int).tolist()):
        tail = others.sf if first > mean else others.cdf
        # The chance that the client joins, and so many do: the mean of k / n over the group.
        # What underflows is rounded up: no group is left out of what holds with certainty.
        joins = max(rate * abs(float(tail(after - 2) - tail(first - 2))), _RAREST)
        share = 1.0 if whole else (after - 1) / clients
        parts.append(_on_sample(once(first), sampled / records if whole else share / records))
        weights.append(joins / share)
    return SelfDrawn(tuple(parts), tuple(weights), clients=clients, rate=rate)


def _on_sample(batch: Event, rate: float) -> Event:
    """Return a release on a secret sample of that rate."""
    return batch if rate == 1 else Sampled(batch, rate)
