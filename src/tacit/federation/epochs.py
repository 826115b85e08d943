"""Shuffled gradient descent, epoch by epoch: private steps first, then public ones, with noise.

Source: Jiang (2025), Algorithm 3, which holds Algorithms 2 and 4 to 6 as schedules of epochs. The loop knows
nothing of losses: what a step does is handed in, and everything random is drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.numerics import Array, IntArray, Regularizer, draw_disjoint_order
from tacit.privacy import Order, Placement

__all__ = ["Descend", "Epoch", "nearest_part", "run_epochs"]

_DRAWN = 1 << 18
"""Numbers of noise that are in memory at once: few enough to stay in the cache."""


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One pass: the first steps on private records, the others on public ones.

    Attributes:
        private: Steps on private records, >= 0.
        public: Steps on public records, >= 0; at least one step in all.
        noise: Whether private steps carry noise.
        public_noise: Whether public steps do.
        placement: `EVERY_STEP` draws noise for every step that carries any; `EPOCH_END` draws once, after
            the last step and before the prox, if any step carries noise.
    """

    private: int
    public: int = 0
    noise: bool = True
    public_noise: bool = False
    placement: Placement = Placement.EVERY_STEP

    def __post_init__(self) -> None:
        check_count("private", self.private, low=0)
        check_count("public", self.public, low=0)
        check_count("the steps of an epoch", self.steps)
        if not isinstance(self.placement, Placement):
            raise ParameterError(f"placement must be a Placement, got {self.placement!r}.")

    @property
    def steps(self) -> int:
        """Steps in all."""
        return self.private + self.public

    @property
    def at_end(self) -> bool:
        """Whether noise is drawn once, after the last step."""
        noisy = (self.private > 0 and self.noise) or (self.public > 0 and self.public_noise)
        return noisy and self.placement is Placement.EPOCH_END


def nearest_part(share: float, whole: int) -> int:
    """Return that share of a whole number to the nearest one, of two the larger: what is private of a run."""
    return math.floor(share * whole + 0.5)


class Descend(Protocol):
    """Takes steps w <- w - step_size * (clipped mean gradient + noise_std * noise); deterministic."""

    def __call__(
        self,
        index: IntArray,
        w: Array,
        *,
        public: bool,
        step_size: float | Array,
        noise: Array | None,
        noise_std: float | Array,
    ) -> Array:
        """Return where the steps end.

        Args:
            index: The records of every step, shape (steps, batch); of replicas (seeds, steps, batch).
            w: Start, shape (d,), or (seeds, settings, d).
            public: Whether `index` counts public records; else private ones.
            step_size: eta, or one per setting, shape (settings,).
            noise: Standard normal, shape (steps, d), or (seeds, steps, d); None is none.
            noise_std: What noise is multiplied by before it is added to the gradient of its step; or one per
                setting.
        """
        ...


Rngs = np.random.Generator | Sequence[np.random.Generator]
"""One stream, or one per seed."""


def run_epochs(
    descend: Descend,
    *,
    w: Array,
    n: int,
    epochs: Iterable[Epoch],
    order: Order,
    step_size: float | Array,
    noise_std: float | Array,
    prox: Regularizer,
    rng: Rngs,
    batch: int = 1,
    order_rng: Rngs | None = None,
    follow: Callable[[Array], object] | None = None,
) -> Array:
    """Run shuffled gradient descent and return its last iterate.

    The order depends on `n`, on `order` and on randomness alone, never on a record, and so does what is
    drawn: for two data sets that differ in one record, all but the steps that use it are the same.

    Replicas go side by side: every seed has orders and noise of its own, from a stream of its own, which all
    settings (step sizes and amounts of noise) share, as if each were run alone with that stream.

    Args:
        descend: Takes the steps of a part of an epoch.
        w: Start, shape (d,), float64; (seeds, settings, d) runs replicas.
        n: Private records; of an order that does not come out even in batches the last ones sit an epoch out.
        epochs: What each epoch does, in order.
        order: How private records are ordered; public ones always come as they are, in every epoch again.
        step_size: eta > 0, or one per setting, shape (settings,).
        noise_std: Standard deviation of each coordinate of one draw of noise, on the gradient: in the
            parameters it is eta times that. Or one per setting.
        prox: Applied once at the end of every epoch, with the step of all its steps together.
        rng: Of the noise; of replicas one per seed.
        batch: Records of a step.
        order_rng: Of the orders; None is `rng`.
        follow: Gets w at the end of every epoch. In simulations only: what it sees is not hidden.

    Returns:
        The last iterate, in the shape of `w`.

    Raises:
        ParameterError: An epoch with more private steps than n // batch, a batch out of range, an order that
            is none, or streams that are not one per seed.
    """
    check_count("batch", batch, high=max(n, 1))
    if not isinstance(order, Order):  # a bare string would be taken for a shuffled order
        raise ParameterError(f"order must be an Order, got {order!r}.")
    rngs = _streams(rng, w)
    orders = _orders(n, batch, order, rngs if order_rng is None else _streams(order_rng, w))
    eta, std = (np.asarray(value, dtype=np.float64) for value in (step_size, noise_std))
    alone = w.ndim == 1
    w = w[None, None] if alone else w

    def part(index: IntArray, w: Array, *, public: bool, noise: bool) -> Array:
        """Take the steps of a part of an epoch, in chunks whose noise fits into memory."""
        seeds, steps, _ = index.shape
        chunk = max(1, _DRAWN // max(seeds * w.shape[-1], 1)) if noise else steps
        for start in range(0, steps, chunk):
            some = index[:, start : start + chunk]
            drawn = _draw(rngs, (some.shape[1], w.shape[-1])) if noise else None
            if alone:
                once = None if drawn is None else drawn[0]
                w = descend(some[0], w[0, 0], public=public, step_size=eta, noise=once, noise_std=std)
                w = w[None, None]
            else:
                w = descend(some, w, public=public, step_size=eta, noise=drawn, noise_std=std)
        return w

    for epoch in epochs:
        if epoch.private > n // batch:
            raise ParameterError(
                f"private steps of an epoch must be at most {n // batch}, a batch of {batch} of {n} records "
                f"each, got {epoch.private}."
            )
        every = epoch.placement is Placement.EVERY_STEP
        if epoch.private:
            index = next(orders)[:, : epoch.private]
            w = part(index, w, public=False, noise=every and epoch.noise)
        if epoch.public:
            index = np.arange(epoch.public * batch).reshape(1, epoch.public, batch)
            index = np.broadcast_to(index, (len(w), *index.shape[1:]))
            w = part(index, w, public=True, noise=every and epoch.public_noise)
        if epoch.at_end:
            w = w - (eta * std)[..., None] * _draw(rngs, (1, w.shape[-1]))
        w = _prox(prox, epoch.steps * eta, w)
        if follow is not None:
            follow(w[0, 0] if alone else w)
    return w[0, 0] if alone else w


def _streams(rng: Rngs, w: Array) -> Sequence[np.random.Generator]:
    """Return one stream per seed."""
    streams = [rng] if isinstance(rng, np.random.Generator) else rng
    if w.ndim not in (1, 3) or len(streams) != (1 if w.ndim == 1 else len(w)):
        raise ParameterError(
            f"w must have shape (d,), or (seeds, settings, d) with one stream per seed, got shape {w.shape} "
            f"and {len(streams)} streams."
        )
    return streams


def _draw(rngs: Sequence[np.random.Generator], shape: tuple[int, int]) -> Array:
    """Return standard normal numbers, (seeds, *shape), each seed's in the order of its stream."""
    drawn = np.empty((len(rngs), *shape))
    for one, rng in zip(drawn, rngs, strict=True):
        rng.standard_normal(out=one)
    return drawn


def _orders(n: int, batch: int, order: Order, rngs: Sequence[np.random.Generator]) -> Iterator[IntArray]:
    """Yield the private records of every step, epoch after epoch: shape (seeds, n // batch, batch)."""
    steps = n // batch
    index: IntArray = np.broadcast_to(np.arange(n), (len(rngs), n))
    fresh = order is not Order.IG
    while True:
        if fresh:
            index = np.stack([draw_disjoint_order(n, rng) for rng in rngs])
        fresh = order is Order.RR
        yield index[:, : steps * batch].reshape(-1, steps, batch)


def _prox(prox: Regularizer, times: Array, w: Array) -> Array:
    """Return the proximal point for one step size, or for one per setting."""
    if times.ndim == 0:
        return prox(float(times), w)
    if len(set(times.tolist())) == 1:
        return prox(float(times[0]), w)
    return np.stack([prox(float(t), w[:, i]) for i, t in enumerate(times)], axis=1)
