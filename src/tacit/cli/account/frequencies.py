"""What arithmetic can tell of the facts that a statement of frequencies states."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.account.tables import check_tables, histogram_of
from tacit.cli.frequencies import notes_on
from tacit.errors import (
    ParameterError,
    VerificationError,
    check_count,
    check_finite,
    check_positive,
    check_probability,
)

if TYPE_CHECKING:
    from tacit.frequencies import FrequencyOracle, NoisyHistogram, SummedHistogram
    from tacit.privacy.statement import Statement

__all__ = ["check_frequencies", "check_intervals", "check_shares", "observers", "trusts"]

_ALONE: Final = frozenset({"epsilon_alone", "guarantee_alone"})
_TABLES: Final = frozenset({"tables", "colluding"})
_HEAVY: Final = frozenset({"heavy_hitters", "threshold", "false_alarm"})
_MAYBE: Final = _ALONE | _TABLES | _HEAVY | {"max_random_bits", "guarantee"}


def observers(found: Statement) -> tuple[str, ...]:
    """Return who looks, by the facts at the top, for every guarantee that the command writes."""
    from tacit.frequencies import observer_of_frequencies
    from tacit.privacy import TrustModel

    trust, unit = TrustModel(found.answer["trust"]), found.guarantees[0].neighbours.unit
    summed = trust is TrustModel.AGGREGATE
    colluding = check_count("colluding at the top", found.answer.get("colluding", -1), low=0) if summed else 0
    views = (False, True) if summed or trust is TrustModel.SHUFFLE else (False,)
    return tuple(observer_of_frequencies(trust, unit, alone=alone, colluding=colluding) for alone in views)


def trusts(found: Statement) -> tuple[str, ...]:
    """Return the trust model of every guarantee: behind a shuffler, one message alone has another."""
    trust: str = found.answer["trust"]
    return {"shuffle": (trust, "local"), "aggregate": (trust, trust)}.get(trust, (trust,))


def check_frequencies(found: Statement) -> None:
    """Refuse facts of frequencies that the event, the mechanism or the numbers themselves contradict."""
    from tacit.privacy.statement import KINDS, SUMMED

    answer = found.answer
    said = {"shuffle": _ALONE, "aggregate": SUMMED}.get(answer["trust"], frozenset())
    wanted = KINDS["frequencies"] - _MAYBE | said
    wanted |= _HEAVY if _HEAVY & set(answer) else frozenset()
    if cut := sorted(wanted - set(answer)):
        raise VerificationError(f"a statement of kind 'frequencies' must have {cut[0]!r} at the top.")
    if more := sorted((SUMMED - said) & set(answer)):
        raise VerificationError(f"a statement of this trust model has no {more[0]!r} at the top.")
    n, k = check_count("n at the top", answer["n"]), check_count("k at the top", answer["k"], low=2)
    confidence = check_probability("confidence", answer["confidence"], low_open=True, high_open=True)
    unit = found.guarantees[0].neighbours.unit.value
    if answer["unit"] != unit or unit not in ("record", "person"):
        raise VerificationError(
            "the unit at the top must be that of the guarantee, 'record' or 'person', got "
            f"{answer['unit']!r:.80}."
        )
    _check_mechanism(found, n, k)
    for name in ("table", "column", "projection"):
        if not isinstance(answer[name], str):
            raise VerificationError(f"{name} at the top must be a text.")
    for note in notes_on(n, confidence, unit, answer["projection"]):
        if note not in found.notes:
            raise VerificationError(f"the statement leaves out a note that its facts ask for: {note}")
    _check_numbers(answer, k)
    check_intervals(_mechanism(found, n, k), list(answer["intervals"].values()), n, confidence)


def _check_mechanism(found: Statement, n: int, k: int) -> None:
    """Refuse an event, or bits, that are not those of the mechanism at the top."""
    from tacit.means.columns import clauses_of_means
    from tacit.privacy import TrustModel

    answer, claims = found.answer, found.guarantees
    trust = TrustModel(answer["trust"])
    if trust is TrustModel.AGGREGATE:
        check_tables(found)
    for one, claim in zip((False, True), claims, strict=False):
        for clause in clauses_of_means(trust, claims[0].neighbours, alone=one):
            if clause not in claim.assumptions:
                raise VerificationError(f"the statement leaves out what its price rests on: {clause}.")
    try:
        oracle = _mechanism(found, n, k)
        bits, random, mse = _facts_of(oracle, n)
        events = [_event(oracle, found, n, trust)]
        if trust is TrustModel.SHUFFLE:
            events.append(_event(oracle, found, n, TrustModel.LOCAL))
    except (ParameterError, TypeError) as error:
        raise VerificationError(f"no mechanism has the facts at the top: {error}") from error
    if events != [claim.event for claim in claims][: len(events)]:
        raise VerificationError("the event is not that of the mechanism at the top: one of them was changed.")
    stated = (answer["bits_per_client"], answer["random_bits_per_client"], answer["rmse"])
    for name, value, true in zip(("bits", "random bits", "rmse"), stated, (bits, random, mse), strict=True):
        if abs(check_finite(name, value) - true) > 1e-9 * true:
            raise VerificationError(
                f"the {name} of a client at the top are not those of the mechanism: {value!r:.80}."
            )
    if trust is TrustModel.SHUFFLE:
        alone = claims[1]
        if alone.delta != 0 or alone.simulated is not claims[0].simulated:
            raise VerificationError(
                "the guarantees of the batch and of one message are of different answers."
            )
        if (answer["epsilon_alone"], answer["guarantee_alone"]) != (alone.epsilon, str(alone)):
            raise VerificationError(
                "what it says of one message alone at the top is not what its guarantee says: one was "
                "changed."
            )


def _mechanism(found: Statement, n: int, k: int) -> FrequencyOracle | NoisyHistogram | SummedHistogram:
    """Return the mechanism that the facts at the top name."""
    from tacit.frequencies import NoisyHistogram, make_oracle
    from tacit.privacy import DiscreteGaussian, DiscreteLaplace

    answer, event = found.answer, found.guarantees[0].event
    if answer["trust"] == "aggregate":
        return histogram_of(found, n, k)
    if answer["trust"] != "central":
        bits = answer.get("max_random_bits")
        level = check_positive("local_epsilon", answer["local_epsilon"])
        return make_oracle(
            answer["mechanism"],
            k,
            level,
            random_bits=None if bits is None else check_positive("max_random_bits", bits),
        )
    if (answer["mechanism"], answer["local_epsilon"]) != ("histogram", None):
        raise ParameterError("a trusted server releases a histogram.")
    if isinstance(event, DiscreteLaplace):
        return NoisyHistogram(k=k, scale=event.scale)
    if isinstance(event, DiscreteGaussian):
        return NoisyHistogram(k=k, scale=event.std, gaussian=True)
    raise ParameterError("its event must be discrete noise.")


def _event(
    oracle: FrequencyOracle | NoisyHistogram | SummedHistogram, found: Statement, n: int, trust: Any
) -> Any:
    """Return what is released under a trust model; a sum of tables was made from its event."""
    from tacit.frequencies import NoisyHistogram, SummedHistogram

    near = found.guarantees[0].neighbours
    if isinstance(oracle, SummedHistogram):
        return found.guarantees[0].event
    return oracle.event(near) if isinstance(oracle, NoisyHistogram) else oracle.event(n, trust, near)


def _facts_of(oracle: FrequencyOracle | NoisyHistogram | SummedHistogram, n: int) -> tuple[int, float, float]:
    """Return bits, random bits and root mean square error."""
    from tacit.frequencies import NoisyHistogram, SummedHistogram

    if isinstance(oracle, SummedHistogram):
        return oracle.message_bits, 0.0, (oracle.mse(n) / oracle.k) ** 0.5
    if isinstance(oracle, NoisyHistogram):
        return max(1, (oracle.k - 1).bit_length()), 0.0, (oracle.mse(n) / oracle.k) ** 0.5
    return oracle.message_bits, oracle.entropy_bits, (oracle.frequency_mse(n) / oracle.k) ** 0.5


def _check_projection(shares: dict[str, float], projection: str) -> None:
    """Refuse estimates that the projection at the top never returns."""
    from tacit.frequencies import PROJECTIONS

    if projection not in PROJECTIONS:
        raise VerificationError(f"no projection has the name at the top, {projection!r:.80}.")
    if projection in ("clip", "clip-normalize", "simplex") and min(shares.values()) < 0:
        raise VerificationError(f"estimates that were made consistent ({projection}) must be >= 0.")
    total = math.fsum(shares.values())
    if projection in ("sum", "clip-normalize", "simplex") and abs(total - 1) > 1e-6:
        raise VerificationError(f"estimates that were made consistent ({projection}) must add up to 1.")


def check_intervals(
    oracle: FrequencyOracle | NoisyHistogram | SummedHistogram, intervals: Any, n: int, confidence: float
) -> None:
    """Refuse intervals that the mechanism never returns, such as narrower ones.

    Of mechanisms whose intervals are those of a count; those of noise on counts have one width, unless an end
    is cut off.

    Args:
        oracle: The mechanism.
        intervals: Shape (k, 2): lower and upper ends.
        n: Number of messages, or of rows.
        confidence: That none of them misses.
    """
    import numpy as np

    from tacit.frequencies import FrequencyOracle

    ends = np.array(intervals, dtype=np.float64)
    if isinstance(oracle, FrequencyOracle):
        fits = oracle.support is None or oracle.support.allows(ends, n, confidence)
    else:
        whole = oracle.band(np.full(oracle.k, n // 2), n, confidence).intervals[0]
        wide, uncut = ends[:, 1] - ends[:, 0], (ends[:, 0] > 0) & (ends[:, 1] < 1)
        cut_off = whole[0] <= 0 or whole[1] >= 1
        fits = bool(cut_off or np.all(np.abs(wide[uncut] - (whole[1] - whole[0])) <= 1e-9))
    if not fits:
        raise VerificationError("the intervals at the top are not those of the mechanism: one was changed.")


def check_shares(estimates: Any, intervals: Any, k: int, projection: str) -> None:
    """Refuse estimates and intervals that are not k numbers, or not of a projection."""
    if not (isinstance(estimates, dict) and isinstance(intervals, dict)):
        raise VerificationError("estimates and intervals at the top must be by value.")
    if not len(estimates) == k or set(estimates) != set(intervals):
        raise VerificationError(f"estimates and intervals at the top must be of the same {k} values.")
    shares = {name: check_finite("an estimate at the top", value) for name, value in estimates.items()}
    _check_projection(shares, projection)
    for name, pair in intervals.items():
        if not isinstance(pair, list) or len(pair) != 2:
            raise VerificationError("an interval at the top must be two numbers.")
        low, high = (check_finite("an interval at the top", end) for end in pair)
        if not 0 <= low <= high <= 1:
            raise VerificationError("an interval at the top must lie in [0, 1].")
        if projection == "none" and not low - 1e-12 <= min(max(shares[name], 0), 1) <= high + 1e-12:
            raise VerificationError("an unbiased estimate at the top must lie in its interval.")


def _check_numbers(answer: dict[str, Any], k: int) -> None:
    """Refuse estimates and intervals that cannot be, or heavy hitters below their threshold."""
    intervals = answer["intervals"]
    check_shares(answer["estimates"], intervals, k, answer["projection"])
    if "heavy_hitters" not in answer:
        return
    heavy, threshold = answer["heavy_hitters"], check_finite("threshold at the top", answer["threshold"])
    above = {name for name, (low, _) in intervals.items() if low > threshold}
    if not isinstance(heavy, list) or set(map(str, heavy)) != above or len(heavy) != len(above):
        raise VerificationError(
            "the heavy hitters must be the values whose intervals lie above the threshold."
        )
    if abs(check_finite("false_alarm", answer["false_alarm"]) - (1 - answer["confidence"]) / 2) > 1e-12:
        raise VerificationError("false_alarm at the top must be half of what the confidence leaves.")
