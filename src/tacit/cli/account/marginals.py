"""What arithmetic can tell of a statement about tables of several columns."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.account.frequencies import check_intervals
from tacit.cli.frequencies import notes_on_tables
from tacit.errors import ParameterError, VerificationError, check_count, check_positive, check_probability

if TYPE_CHECKING:
    from tacit.frequencies import FrequencyOracle, NoisyHistogram
    from tacit.privacy import Event
    from tacit.privacy.statement import Statement

__all__ = ["check_tables"]

_ALONE: Final = frozenset({"epsilon_alone", "guarantee_alone"})
_FIELDS: Final = {"columns", "n", "mechanism", "local_epsilon", "rmse", "estimates", "intervals"}


def check_tables(found: Statement) -> None:
    """Refuse facts of tables that their events, or the numbers themselves, contradict."""
    from tacit.privacy.statement import KINDS

    answer, claims = found.answer, found.guarantees
    shuffled = answer["trust"] == "shuffle"
    wanted = KINDS[found.kind] - (frozenset() if shuffled else _ALONE)
    if cut := sorted(wanted - set(answer)):
        raise VerificationError(f"a statement of kind {found.kind!r} must have {cut[0]!r} at the top.")
    if not shuffled and _ALONE & set(answer):
        raise VerificationError("only under shuffle trust is there a message before it is shuffled.")
    alone = claims[-1]
    if shuffled and (answer["epsilon_alone"], answer["guarantee_alone"]) != (alone.epsilon, str(alone)):
        raise VerificationError("what it says of one client's messages at the top was changed.")
    if shuffled and (alone.delta != 0 or alone.simulated is not claims[0].simulated):
        raise VerificationError("the guarantees of batches and of one client are of different answers.")
    n = check_count("n at the top", answer["n"])
    confidence = check_probability("confidence", answer["confidence"], low_open=True, high_open=True)
    unit = claims[0].neighbours.unit.value
    if answer["unit"] != unit or unit not in ("record", "person") or not isinstance(answer["table"], str):
        raise VerificationError("the unit at the top must be that of the guarantee, and table a text.")
    try:
        _check_all(found, n)
    except (ParameterError, TypeError, KeyError, ValueError) as error:
        raise VerificationError(f"no tables have the facts at the top: {error}") from error
    for note in notes_on_tables(n, confidence, unit):
        if note not in found.notes:
            raise VerificationError(f"the statement leaves out a note that its facts ask for: {note}")


def _check_all(found: Statement, n: int) -> None:
    """Refuse events that are not those of the tables, and numbers that no tables have."""
    import numpy as np

    from tacit.frequencies import FrequencyOracle
    from tacit.privacy import Compose, Parallel, TrustModel

    answer, claims = found.answer, found.guarantees
    names, stated, trust = answer["columns"], answer["tables"], TrustModel(answer["trust"])
    order, dealt = list(names), answer["answering"] == "one table"
    if answer["answering"] not in ("one table", "every table") or not stated:
        raise ParameterError("answering must be one table or every table.")
    if not all(
        isinstance(values, list) and len({str(value) for value in values}) == len(values)
        for values in names.values()
    ):
        raise ParameterError("the values of a column must be different ones.")
    sure = 1 - (1 - answer["confidence"]) / len(stated)
    rows = [n // len(stated) + (k < n % len(stated)) if dealt else n for k in range(len(stated))]
    views = (trust, TrustModel.LOCAL)[: len(claims)]
    events: list[list[Event]] = [[] for _ in views]
    bits, random, shapes, estimates = [], [], [], []
    for one, own in zip(stated, rows, strict=True):
        if (
            set(one) != _FIELDS
            or one["n"] != own
            or [order.index(c) for c in one["columns"]] != sorted({order.index(c) for c in one["columns"]})
        ):
            raise ParameterError("a table has other fields, rows or columns.")
        shape = tuple(len(names[column]) for column in one["columns"])
        oracle = _oracle(one, math.prod(shape), found, len(events[0]))
        for seen, view in zip(events, views, strict=True):
            seen.append(_event(oracle, found, own, view))
        mse, message, coins = _facts_of(oracle, own)
        if abs(one["rmse"] - (mse / math.prod(shape)) ** 0.5) > 1e-9 * one["rmse"]:
            raise ParameterError("an rmse is not that of its mechanism.")
        cells, ends = np.array(one["estimates"], dtype=float), np.array(one["intervals"], dtype=float)
        if cells.shape != shape or ends.shape != (*shape, 2) or not abs(cells.sum() - 1) <= 1e-6:
            raise ParameterError("estimates must be of the columns' values and add up to 1.")
        if not (np.all(ends >= 0) and np.all(ends <= 1) and np.all(ends[..., 0] <= ends[..., 1])):
            raise ParameterError("intervals must lie in [0, 1].")
        # Of other scores of dealt rows, intervals of all rows are not those of the mechanism.
        if not dealt or (isinstance(oracle, FrequencyOracle) and oracle.support):
            check_intervals(oracle, ends.reshape(-1, 2), own, sure)
        bits.append(message)
        random.append(coins)
        shapes.append(one["columns"])
        estimates.append(cells)
    for seen, claim in zip(events, claims, strict=True):
        whole = seen[0] if len(seen) == 1 else (Parallel if dealt else Compose)(tuple(seen))
        if whole != claim.event:
            raise ParameterError("the event is not that of its tables: one of them was changed.")
    total = (max(bits), max(random)) if dealt else (sum(bits), math.fsum(random))
    if (
        answer["bits_per_client"] != total[0]
        or abs(answer["random_bits_per_client"] - total[1]) > 1e-9 * total[1]
    ):
        raise ParameterError("bits of a client are not those of the mechanisms.")
    for (left, mine), (right, theirs) in itertools.combinations(zip(shapes, estimates, strict=True), 2):
        shared = set(left) & set(right)
        away = [
            tuple(axis for axis, column in enumerate(one) if column not in shared) for one in (left, right)
        ]
        if np.abs(mine.sum(axis=away[0]) - theirs.sum(axis=away[1])).max() > 1e-6:
            raise ParameterError("two tables do not agree on what they share.")


def _oracle(one: dict[str, Any], k: int, found: Statement, place: int) -> FrequencyOracle | NoisyHistogram:
    """Return the mechanism that a table names."""
    from tacit.frequencies import NoisyHistogram, make_oracle
    from tacit.privacy import Compose, DiscreteGaussian, DiscreteLaplace

    if found.answer["trust"] != "central":
        return make_oracle(one["mechanism"], k, check_positive("local_epsilon", one["local_epsilon"]))
    event = found.guarantees[0].event
    part = event.parts[place] if isinstance(event, Compose) else event
    if (one["mechanism"], one["local_epsilon"]) != ("histogram", None):
        raise ParameterError("a trusted server releases histograms.")
    if isinstance(part, DiscreteLaplace):
        return NoisyHistogram(k=k, scale=part.scale)
    if isinstance(part, DiscreteGaussian):
        return NoisyHistogram(k=k, scale=part.std, gaussian=True)
    raise ParameterError("its event must be discrete noise.")


def _event(oracle: FrequencyOracle | NoisyHistogram, found: Statement, n: int, view: Any) -> Event:
    """Return what is released about one table."""
    from tacit.frequencies import NoisyHistogram

    near = found.guarantees[0].neighbours
    return oracle.event(near) if isinstance(oracle, NoisyHistogram) else oracle.event(n, view, near)


def _facts_of(oracle: FrequencyOracle | NoisyHistogram, n: int) -> tuple[float, int, float]:
    """Return error, bits and random bits."""
    from tacit.frequencies import NoisyHistogram

    if isinstance(oracle, NoisyHistogram):
        return oracle.mse(n), max(1, (oracle.k - 1).bit_length()), 0.0
    return oracle.frequency_mse(n), oracle.message_bits, oracle.entropy_bits
