"""As a user of dp-accounting writes it: its accountant of privacy loss distributions."""

from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant


def price_gaussian(sigma, times, delta):
    return PLDAccountant().compose(GaussianDpEvent(sigma), times).get_epsilon(delta)


def price_sampled(sigma, rate, times, delta, relation):
    known = {
        "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace-one": NeighboringRelation.REPLACE_ONE,
    }
    event = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), times)
    return PLDAccountant(known[relation]).compose(event).get_epsilon(delta)
