"""Every bound on rounds of shuffling by name, with one call and with what it may be used for.

`compare` lists them beside the guarantee. All are for one record under replace-one, with a randomizer of
which only its pure level is known, and rounds with fresh fixed-size samples hidden from the server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import resources
from typing import Literal

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative, check_probability
from tacit.literature.composition import optimal_composition, strong_composition
from tacit.literature.shuffling import baselines, lemmas, lower
from tacit.literature.shuffling.closed_forms import chernoff_renyi, simplified_renyi, subgaussian_renyi
from tacit.literature.shuffling.subsampled import subsampled_renyi
from tacit.literature.shuffling.upper import reduction_renyi
from tacit.privacy.curve_sampling import amplified
from tacit.privacy.curves import Array
from tacit.privacy.neighbours import Relation
from tacit.privacy.renyi import ORDERS, renyi_to_epsilon
from tacit.privacy.renyi_sampling import fixed_size_renyi
from tacit.privacy.shuffling.renyi import clones_renyi

__all__ = ["BOUNDS", "ShuffleBound"]

_SPLITS = (0.1, 0.3, 0.5, 0.7, 0.9)
_WHOLE: Array = ORDERS[(np.floor(ORDERS) == ORDERS) & (ORDERS <= 1e4)]
_FEW: Array = np.unique(np.concatenate([ORDERS[ORDERS < 2][::4], _WHOLE[:63], _WHOLE[_WHOLE > 64][::8]]))
_MOST_MOMENTS = 128

Epsilon = Callable[[float, int, float, int, float], float]
Divergence = Callable[[float, int, float, Array], Array]
Amplification = Callable[[float, int, float], float]


@dataclass(frozen=True)
class ShuffleBound:
    """One bound on T rounds, in each of which k messages are shuffled.

    Attributes:
        name: What it is called in tables.
        price: Maps (local_epsilon, parties, delta, rounds, sample_rate) to epsilon.
        status: "proof", "lower bound" (nothing proven can be less) or "paper only" (withdrawn, or not a
            bound).
        note: Source, and what to know about it.
    """

    name: str
    price: Epsilon
    status: str
    note: str

    def epsilon(
        self, local_epsilon: float, parties: int, delta: float, rounds: int = 1, sample_rate: float = 1.0
    ) -> float:
        """Return the epsilon of this bound; infinity where it proves nothing at this delta.

        Args:
            local_epsilon: Pure level of one message, >= 0.
            parties: Messages in each shuffle, >= 1: the size of the sample.
            delta: Of the whole run, in (0, 1).
            rounds: T.
            sample_rate: Chance that the one who is protected is in a round's sample, in (0, 1].

        Raises:
            ParameterError: An argument out of its range, or outside of the condition of this bound.
        """
        check_non_negative("local_epsilon", local_epsilon)
        check_count("parties", parties)
        check_probability("delta", delta, low_open=True, high_open=True)
        check_count("rounds", rounds)
        check_probability("sample_rate", sample_rate, low_open=True)
        return self.price(float(local_epsilon), int(parties), float(delta), int(rounds), float(sample_rate))


def _by_renyi(divergence: Divergence, orders: Array) -> Epsilon:
    """Return the price of divergences that add up over rounds."""

    def price(local: float, parties: int, delta: float, rounds: int, rate: float) -> float:
        return renyi_to_epsilon(orders, rounds * divergence(local, parties, rate, orders), delta).epsilon

    return price


def _by_largest_orders(divergence: Divergence) -> Epsilon:
    """Return the price of divergences whose condition limits the orders, up to the largest it allows."""

    def price(local: float, parties: int, delta: float, rounds: int, rate: float) -> float:
        allowed, refused = 0, _WHOLE.size + 1
        divergence(local, parties, rate, _WHOLE[:1])  # says which condition fails if none is allowed
        while refused - allowed > 1:
            middle = (allowed + refused) // 2
            try:
                divergence(local, parties, rate, _WHOLE[:middle])
                allowed = middle
            except ParameterError:
                refused = middle
        orders = _WHOLE[:allowed]
        return renyi_to_epsilon(orders, rounds * divergence(local, parties, rate, orders), delta).epsilon

    return price


def _unsampled(divergence: Callable[[float, int, Array], Array]) -> Divergence:
    """Return divergences that know no sampling, and refuse it."""

    def found(local: float, parties: int, rate: float, orders: Array) -> Array:
        if rate < 1:
            raise ParameterError(f"sample_rate must be 1 for this bound, got {rate!r}.")
        return divergence(local, parties, orders)

    return found


def _sampled_only(divergence: Divergence) -> Divergence:
    """Return divergences that are of use with sampling only."""

    def found(local: float, parties: int, rate: float, orders: Array) -> Array:
        if rate >= 1:
            raise ParameterError(f"sample_rate must be below 1 for this bound, got {rate!r}.")
        return divergence(local, parties, rate, orders)

    return found


def _first_subsampled(local: float, parties: int, rate: float, orders: Array) -> Array:
    """Bound 1 under the general subsampling theorem of Wang, Balle and Kasiviswanathan (2019)."""
    largest = min(int(orders.max()), _MOST_MOMENTS)
    moments = chernoff_renyi(local, parties, np.arange(2.0, largest + 1))
    found = np.full(orders.shape, np.inf)
    within = orders <= largest
    found[within] = fixed_size_renyi(
        moments, rate, orders[within], relation=Relation.REPLACE_ONE, pure_level=local
    )
    return found


def _by_composition(amplification: Amplification, *, strong: bool) -> Epsilon:
    """Return the price of an (epsilon, delta) per round, subsampled and composed, at some splits of delta."""

    def price(local: float, parties: int, delta: float, rounds: int, rate: float) -> float:
        if rounds == 1:
            return amplified(amplification(local, parties, min(delta / rate, 0.5)), rate)
        best = math.inf
        for share in _SPLITS:
            each = min(share * delta / rounds, 0.5 * rate)
            epsilon = amplified(amplification(local, parties, each / rate), rate)
            if epsilon == 0:
                return 0.0
            if strong:
                total = strong_composition(epsilon, each, rounds, (1 - share) * delta)
            else:
                total = optimal_composition(epsilon, each, rounds, delta)
            best = min(best, total.epsilon)
        return best

    return price


@lru_cache(maxsize=64)
def _clones(local: float, parties: int, delta: float) -> float:
    return baselines.clones_epsilon(local, parties, delta)


def _one_round(local: float, parties: int, delta: float, _rounds: int, rate: float) -> float:
    """Rounds only add: what one round leaks, all of them leak."""
    return lower.shuffle_epsilon_lower(local, parties, delta, rate=rate)


def _renyi_lower(local: float, parties: int, rate: float, orders: Array) -> Array:
    return lower.shuffle_renyi_lower(local, parties, orders, rate=rate)


def _two_shuffles(local: float, parties: int, rate: float, orders: Array) -> Array:
    return lemmas.subsampled_shuffle_bound(local, parties, rate, orders)


_sharp_chernoff = partial(chernoff_renyi, variant="sharp", chernoff="opt")
_tight_subsampled = partial(subsampled_renyi, variant="tight")

_PRICES: Mapping[str, Epsilon] = {
    "clones, Rényi": _by_renyi(_unsampled(clones_renyi), _FEW),
    "same-data reduction, Rényi": _by_renyi(_unsampled(reduction_renyi), _FEW),
    "thesis bound 1": _by_renyi(_unsampled(chernoff_renyi), _WHOLE),
    "thesis bound 1, sharp": _by_renyi(_unsampled(_sharp_chernoff), _FEW),
    "thesis bound 1, simplified": _by_largest_orders(_unsampled(simplified_renyi)),
    "thesis bound 2": _by_renyi(_unsampled(subgaussian_renyi), ORDERS),
    "thesis bound 2, tight": _by_renyi(_unsampled(partial(subgaussian_renyi, variant="tight")), ORDERS),
    "thesis subsampled bound": _by_renyi(_sampled_only(partial(subsampled_renyi, variant="printed")), _WHOLE),
    "thesis subsampled bound, tight": _by_renyi(_sampled_only(_tight_subsampled), _WHOLE),
    "thesis bound 1, general subsampling": _by_renyi(_sampled_only(_first_subsampled), _WHOLE),
    "clones, optimal composition": _by_composition(_clones, strong=False),
    "clones, strong composition": _by_composition(_clones, strong=True),
    "clones closed form, optimal composition": _by_composition(baselines.fmt22_epsilon, strong=False),
    "clones closed form, strong composition": _by_composition(baselines.fmt22_epsilon, strong=True),
    "clones artanh form, optimal composition": _by_composition(baselines.clones_artanh_epsilon, strong=False),
    "Erlingsson et al. (2019)": _by_composition(baselines.efm19_epsilon, strong=False),
    "Erlingsson et al. (2019), Rényi": _by_renyi(_unsampled(baselines.efm19_renyi), ORDERS),
    "privacy blanket, Hoeffding": _by_composition(baselines.bbg19_epsilon, strong=False),
    "Feldman et al. (2023)": _by_largest_orders(_unsampled(baselines.fmt23_renyi)),
    "printed lemma, constant 1536": _by_largest_orders(_unsampled(lemmas.shuffle_bound)),
    "printed lemma, two shuffles of a sample": _by_largest_orders(_sampled_only(_two_shuffles)),
    "randomized response on equal data, one round": _one_round,
    "randomized response on equal data, Rényi": _by_renyi(_renyi_lower, _FEW),
}

_SAID = msgspec.toml.decode(
    (resources.files("tacit.literature.shuffling") / "bounds.toml").read_bytes(),
    type=dict[str, dict[Literal["status", "note"], str]],
)

BOUNDS = tuple(ShuffleBound(name=name, price=_PRICES[name], **said) for name, said in _SAID.items())
"""All bounds, in the order of their sources."""
