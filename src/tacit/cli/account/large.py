"""What arithmetic can tell of a statement about the frequent ones of more values than can be listed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.frequencies import facts_of_tree, notes_on_tree
from tacit.errors import ParameterError, VerificationError, check_count, check_finite, check_positive

if TYPE_CHECKING:
    from tacit.frequencies import FrequencyOracle, NoisyHistogram, PrefixTree
    from tacit.privacy.statement import Statement

__all__ = ["check_large"]

_ALONE: Final = frozenset({"epsilon_alone", "guarantee_alone"})


def check_large(found: Statement) -> None:
    """Refuse facts of a prefix tree that its events, its bounds or the numbers themselves contradict."""
    from tacit.privacy.statement import KINDS

    answer, claims = found.answer, found.guarantees
    shuffled = answer["trust"] == "shuffle"
    wanted = KINDS[found.kind] - (frozenset() if shuffled else _ALONE)
    if cut := sorted(wanted - set(answer)):
        raise VerificationError(f"a statement of kind {found.kind!r} must have {cut[0]!r} at the top.")
    if not shuffled and _ALONE & set(answer):
        raise VerificationError("only under shuffle trust is there a message before it is shuffled.")
    unit = claims[0].neighbours.unit.value
    if answer["unit"] != unit or unit not in ("record", "person"):
        raise VerificationError(
            f"the unit at the top must be that of the guarantee, got {answer['unit']!r:.80}."
        )
    if answer["items"] not in ("hashed", "numbers"):
        raise VerificationError("items at the top must be hashed or numbers.")
    for name in ("table", "column"):
        if not isinstance(answer[name], str):
            raise VerificationError(f"{name} at the top must be a text.")
    check_count("hash_seed at the top", answer["hash_seed"], low=0, high=2**64 - 1)
    try:
        tree = _tree(found)
        facts = facts_of_tree(tree)
    except (ParameterError, TypeError, KeyError) as error:
        raise VerificationError(f"no prefix tree has the facts at the top: {error}") from error
    for name, true in facts.items():
        stated = answer[name]
        near = isinstance(true, float) and abs(check_finite(name, stated) - true) <= 1e-9 * abs(true)
        if stated != true and not near:
            raise VerificationError(f"{name} at the top is not that of the prefix tree: {stated!r:.80}.")
    if abs(tree.false_alarm - (1 - check_finite("confidence", answer["confidence"])) / 2) > 1e-12:
        raise VerificationError("false_alarm at the top must be half of what the confidence leaves.")
    if shuffled:
        alone = claims[1]
        if (answer["epsilon_alone"], answer["guarantee_alone"]) != (alone.epsilon, str(alone)):
            raise VerificationError("what it says of one client's messages at the top was changed.")
        if alone.delta != 0 or alone.simulated is not claims[0].simulated:
            raise VerificationError("the guarantees of batches and of one client are of different answers.")
    for note in notes_on_tree(tree, answer["items"], unit):
        if note not in found.notes:
            raise VerificationError(f"the statement leaves out a note that its facts ask for: {note}")
    _check_found(answer, tree)


def _tree(found: Statement) -> PrefixTree:
    """Return the tree of the facts at the top, whose events must be those of the guarantees."""
    from tacit.frequencies import Layout, PrefixTree, TreeLevel, event_of_levels
    from tacit.privacy import TrustModel

    answer, claims = found.answer, found.guarantees
    trust, near = TrustModel(answer["trust"]), claims[0].neighbours
    stated = answer["tree"]
    if not isinstance(stated, list) or not 1 <= len(stated) <= 64:
        raise ParameterError("the tree must be a list of levels.")
    prefixes = tuple(check_count("prefix", one["prefix"], high=64) for one in stated)
    n, dealt = check_count("n", answer["n"], low=2), answer["answering"] == "one level"
    layout = Layout(prefixes, check_count("kept", answer["kept"], high=2**24), dealt)
    bits = check_count("bits", answer["bits"], high=64)
    if list(prefixes) != sorted(set(prefixes)) or prefixes[-1] != bits:
        raise ParameterError("prefixes must grow up to all bits.")
    if len(prefixes) == 1 and (layout.kept, dealt) != (1, False):
        raise ParameterError("of one level nothing is followed, and all rows answer in it.")
    levels = tuple(
        TreeLevel(
            prefix=prefix,
            step=prefix - before,
            n=rows,
            mechanism=one["mechanism"],
            oracle=_oracle(one, candidates + 1, found),
        )
        for one, prefix, before, rows, candidates in zip(
            stated, prefixes, (0, *prefixes), layout.rows(n), layout.candidates, strict=False
        )
    )
    views = (trust, TrustModel.LOCAL)[: len(claims)]
    if any(
        event_of_levels(levels, view, near, dealt=dealt) != claim.event
        for view, claim in zip(views, claims, strict=True)
    ):
        raise ParameterError("the event is not that of its levels: one of them was changed.")
    return PrefixTree(
        bits=bits,
        n=n,
        trust=trust,
        layout=layout,
        levels=levels,
        threshold=check_finite("threshold", answer["threshold"]),
        false_alarm=check_positive("false_alarm", answer["false_alarm"]),
        miss=check_positive("miss", answer["miss"]),
        price=claims[0],
    )


def _oracle(level: dict[str, Any], k: int, found: Statement) -> FrequencyOracle | NoisyHistogram:
    """Return the mechanism that a level names."""
    from tacit.frequencies import TREE_MECHANISMS, NoisyHistogram, make_oracle
    from tacit.privacy import Compose, DiscreteLaplace

    if found.answer["trust"] != "central":
        if level["mechanism"] not in TREE_MECHANISMS:
            raise ParameterError(f"mechanism must be one of {', '.join(TREE_MECHANISMS)}.")
        return make_oracle(level["mechanism"], k, check_positive("local_epsilon", level["local_epsilon"]))
    event = found.guarantees[0].event
    part = event.parts[0] if isinstance(event, Compose) else event
    if not isinstance(part, DiscreteLaplace) or level["mechanism"] != "histogram":
        raise ParameterError("a trusted server releases histograms with discrete Laplace noise.")
    return NoisyHistogram(k=k, scale=part.scale)


def _check_found(answer: dict[str, Any], tree: PrefixTree) -> None:
    """Refuse values outside of the domain, or not above the threshold."""
    seen = set()
    if not isinstance(answer["heavy_hitters"], list):
        raise VerificationError("the heavy hitters at the top must be a list.")
    for one in answer["heavy_hitters"]:
        if not isinstance(one, dict) or set(one) != {"item", "text", "estimate", "interval"}:
            raise VerificationError("a value that was found has other fields.")
        seen.add(check_count("item", one["item"], low=0, high=2**tree.bits - 1))
        if not isinstance(one["text"], str | None):
            raise VerificationError("the text of a value that was found must be a text.")
        _check_interval(check_finite("an estimate at the top", one["estimate"]), one["interval"], tree)
    if len(seen) != len(answer["heavy_hitters"]):
        raise VerificationError("a value was found twice.")


def _check_interval(estimate: float, interval: object, tree: PrefixTree) -> None:
    """Refuse an interval that is not that of an estimate, or not above the threshold."""
    import numpy as np

    last = tree.levels[-1]
    score = math.inf if abs(estimate) > 2**53 else float(last.scores(np.array([estimate]))[0])
    if abs(score) > 2**53 or abs(score - round(score)) > 1e-6 * max(abs(score), 1):
        raise VerificationError("an estimate at the top is not that of a whole number of rows or messages.")
    if not isinstance(interval, list) or len(interval) != 2:
        raise VerificationError("an interval at the top must be two numbers.")
    ends = [check_finite("an interval at the top", end) for end in interval]
    if not np.allclose(ends, tree.band(last, np.array([round(score)])).intervals[0], rtol=0, atol=1e-9):
        raise VerificationError("an interval at the top is not that of its estimate: one was changed.")
    if not tree.threshold < ends[0] <= ends[1]:
        raise VerificationError("the interval of a value that was found must lie above the threshold.")
