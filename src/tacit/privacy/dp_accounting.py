"""The door to dp-accounting: our events as theirs, where both mean the same. Nothing else imports it.

Its events carry no relation and no sensitivity convention: under replace-one its RDP and PLD accountants read
one Gaussian event as two different releases. So only add-remove events cross, and only kinds that it prices
in full.
"""

from __future__ import annotations

import dp_accounting

from tacit.errors import ParameterError
from tacit.privacy import events
from tacit.privacy.events import Event, neighbours_of
from tacit.privacy.neighbours import Relation

__all__ = ["to_dp_accounting"]


def to_dp_accounting(event: Event) -> dp_accounting.DpEvent:
    """Return the event of dp-accounting that means the same under `NeighboringRelation.ADD_OR_REMOVE_ONE`.

    Args:
        event: An event under add-remove neighbours, made of Gaussian, Laplace, concentrated and claimless
            releases, their compositions and their Poisson samples.

    Raises:
        ParameterError: Another relation, or an event that dp-accounting has no word for.

    Example:
        >>> from tacit.privacy import Gaussian, Neighbours, Relation, Repeat
        >>> to_dp_accounting(Repeat(Gaussian(2.0, Neighbours(Relation.ADD_REMOVE)), 3))
        SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=2.0), count=3)
    """
    relation = neighbours_of(event).relation
    if relation is not Relation.ADD_REMOVE:
        raise ParameterError(
            f"an event for dp-accounting must have add-remove neighbours, got {relation.value}: there its "
            "accountants disagree on what sensitivity means."
        )
    match event:
        case events.Gaussian(noise_multiplier=z):
            return dp_accounting.GaussianDpEvent(z)
        case events.Gdp(mu=mu) if mu > 0:
            return dp_accounting.GaussianDpEvent(1 / mu)
        case events.Laplace(noise_multiplier=b, dim=1):
            return dp_accounting.LaplaceDpEvent(b)
        case events.Zcdp(rho=rho):
            return dp_accounting.ZCDpEvent(rho)
        case events.NonPrivate():
            return dp_accounting.NonPrivateDpEvent()
        case events.Compose(parts=parts):
            return dp_accounting.ComposedDpEvent([to_dp_accounting(part) for part in parts])
        case events.Repeat(part=part, count=count):
            return dp_accounting.SelfComposedDpEvent(to_dp_accounting(part), count)
        case events.Sampled(part=part, rate=rate):
            return dp_accounting.PoissonSampledDpEvent(rate, to_dp_accounting(part))
        case _:
            raise ParameterError(f"dp-accounting has no event that means what {type(event).__name__} means.")
