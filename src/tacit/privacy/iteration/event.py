"""The event of a shuffled gradient run, and the conditions under which hidden iterates count as hidden."""

from __future__ import annotations

import math
from typing import ClassVar, Protocol

import numpy as np

from tacit.errors import (
    ParameterError,
    check_count,
    check_finite,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events import Gdp, Leaf, Zcdp
from tacit.privacy.iteration.energies import Order, Placement, Release, energy_law, epoch_law
from tacit.privacy.iteration.law import EnergyLaw
from tacit.privacy.neighbours import Neighbours, Relation

__all__ = [
    "HiddenFacts",
    "Iteration",
    "check_contraction",
    "check_hidden",
    "check_iterated",
    "check_placement",
    "clauses_of_hidden",
]

_MOST_STEPS = 2**52  # positions of more steps have no float of their own: their mass would be lost
_DECIMAL = 1 + 1e-14  # a step size of 2 / L times L may exceed 2 by the rounding of decimals


def check_contraction(
    step_size: float,
    smoothness: float,
    *,
    convex: bool = True,
    clip_safe: bool = True,
    prox_convex: bool = True,
    release: Release = Release.LAST,
) -> None:
    """Refuse to hide iterates where a step may carry two runs further apart.

    A step x - eta * grad f(x) of a convex, L-smooth f is 1-Lipschitz if and only if eta <= 2 / L; the prox of
    a convex function always is. Without that, noise of later steps hides nothing of an earlier one, and only
    the release of all iterates can be priced (docs/theory/iteration.md, section 3).

    Args:
        step_size: eta > 0.
        smoothness: L >= 0, a bound for every possible record, private and public: never read off the data.
        convex: Whether the loss of every record is convex.
        clip_safe: Whether gradients are not clipped, or clipped gradients are again those of a convex,
            L-smooth loss: true for generalised linear and radial losses, not for others.
        prox_convex: Whether the regulariser is convex; needed where the ends of epochs are hidden.
        release: What leaves.

    Raises:
        ParameterError: A condition fails that this release needs.
    """
    _check_release(release)
    check_positive("step_size", step_size)
    check_non_negative("smoothness", smoothness)
    if release is Release.ALL:
        return
    hides = f'release="{release.value}" hides iterates, which needs'
    instead = 'release="all" needs none of this'
    if not step_size * smoothness <= 2 * _DECIMAL:
        raise ParameterError(
            f"{hides} step_size <= 2 / smoothness, got {step_size!r} > 2 / {smoothness!r}; take smaller "
            f"steps, or {instead}."
        )
    if not convex:
        raise ParameterError(f"{hides} a convex loss (convex=True); {instead}.")
    if not clip_safe:
        raise ParameterError(
            f"{hides} steps that stay contractions when gradients are clipped (clip_safe=True: no clipping, "
            f"or a generalised linear or radial loss); {instead}."
        )
    if release is Release.LAST and not prox_convex:
        raise ParameterError(
            f'{hides} a convex regulariser (prox_convex=True); release="epochs" does not, and {instead}.'
        )


class HiddenFacts(Protocol):
    """What an event says of a run whose iterates are hidden; see `Iteration`."""

    @property
    def step_times_smoothness(self) -> float | None:
        """Step size times a bound on the smoothness."""
        ...

    @property
    def convex(self) -> bool:
        """Whether every record's loss is convex."""
        ...

    @property
    def clip_safe(self) -> bool:
        """Whether clipping keeps steps contractive."""
        ...

    @property
    def prox_convex(self) -> bool:
        """Whether the regulariser is convex."""
        ...

    @property
    def epoch_contraction(self) -> float:
        """Lipschitz factor of the prox."""
        ...

    @property
    def diameter(self) -> float | None:
        """Diameter of a ball that every epoch ends in."""
        ...


class Iteration(Leaf, frozen=True, tag=True):
    """A run of noisy shuffled gradient descent, whose iterates are in part hidden.

    Algorithms 3 to 6 of Jiang (2025); the price is derived in docs/theory/iteration.md.

    Every epoch takes n steps x <- x - eta (gradient + noise), the first `private` on one record each and the
    others on public ones, all with fresh noise, then a prox step. The unit that differs is used by at most
    one step of an epoch. What holds of the loss is stated in the event, so that who prices it again sees
    what the price rests on; where nothing is stated, only the release of all iterates has a price.

    Attributes:
        noise_multiplier: Standard deviation of the noise on one gradient / sensitivity of one gradient:
            sigma / (2 G) for gradients of norm at most G when one is replaced, sigma / G when blanked out.
        n: Steps per epoch; public. With batches of b records: their number.
        epochs: Number of epochs K.
        private: Private steps of each epoch, the first ones; 0..n, None for all n.
        order: How records are ordered; never by their values. Orders may be published.
        release: What leaves: all iterates, those at the ends of epochs, or the last one alone.
        neighbours: Replace-one or zero-out; n is public, so nothing can be added or removed.
        worst_case_order: Whether every order that may be drawn is protected, instead of their average.
        step_times_smoothness: eta times a bound L on the smoothness for every possible record; at most 2.
        convex: Whether every record's loss is convex.
        clip_safe: Whether clipping keeps steps contractive, see `check_contraction`.
        prox_convex: Whether the regulariser is convex.
        epoch_contraction: Lipschitz factor of the prox, in (0, 1]; below 1 only for release "last".
        diameter: Diameter of a ball that the prox projects on, in units of eta times the sensitivity of a
            gradient; only for release "last". None: unbounded.
        placement: Whether every step has noise of its own, or an epoch one draw after its last step, before
            the prox; then nothing within an epoch may leave.

    Two runs with the same order, shuffled once, are not two such events: their positions are the same.

    Raises:
        ParameterError: A value out of range, add-remove neighbours, or a condition of the release not met.

    Example:
        >>> from tacit.privacy import epsilon_of
        >>> facts = dict(step_times_smoothness=1.0, convex=True, clip_safe=True, prox_convex=True)
        >>> run = Iteration(1.0, 1000, 50, order=Order.RR, release=Release.LAST, **facts)
        >>> round(epsilon_of(run, 1e-6), 3), round(epsilon_of(Iteration(1.0, 1000, 50), 1e-6), 1)
        (3.235, 57.8)
    """

    continuous: ClassVar[bool] = True

    noise_multiplier: float
    n: int
    epochs: int
    private: int | None = None
    order: Order = Order.IG
    release: Release = Release.ALL
    neighbours: Neighbours = Neighbours()
    worst_case_order: bool = False
    step_times_smoothness: float | None = None
    convex: bool = False
    clip_safe: bool = False
    prox_convex: bool = False
    epoch_contraction: float = 1.0
    diameter: float | None = None
    placement: Placement = Placement.EVERY_STEP

    method: ClassVar[str] = "privacy amplification by iteration"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)
        check_count("n", self.n, high=_MOST_STEPS)
        check_count("epochs", self.epochs, high=_MOST_STEPS)
        if self.private is not None:
            check_count("private", self.private, low=0, high=self.n)
        check_iterated(self.order, self.neighbours)
        _check_release(self.release)
        check_placement(self.placement)
        if not isinstance(self.worst_case_order, bool):
            raise ParameterError(f"worst_case_order must be True or False, got {self.worst_case_order!r}.")
        if self.release is Release.ALL and self.placement is Placement.EPOCH_END:
            raise ParameterError(
                'placement="epoch-end" leaves the steps of an epoch without noise: they must be hidden, got '
                'release="all".'
            )
        check_hidden(self, self.release)

    def work(self, *, many: bool) -> float:
        """Return the work of the law over the orders, and of averaging over it."""
        n, epochs, private, order, release = self._shape
        if self.placement is Placement.EPOCH_END:
            release = Release.ALL  # whose law it has
        if self.epoch_contraction < 1 or self.diameter is not None:
            # Where all steps are private, every epoch uses the record.
            tables = {Order.IG: 1, Order.SO: 64, Order.RR: 65 * (32 if private < n else 1)}[order]
            return tables * 16.0 * epochs * (1 if self.diameter is None else 50)
        if order is Order.IG or (release is Release.ALL and private == n):
            return 1e4
        energies = min(private if release is not Release.ALL else epochs, 100_000)
        convolved = 3e7 if order is Order.RR and release is Release.EPOCHS else 0.0
        counted = 2e3 * energies if release is Release.ALL else 0.0  # binomial weights
        return 1e5 + energies * 1000.0 * (1 + many) + convolved + counted

    @property
    def law(self) -> EnergyLaw:
        """The law of the energy of the run over its orders."""
        return energy_law(*self._shape, self.epoch_contraction, self.diameter, self.placement)

    @property
    def _shape(self) -> tuple[int, int, int, Order, Release]:
        private = self.n if self.private is None else self.private
        order = Order.IG if self.worst_case_order else self.order
        return self.n, self.epochs, private, order, self.release

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the price rests on besides the noise, as clauses of a guarantee's sentence."""
        return clauses_of_hidden(self, self.release)

    @property
    def concentrated(self) -> Zcdp:
        """The concentrated-DP level of the worst order: rho = E / (2 noise_multiplier^2)."""
        mu = self._worst_mu
        return Zcdp(max(mu * mu / 2, 1e-300) * (1 + 1e-12), self.neighbours)

    @property
    def _worst_mu(self) -> float:
        return math.sqrt(self.law.largest) / self.noise_multiplier

    def curve(self) -> Curve:
        """Return the curve of this release: Gaussian curves, averaged over the orders."""
        return self.law.curve(self.noise_multiplier)

    def repeated(self, count: int) -> Leaf | None:
        """Return several runs whose orders are fixed as one Gaussian release; None for random orders."""
        if count == 1 or not self.law.is_fixed:
            return None
        return Gdp(math.sqrt(count) * self._worst_mu * (1 + 1e-12), self.neighbours)

    def renyi(self, orders: Array) -> Array:
        """Return a bound on the Rényi divergence at each order > 1: Gaussians, averaged over orders."""
        z = self.noise_multiplier  # its square may be no float
        with np.errstate(over="ignore"):
            rates = orders * (orders - 1) / 2 / z / z
        n, epochs, private, order, release = self._shape
        every = self.placement is Placement.EVERY_STEP
        if order is Order.RR and release is Release.EPOCHS and every:
            # Independent epochs: moments multiply, and no grid is needed.
            moments = epochs * epoch_law(n, private).log_moment(rates)
        else:
            moments = self.law.log_moment(rates)
        return np.asarray(moments / (orders - 1) * (1 + 1e-12))


def check_iterated(order: Order, neighbours: Neighbours) -> None:
    """Refuse an order that is a bare string, and neighbours whose number of records differs."""
    if not isinstance(order, Order):
        raise ParameterError(f"order must be an Order, got {order!r}.")
    if neighbours.relation is Relation.ADD_REMOVE:
        raise ParameterError(
            "an iteration has a public number of steps: its neighbours must be replace-one or zero-out, got "
            "add-remove."
        )


def check_hidden(facts: HiddenFacts, release: Release) -> None:
    """Refuse hidden iterates without the facts they need, and refinements that do not apply."""
    for name in ("convex", "clip_safe", "prox_convex"):
        if not isinstance(getattr(facts, name), bool):
            raise ParameterError(f"{name} must be True or False, got {getattr(facts, name)!r}.")
    if facts.step_times_smoothness is not None:
        check_finite("step_times_smoothness", facts.step_times_smoothness)
        check_non_negative("step_times_smoothness", facts.step_times_smoothness)
    check_probability("epoch_contraction", facts.epoch_contraction, low_open=True)
    if facts.diameter is not None:
        check_positive("diameter", facts.diameter)
    if release is not Release.LAST and (facts.epoch_contraction < 1 or facts.diameter is not None):
        raise ParameterError(
            'epoch_contraction and diameter matter between hidden epochs: they need release="last", got '
            f'"{release.value}".'
        )
    if release is Release.ALL:
        return
    if facts.step_times_smoothness is None:
        raise ParameterError(
            f'release="{release.value}" hides iterates, which needs step_times_smoothness (eta times a '
            'public bound on the smoothness), got None; release="all" does not.'
        )
    check_contraction(
        1.0,
        facts.step_times_smoothness,
        convex=facts.convex,
        clip_safe=facts.clip_safe,
        prox_convex=facts.prox_convex,
        release=release,
    )


def clauses_of_hidden(facts: HiddenFacts, release: Release) -> tuple[str, ...]:
    """Return what a price rests on besides the noise, as clauses of a guarantee's sentence."""
    order = "the order of the records does not depend on their values"
    if release is Release.ALL:
        return (order,)
    leaves = {
        Release.EPOCHS: "of all iterates only those at the ends of epochs leave",
        Release.LAST: "only the last iterate leaves",
    }[release]
    step = f"{facts.step_times_smoothness or 0.0:.6g}"
    loss = (
        "the loss of every possible record, clipped as it is, is convex with a smoothness of at most "
        f"{step} / step size"
    )
    clauses = [order, leaves, loss]
    if release is Release.LAST:
        clauses.append("the regulariser is convex")
    if facts.epoch_contraction < 1:
        factor = f"{facts.epoch_contraction:.6g}"
        clauses.append(f"the regulariser's step contracts distances to {factor} of what they were")
    if facts.diameter is not None:
        width = f"{facts.diameter:.6g}"
        clauses.append(f"every epoch ends in a ball {width} times as wide as one step's sensitivity")
    return tuple(clauses)


def check_placement(placement: Placement) -> None:
    """Refuse a bare string, which would slip past comparisons by identity."""
    if not isinstance(placement, Placement):
        raise ParameterError(f"placement must be a Placement, got {placement!r}.")


def _check_release(release: Release) -> None:
    """Refuse a bare string, which would slip past comparisons by identity."""
    if not isinstance(release, Release):
        raise ParameterError(f"release must be a Release, got {release!r}.")
