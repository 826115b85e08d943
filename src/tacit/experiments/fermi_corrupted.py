"""Sensitive attributes that are missing or wrong in training, on Adult (Lowy 2023, Figure 5.3, Appendix D.2).

Of nine in ten training records the gender is hidden, or one in ten is said to be of one group.
The thesis shows pictures only; the columns of the reference hold an independent computation for one draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacit.experiments.fermi_places import (
    SHARES,
    Place,
    curves,
    fairlearn_notes,
    fairlearn_places,
    measured,
    naive_places,
)
from tacit.experiments.fermi_statements import at_violation, lines_of, near
from tacit.experiments.fermi_tasks import Split
from tacit.experiments.report import Report, number, yes
from tacit.fairness import Groups, force_attributes, hide_attributes
from tacit.randomness import simulated

__all__ = ["MISSING", "NOISY", "Damage", "compute", "run_missing", "run_noisy", "statements"]

_NOTION = "demographic-parity"
_WHOLE = "everything known"
_BOUNDS = (0.05,)
_BATCHES: dict[str, Any] = {
    "solver": "sgda",
    "batch_size": 64,
    "feature_bound": 5.0,
    "l2": 0.0,
    "random_state": 0,
}
_SHOWN = ("line", "weight", "error", "reference error", "violation", "reference violation")
_CLOSE = 0.005


@dataclass(frozen=True)
class Damage:
    """What is done to the attributes of training records.

    Attributes:
        experiment: Its name.
        panel: What it is called.
        share: Of records.
        hidden: Whether attributes are hidden rather than overwritten by the first group.
        weights: Of penalties.
    """

    experiment: str
    panel: str
    share: float
    hidden: bool
    weights: tuple[float, ...]

    def done(self, split: Split, seed: int) -> Split:
        """Return the halves with damaged attributes; the test half keeps its own."""
        groups, rng = Groups.of(split.s), simulated(seed, self.experiment)
        if self.hidden:
            damaged = hide_attributes(groups, self.share, rng)
        else:
            damaged = force_attributes(groups, self.share, groups.names[0], rng)
        return replace(split, s=np.array([*groups.names, None], dtype=object)[damaged.codes])


MISSING = Damage("fermi-missing", "90 % missing", 0.9, True, (1.0, 3.0, 10.0))
NOISY = Damage("fermi-noisy", "10 % forced", 0.1, False, (1.0, 3.0, 10.0))


def _run(damage: Damage, quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Train on damaged attributes; `quick` takes one draw."""
    return compute(damage, 1 if quick else 2, progress)


run_missing, run_noisy = partial(_run, MISSING), partial(_run, NOISY)


def compute(
    damage: Damage,
    draws: int,
    progress: Callable[[int, int], Any],
    bounds: Sequence[float] = _BOUNDS,
) -> Report:
    """Train on damaged attributes.

    Args:
        damage: What is done.
        draws: Of which records it is done to; standard errors need 2 or more.
        progress: Called with (done, total).
        bounds: Of exponentiated gradient.
    """
    split = Split.load("adult-ch5")
    damaged = [damage.done(split, seed) for seed in range(draws)]
    places = list(_places(damage, split, damaged, bounds))
    rows = measured(damage.experiment, places, progress)
    return curves(
        rows,
        [*_notes(damage, draws), *fairlearn_notes(), *statements(rows)],
        shown=_SHOWN,
    )


def _places(
    damage: Damage, whole: Split, damaged: Sequence[Split], bounds: Sequence[float]
) -> Iterator[Place]:
    """Yield what is trained with everything known, and what is trained on damaged attributes."""

    def place(line: str, weight: float, of: Sequence[Split], **how: Any) -> Place:
        def measure() -> list[dict[str, float]]:
            return [one.worth_of(one.fit(weight=weight, **how), _NOTION) for one in of]

        return Place(damage.panel, line, weight, measure)

    for weight in (0.0, *damage.weights):
        yield place(_WHOLE, weight, [whole])
    yield from naive_places(damage.panel, [whole], lambda one: one.fit(weight=0.0), _NOTION, (0.0, *SHARES))
    known = [_known(one) for one in damaged]
    missing = {"missing": damage.hidden}
    for weight in damage.weights:
        yield place("FERMI", weight, damaged, **missing)
        yield place("FERMI, batches of 64", weight, damaged, **missing, **_BATCHES)
        plug_in = {"regularizer": "ermi-plug-in", **missing, **_BATCHES}
        yield place("plug-in, batches of 64", weight, damaged, **plug_in)
        if damage.hidden:
            yield place("FERMI, known records only", weight, known, **missing)
    yield from fairlearn_places(damage.panel, known, _NOTION, bounds)


def _notes(damage: Damage, draws: int) -> Iterator[str]:
    """Yield what differs from the chapter."""
    only = (
        "What needs every attribute, which is FERMI in one line and fairlearn in both, has the records "
        "with one."
        if damage.hidden
        else "All methods take the attributes as they are said to be."
    )
    several = f"{draws} draw{'s' if draws > 1 else ''}"
    yield f"Adult, demographic parity, {several} of the records that it is done to. {only}"
    yield (
        "The weight of exponentiated gradient is its bound, of the naive mixture the chance that it says the "
        "majority; the threshold optimiser is told the group of new records."
    )


def statements(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    """Yield what holds of each statement."""
    yield near(rows)
    for lines in lines_of(rows).values():
        whole, naive = lines[_WHOLE], lines["naive"]
        for line, theirs in lines.items():
            if line in (_WHOLE, "naive"):
                continue
            lost, gained = [], []
            for one in theirs:
                level = number(one["violation"])
                if level >= number(naive[0]["violation"]):
                    continue
                gained.append(at_violation(naive, level) - number(one["error"]))
                best = at_violation(whole, level)
                if not np.isnan(best):  # where the violation is reached
                    lost.append(number(one["error"]) - best)
            if not gained:
                yield f"{line}: not fairer than plain regression at any weight."
                continue
            yield (
                f"{line}: at equal violation "
                + (
                    f"its error is at most {max(lost):+.4f} from that of FERMI with everything known "
                    f"(within {_CLOSE:g}: {yes(round(max(lost), 4) <= _CLOSE)}); "
                    if lost
                    else ""
                )
                + f"it beats the naive mixture: {yes(min(gained) > 0)}, by {min(gained):.4f} or more."
            )


def _known(of: Split) -> Split:
    """Return halves whose training records have an attribute."""
    known = np.array([name is not None for name in of.s])
    return replace(of, X=of.X[known], y=of.y[known], s=of.s[known].astype(str))
