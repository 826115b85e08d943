"""Shuffled gradient descent, epoch by epoch: private steps first, then public ones, with noise.

Source: Jiang (2025), Algorithm 3, which holds Algorithms 2 and 4 to 6 as schedules of epochs. The loop knows
nothing of losses: what a step does is handed in, and everything random is drawn here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.numerics import Array, IntArray, Regularizer, draw_disjoint_order
from tacit.privacy import Order, Placement

__all__ = ["Descend", "Epoch", "run_epochs"]

_DRAWN = 1 << 20
"""Numbers of noise that are in memory at once."""


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


class Descend(Protocol):
    """Takes steps w <- w - step_size * (clipped mean gradient + noise); deterministic."""

    def __call__(
        self, index: IntArray, w: Array, *, public: bool, step_size: float | Array, noise: Array | None
    ) -> Array:
        """Return where the steps end.

        Args:
            index: The records of every step, shape (steps, batch); (R, steps, batch) where R replicas have
                orders of their own.
            w: Start, shape (d,), or (R, d) for R replicas.
            public: Whether `index` counts public records; else private ones.
            step_size: eta, or one per replica, shape (R,).
            noise: Added to the gradient of every step, shape (steps, d), or (R, steps, d); None is none.
        """
        ...


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
    rng: np.random.Generator,
    batch: int = 1,
    order_rng: np.random.Generator | None = None,
) -> Array:
    """Run shuffled gradient descent and return its last iterate.

    The order depends on `n`, on `order` and on randomness alone, never on a record, and so does what is
    drawn: for two data sets that differ in one record, all but the steps that use it are the same.

    Args:
        descend: Takes the steps of a part of an epoch.
        w: Start, shape (d,), float64; (R, d) runs R replicas at once, each with orders and noise of its own.
        n: Private records; of an order that does not come out even in batches the last ones sit an epoch out.
        epochs: What each epoch does, in order.
        order: How private records are ordered; public ones always come as they are, in every epoch again.
        step_size: eta > 0, or one per replica, shape (R,).
        noise_std: Standard deviation of each coordinate of one draw of noise, on the gradient: in the
            parameters it is eta times that. Or one per replica.
        prox: Applied once at the end of every epoch, with the step of all its steps together.
        rng: Of the noise.
        batch: Records of a step.
        order_rng: Of the orders; None is `rng`.

    Returns:
        The last iterate, in the shape of `w`.

    Raises:
        ParameterError: An epoch with more private steps than n // batch, or a batch out of range.
    """
    check_count("batch", batch, high=max(n, 1))
    orders = _orders(n, batch, order, w.shape[:-1], rng if order_rng is None else order_rng)
    eta, std = (np.asarray(value, dtype=np.float64) for value in (step_size, noise_std))
    for epoch in epochs:
        if epoch.private > n // batch:
            raise ParameterError(
                f"private steps of an epoch must be at most {n // batch}, a batch of {batch} of {n} records "
                f"each, got {epoch.private}."
            )
        every = epoch.placement is Placement.EVERY_STEP
        if epoch.private:
            index = next(orders)[..., : epoch.private, :]
            source = rng if every and epoch.noise else None
            w = _part(descend, index, w, public=False, step_size=step_size, std=std, rng=source)
        if epoch.public:
            index = np.arange(epoch.public * batch).reshape(epoch.public, batch)
            source = rng if every and epoch.public_noise else None
            w = _part(descend, index, w, public=True, step_size=step_size, std=std, rng=source)
        if epoch.at_end:
            w = w - _per_replica(eta * std, w.ndim) * rng.standard_normal(w.shape)
        w = _prox(prox, epoch.steps * eta, w)
    return w


def _orders(
    n: int, batch: int, order: Order, replicas: tuple[int, ...], rng: np.random.Generator
) -> Iterator[IntArray]:
    """Yield the private records of every step, epoch after epoch: shape (n // batch, batch), or with (R,)."""
    steps = n // batch
    index: IntArray = np.arange(n)
    fresh = order is not Order.IG
    while True:
        if fresh:
            index = (
                rng.permuted(np.broadcast_to(np.arange(n), (*replicas, n)), axis=-1)
                if replicas
                else draw_disjoint_order(n, rng)
            )
        fresh = order is Order.RR
        yield index[..., : steps * batch].reshape(*index.shape[:-1], steps, batch)


def _part(
    descend: Descend,
    index: IntArray,
    w: Array,
    *,
    public: bool,
    step_size: float | Array,
    std: Array,
    rng: np.random.Generator | None,
) -> Array:
    """Take the steps of a part of an epoch, in chunks whose noise fits into memory."""
    steps = index.shape[-2]
    chunk = steps if rng is None else max(1, _DRAWN // max(w.size, 1))
    for start in range(0, steps, chunk):
        some = index[..., start : start + chunk, :]
        noise = None
        if rng is not None:
            shape = (*w.shape[:-1], some.shape[-2], w.shape[-1])
            noise = rng.standard_normal(shape)
            noise *= _per_replica(std, len(shape))
        w = descend(some, w, public=public, step_size=step_size, noise=noise)
    return w


def _per_replica(values: Array, ndim: int) -> Array:
    """Return a number, or one per replica, that multiplies arrays whose first axis is the replicas."""
    return values if values.ndim == 0 else values.reshape(-1, *([1] * (ndim - 1)))


def _prox(prox: Regularizer, times: Array, w: Array) -> Array:
    """Return the proximal point for one step size, or for one per replica."""
    if times.ndim == 0:
        return prox(float(times), w)
    if len(set(times.tolist())) == 1:
        return prox(float(times[0]), w)
    return np.stack([prox(float(t), row) for t, row in zip(times, w, strict=True)])
