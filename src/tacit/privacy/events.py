"""Events: what a release costs, written down as data.

A leaf is one release, already divided by its sensitivity under the neighbours it carries. Combinators say how
releases go together. An event knows its privacy curve; `tacit.privacy.pricing` merges and composes them.

The fields of an event are plain Python numbers, whatever they were given as: NumPy's would compute in 32
bits, or overflow, as they came.

What a price rests on besides the noise (an honest shuffler, a secret sample) is said by the event itself, in
its `assumptions`, and nowhere else: `guarantee` prints it, and `verify` refuses a statement without it.

To add a leaf: subclass `Leaf`, give it fields, `curve()` and `assumptions`. It is then priced, serialised and
verified like all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Any, ClassVar

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive, check_probability
from tacit.numerics import settle
from tacit.privacy import curves, divergences
from tacit.privacy.curves import Array, Curve
from tacit.privacy.neighbours import Neighbours, Part, Relation

__all__ = [
    "AnyOf",
    "ApproximateDP",
    "Compose",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Gaussian",
    "Gdp",
    "Laplace",
    "Leaf",
    "NonPrivate",
    "Parallel",
    "PureDP",
    "Repeat",
    "Sample",
    "Sampled",
    "Zcdp",
    "assumptions_of",
    "check_whole_unit",
    "neighbours_of",
    "parts_of",
]


_FINE = math.sqrt(8.0)
"""A grid is fine where rounding costs an eighth of the variance or less: concentrated DP is dearer then."""
_MOST_STD, _MOST_SHIFT = 1000.0, 1e9
"""Up to which discrete Gaussian noise has a table of its own law; beyond, rounding costs 2e-6 of its size."""
_ROUNDED = 1e-6
"""How far below a whole number a sensitivity may lie, relatively, and count as it; float32 is finer."""


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """A release, or releases together. Immutable, comparable, serialisable."""

    registry: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        known = Event.registry.get(cls.__name__)
        if known is not None and known.__module__ != cls.__module__:
            raise TypeError(f"there is an event named {cls.__name__} already.")
        if cls.__name__ != "Leaf":
            Event.registry[cls.__name__] = cls
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = _settled(cls.__post_init__)  # type: ignore[assignment, method-assign]

    def __post_init__(self) -> None:
        settle(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the price rests on besides the noise and the parts, as clauses of a guarantee's sentence."""
        return ()


def _settled(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a check of an event that sees plain numbers; no kind of event can forget to ask for them."""

    @wraps(check)
    def settled(event: Event) -> None:
        settle(event)
        check(event)

    return settled


class Leaf(Event, frozen=True, tag=True):
    """One release, with the neighbours its sensitivity was taken under."""

    method: ClassVar[str] = "exact privacy curve"
    """How the price of this release alone is computed, in words."""

    def curve(self) -> Curve:
        """Return the privacy curve of this release."""
        raise ParameterError(f"{type(self).__name__} has no privacy curve of its own.")

    @property
    def concentrated(self) -> Zcdp | None:
        """A concentrated-DP level of this release; None where none is known."""
        return None

    def repeated(self, count: int) -> Leaf | None:  # noqa: ARG002 - what a subclass may use
        """Return `count` such releases as one leaf; None where only a convolution composes them."""
        return None

    def work(self, *, many: bool) -> float:  # noqa: ARG002 - what a subclass may use
        """Return about how many numbers its price takes; `many`: its curve is asked for on a grid."""
        return 1e4

    def renyi(self, orders: Array) -> Array:
        """Return a bound on the Rényi divergence at each order > 1, in both directions; infinite: none."""
        return np.full(orders.shape, math.inf)


class Gaussian(Leaf, frozen=True, tag=True):
    """Gaussian noise on a vector.

    Attributes:
        noise_multiplier: Standard deviation / L2 sensitivity. Finite, > 0.
        neighbours: The relation under which the sensitivity was taken.
    """

    noise_multiplier: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "analytic Gaussian"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.gaussian_curve(1 / self.noise_multiplier)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, exactly."""
        return divergences.concentrated_renyi(0.5 / self.noise_multiplier / self.noise_multiplier, orders)


class Gdp(Leaf, frozen=True, tag=True):
    """A release no easier to attack than N(mu, 1) against N(0, 1): mu-Gaussian-DP (Dong, Roth, Su 2022)."""

    mu: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "analytic Gaussian"

    def __post_init__(self) -> None:
        check_non_negative("mu", self.mu)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.gaussian_curve(self.mu)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, as those of the Gaussian pair."""
        return divergences.concentrated_renyi(self.mu * self.mu / 2, orders)


class Laplace(Leaf, frozen=True, tag=True):
    """Laplace noise, coordinate by coordinate.

    Attributes:
        noise_multiplier: Scale b / L1 sensitivity. Finite, > 0.
        dim: Number of coordinates. In one dimension the exact curve is used, in more the pure level
            1 / noise_multiplier alone.
        neighbours: The relation under which the sensitivity was taken.
    """

    noise_multiplier: float
    dim: int = 1
    neighbours: Neighbours = Neighbours()

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)
        check_count("dim", self.dim)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        level = 1 / self.noise_multiplier
        return curves.laplace_curve(level) if self.dim == 1 else curves.approximate_dp_curve(level)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`: exactly in one dimension, else by the pure level."""
        level = 1 / self.noise_multiplier
        known = divergences.laplace_renyi if self.dim == 1 else divergences.pure_dp_renyi
        return known(level, orders)


class PureDP(Leaf, frozen=True, tag=True):
    """Any release with pure differential privacy at level epsilon."""

    epsilon: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "pure differential privacy"

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.approximate_dp_curve(self.epsilon)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, at most those of randomised response."""
        return divergences.pure_dp_renyi(self.epsilon, orders)


class ApproximateDP(Leaf, frozen=True, tag=True):
    """Any release with (epsilon, delta)-differential privacy."""

    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours()

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)
        check_probability("delta", self.delta, high_open=True)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.approximate_dp_curve(self.epsilon, self.delta)


class Zcdp(Leaf, frozen=True, tag=True):
    """Any release whose Rényi divergences of order alpha are at most alpha * rho (Bun and Steinke 2016)."""

    rho: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "concentrated differential privacy"

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.zcdp_curve(self.rho)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, by definition."""
        return divergences.concentrated_renyi(self.rho, orders)


class DiscreteGaussian(Leaf, frozen=True, tag=True):
    """Discrete Gaussian noise on an integer vector.

    Attributes:
        std: The parameter sigma of P(y) ~ exp(-y^2 / (2 sigma^2)), in grid steps. Finite, > 0.
        sensitivity: L2 sensitivity of the integer vector in grid steps, rounding included. Finite, > 0.
        neighbours: The relation under which the sensitivity was taken.
        dim: Number of coordinates, up to 2**40; None where it is not known.

    One number is priced by its own law, the shift by the largest whole number of steps; so are vectors whose
    sensitivity is below sqrt(2), which move by one step in one coordinate. For other vectors, the
    noise on a fine grid is a randomised rounding of continuous noise of a slightly smaller variance, so it
    costs no more than that Gaussian (docs/theory/noise.md); on coarser grids only concentrated DP with rho =
    sensitivity^2 / (2 sigma^2) is used (Canonne, Kamath and Steinke 2020, arXiv:2004.00010v4, Theorem 14).
    """

    std: float
    sensitivity: float
    neighbours: Neighbours = Neighbours()
    dim: int | None = None

    MOST_COORDINATES: ClassVar[int] = 2**40

    def __post_init__(self) -> None:
        check_positive("std", self.std)
        check_positive("sensitivity", self.sensitivity)
        if self.dim is not None:
            check_count("dim", self.dim, high=self.MOST_COORDINATES)

    @property
    def distance(self) -> float:
        """The sensitivity; where only one number can move, the whole steps in it."""
        return float(self._steps or self.sensitivity)

    @property
    def has_own_law(self) -> bool:
        """Whether the release alone is priced by its own law."""
        return self._steps > 0 and self.std <= _MOST_STD

    @property
    def _steps(self) -> int:
        """The most whole steps that the one number that moves can move by; 0 where there is none."""
        # What was computed in float32 and is just below a whole number may have been that number.
        length = self.sensitivity * (1 + _ROUNDED)
        # Integer vectors that are less than sqrt(2) apart differ in one coordinate, by one step.
        alone = self.dim == 1 or length < math.sqrt(2)
        if not (alone and length >= 1 and self.sensitivity <= _MOST_SHIFT):
            return 0
        return min(math.ceil(self.sensitivity), math.floor(length))

    def work(self, *, many: bool) -> float:
        """Return the size of a table of the law, and of the search for an order."""
        return 1e5 * (1 + 20 * many) + (400 * self.std if self.has_own_law else 0.0)

    def rounded(self, releases: int = 1) -> Gaussian | None:
        """The continuous release that this one, of `releases` in all, rounds; None on a coarse grid.

        The variance given up lets all probabilities of all releases together be off by a factor of 1 + 1e-30.
        """
        coordinates = self.MOST_COORDINATES if self.dim is None else self.dim
        given_up = (math.log(5e30) + math.log(releases) + math.log(coordinates)) / (2 * math.pi**2)
        std, lost = self.std, math.sqrt(given_up)
        if std < _FINE * lost:
            return None
        inside = math.sqrt(std - lost) * math.sqrt(std + lost)
        return Gaussian(min(inside / self.distance, 1e300), self.neighbours)

    @property
    def concentrated(self) -> Zcdp:
        """The concentrated-DP level of this release, whatever the grid."""
        mu = self.distance / self.std
        return Zcdp(max(mu * mu / 2, 1e-300), self.neighbours)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        if self.has_own_law:
            return curves.discrete_gaussian_curve(self.std, int(self.distance))
        fine = self.rounded()
        proofs = [self.concentrated.curve()] + ([fine.curve()] if fine is not None else [])
        return curves.minimum(proofs)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, by the concentrated level."""
        return self.concentrated.renyi(orders)


class DiscreteLaplace(Leaf, frozen=True, tag=True):
    """Discrete Laplace noise on an integer vector, priced by its own law.

    Attributes:
        scale: The parameter b of P(y) ~ exp(-|y| / b), in grid steps. Finite, > 0.
        sensitivity: L1 sensitivity of the integer vector in whole grid steps, >= 1.
        dim: Number of coordinates; in one dimension the exact curve is used, in more the pure level alone.
        neighbours: The relation under which the sensitivity was taken.
    """

    scale: float
    sensitivity: int
    dim: int = 1
    neighbours: Neighbours = Neighbours()

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)
        check_count("sensitivity", self.sensitivity, high=10**18)  # what a float can hold, and to spare
        check_count("dim", self.dim)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        level = self.sensitivity / self.scale
        if self.dim > 1:
            return curves.approximate_dp_curve(level)
        return curves.discrete_laplace_curve(self.scale, self.sensitivity)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, by the pure level."""
        return divergences.pure_dp_renyi(self.sensitivity / self.scale, orders)


class NonPrivate(Leaf, frozen=True, tag=True):
    """A release for which nothing is claimed.

    Whatever contains it has infinite epsilon, unless another proof covers the same release or the unit is
    sampled into it with a probability of at most delta.
    """

    neighbours: Neighbours = Neighbours()

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.nothing_hidden()


class Compose(Event, frozen=True, tag=True):
    """Several releases on the same data, each possibly chosen after seeing the earlier ones."""

    parts: tuple[Event, ...]

    def __post_init__(self) -> None:
        _check_parts("Compose", self.parts)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that all parts share."""
        return neighbours_of(self.parts[0])


class Repeat(Event, frozen=True, tag=True):
    """One release, `count` times on the same data."""

    part: Event
    count: int

    def __post_init__(self) -> None:
        check_count("count", self.count, high=10**300)  # merged prices of nested repetitions are that large
        _check_parts("Repeat", (self.part,))

    @property
    def neighbours(self) -> Neighbours:
        """The relation of the repeated part."""
        return neighbours_of(self.part)


class Sample(StrEnum):
    """How a secret sample is drawn: a fixed number of units, or each unit on its own."""

    FIXED = "fixed"
    POISSON = "poisson"


class Sampled(Event, frozen=True, tag=True):
    """A release on a secret sample of the units.

    Two releases on one sample are `Sampled(Compose((a, b)), ...)`, not two samples.

    What differs between neighbours must be all that a unit puts into the release. Where only a part of it
    differs (sensitive attributes, a reward), the noise hides that part alone, and the rest may show whether
    the unit was sampled; a sample of rate q then costs up to q times the delta of the release. That is
    refused here: price the release without `Sampled`.

    Attributes:
        part: What is released on the sample.
        rate: Size of the sample / number of units (fixed), or probability of each unit (Poisson); in (0, 1].
        how: A fixed size goes with replace-one, Poisson with add-remove and zero-out.
    """

    part: Event
    rate: float
    how: Sample = Sample.FIXED

    def __post_init__(self) -> None:
        check_probability("rate", self.rate, low_open=True)
        if not isinstance(self.how, Sample):
            raise ParameterError(f"how must be a Sample, got {self.how!r}.")
        _check_parts("Sampled", (self.part,))
        replaces = self.neighbours.relation is Relation.REPLACE_ONE
        if replaces != (self.how is Sample.FIXED):
            raise ParameterError(
                f"a {self.how.value} sample cannot be priced under {self.neighbours.relation.value} "
                "neighbours: use a fixed size with replace-one, Poisson with add-remove or zero-out."
            )
        if self.rate < 1:
            check_whole_unit("a sample", self.neighbours)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the sample is secret."""
        return (f"nobody learns which {self.neighbours.unit.plural} are sampled",) if self.rate < 1 else ()

    @property
    def neighbours(self) -> Neighbours:
        """The relation of the part."""
        return neighbours_of(self.part)


class Parallel(Event, frozen=True, tag=True):
    """Releases on disjoint data (one pass, shards, phases): each unit is in at most one part.

    Which part that is must not depend on the unit's value, or a replaced unit could move from one to another.
    """

    parts: tuple[Event, ...]

    def __post_init__(self) -> None:
        _check_parts("Parallel", self.parts)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That no value of a unit decides which part it, or another unit, is in."""
        unit = self.neighbours.unit
        if self.neighbours.relation is Relation.ADD_REMOVE:
            return (
                f"which of the disjoint parts a {unit.value} is in does not depend on other {unit.plural}",
            )
        return (f"{unit.plural} are dealt to disjoint parts without looking at any of them",)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that all parts share."""
        return neighbours_of(self.parts[0])


class AnyOf(Event, frozen=True, tag=True):
    """One release with several whole proofs; at every epsilon the best of them holds."""

    proofs: tuple[Event, ...]

    def __post_init__(self) -> None:
        _check_parts("AnyOf", self.proofs)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that all proofs share."""
        return neighbours_of(self.proofs[0])


def assumptions_of(event: Event) -> tuple[str, ...]:
    """Return what the price of an event and of all its parts rests on besides the noise, each clause once.

    Args:
        event: Any event tree.

    Returns:
        Clauses of a guarantee's sentence: no statement may leave one out.
    """
    # Equal parts say the same: a plan may hold thousands.
    clauses = [clause for part in dict.fromkeys(parts_of(event)) for clause in assumptions_of(part)]
    return tuple(dict.fromkeys((*clauses, *event.assumptions)))


def parts_of(event: Event) -> tuple[Event, ...]:
    """Return the events that an event combines; none for a leaf."""
    match event:
        case Compose(parts=parts) | Parallel(parts=parts) | AnyOf(proofs=parts):
            return parts
        case Repeat(part=part) | Sampled(part=part):
            return (part,)
        case _:
            return ()


def check_whole_unit(what: str, neighbours: Neighbours) -> None:
    """Refuse amplification where neighbours differ in a part of a unit only: the rest tells who takes part.

    With the other part unbounded and known, a release on a sample of rate q has exactly q times the delta of
    the release: at q = 0.1 and a noise multiplier of 1, epsilon 3.8044 at delta 1e-5 where the curve of a
    hidden sample claims 1.6845 (docs/theory/accounting.md).

    Args:
        what: What would amplify, for the message.
        neighbours: The relation.

    Raises:
        ParameterError: Only sensitive attributes or a reward differ.
    """
    if neighbours.part in (Part.SENSITIVE, Part.REWARD):
        raise ParameterError(
            f"{what} hides nobody where neighbours differ in the {neighbours.part.value} part only: the rest "
            f"of the {neighbours.unit.value} shows who is in it. Price the release without it, or under "
            "neighbours that differ in the whole unit."
        )


def neighbours_of(event: Event) -> Neighbours:
    """Return the neighbouring relation an event is priced under."""
    relation = getattr(event, "neighbours", None)
    if not isinstance(relation, Neighbours):
        raise ParameterError(f"{type(event).__name__} does not say which neighbours it is for.")
    return relation


def _check_parts(name: str, parts: tuple[Event, ...]) -> None:
    """Refuse no parts, and parts of different neighbours."""
    if not parts:
        raise ParameterError(f"{name} needs at least one part, got none.")
    try:
        relations = {neighbours_of(part) for part in parts}
    except RecursionError as error:
        raise ParameterError(f"{name} must not hold events that are nested that deep.") from error
    if len(relations) > 1:
        found = "; ".join(sorted(str(r) for r in relations))
        raise ParameterError(f"{name} refuses to combine events of different neighbours: {found}.")
