"""What an event composes, as few releases as it takes.

An event tree is flattened into releases with counts. Gaussian releases merge into one, equal releases into a
count, concentrated ones into one rho, and shuffled binomial sums of all kinds join the Gaussian ones; only
what is left must be convolved.
"""

from __future__ import annotations

import math
from collections import Counter

from tacit.errors import ParameterError
from tacit.privacy import events
from tacit.privacy.binomial.event import Binomial, joined
from tacit.privacy.events import Event, neighbours_of
from tacit.privacy.renyi import Renyi

__all__ = ["flatten", "merge", "multiplied"]

_MOST_RELEASES = 10**300
_COARSE_STD = 32.0
"""Above, a convolution loses as much as rounding to the grid does, and Gaussians merge at no cost."""


def flatten(event: Event, times: int = 1) -> Counter[Event]:
    """Return the releases that an event composes, with their counts."""
    match event:
        case events.Compose(parts=parts):
            found: Counter[Event] = Counter()
            for part in parts:
                found.update(flatten(part, times))
            return found
        case events.Repeat(part=part, count=count):
            return flatten(part, multiplied(times, count))
        case events.Sampled(part=part, rate=1.0) | events.ByChance(parts=(part,), weights=(1.0,)):
            return flatten(part, times)
        case events.Replaced(rate=1.0):
            return Counter({events.Gdp(2 * event.mu, event.neighbours): times})
        case events.Aligned():
            return Counter({events.Gdp(event.mu, event.neighbours): times})
        case events.Parallel(parts=parts) | events.AnyOf(proofs=parts) if len(set(parts)) == 1:
            return flatten(parts[0], times)
        case _:
            return Counter({event: times})


def multiplied(times: int, count: int) -> int:
    """Return times * count; refuse what no float can hold."""
    total = times * count
    if total > _MOST_RELEASES:
        raise ParameterError(
            f"count must not repeat a release more than 1e300 times in all, got 1e{math.log10(total):.0f}."
        )
    return total


def merge(parts: Counter[Event], *, own_laws: bool = True) -> Counter[Event]:
    """Replace Gaussian releases by one and concentrated releases by one; keep the rest.

    `own_laws`: keep discrete Gaussian noise on one number where its own law is tighter than a Gaussian.
    """
    claimless = next((part for part in parts if isinstance(part, events.NonPrivate)), None)
    if claimless is not None:
        return Counter({claimless: 1})
    merged: Counter[Event] = Counter()
    mu_squared = rho = 0.0
    renyi: Renyi | events.NonPrivate | None = None
    sums: list[Binomial] = []
    total = parts.total()
    # In an order that does not depend on how the tree was written: then neither does the price.
    for part, count in sorted(parts.items(), key=repr):
        fine: Event | None = part
        if isinstance(part, events.GaussianOnGrid) and not (own_laws and _keeps_law(part, total)):
            fine = part.rounded(total)
        match fine:
            case events.Gaussian(noise_multiplier=z):
                mu_squared += count / z / z
            case events.Gdp(mu=mu):
                mu_squared += count * mu * mu
            case events.Zcdp(rho=level):
                rho += count * level
            case None:
                assert isinstance(part, events.GaussianOnGrid)  # noqa: S101 - narrows the type
                rho += count * part.concentrated.rho
            case Renyi() if not isinstance(renyi, events.NonPrivate):
                several = fine.repeated(count)
                renyi = several.with_other(renyi) if renyi and isinstance(several, Renyi) else several
            case Binomial():
                sums.append(fine.repeated(count))
            case events.Leaf() if (whole := fine.repeated(count)) is not None:
                if isinstance(whole, events.Gdp):
                    mu_squared += whole.mu * whole.mu
                else:
                    merged[whole] += 1
            case _:
                merged[part] += count
    neighbours = neighbours_of(next(iter(parts)))
    if not math.isfinite(mu_squared + rho) or isinstance(renyi, events.NonPrivate):
        return Counter({events.NonPrivate(neighbours): 1})
    if sums:
        leaves, mu_squared = joined(sums, mu_squared)
        merged.update(leaves)
    if mu_squared > 0:
        merged[events.Gdp(math.sqrt(mu_squared), neighbours)] += 1
    if rho > 0:
        merged[events.Zcdp(rho, neighbours)] += 1
    if renyi is not None:
        merged[renyi] += 1
    return merged or Counter({events.Gdp(0.0, neighbours): 1})


def _keeps_law(part: events.GaussianOnGrid, releases: int) -> bool:
    """Whether a release is priced by its own law: alone, and where the grid of a convolution costs less."""
    return part.has_own_law and (releases == 1 or part.std < _COARSE_STD)
