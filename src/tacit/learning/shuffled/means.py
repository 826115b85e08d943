"""The exact risk of shuffled gradients that estimate a mean: what every bound is held against.

The loss is |x - q|^2 / 2, so that a step is linear, and the expectation of the last iterate and the trace of
its covariance follow recursions over epochs. Nothing is clipped, and no regulariser is active.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative
from tacit.federation import Epoch
from tacit.numerics import Array

__all__ = ["MeanInstance", "mean_risk"]


@dataclass(frozen=True, kw_only=True)
class MeanInstance:
    """n private records q_i around their mean, and public records that all are the same point p.

    Attributes:
        n: Private records, >= 2.
        dim: d.
        spread: (1/n) sum |q_i - mean|^2.
        start: The first iterate less the mean, shape (d,) or any shorter one in a basis of its own.
        shift: p less the mean, in the same basis.
    """

    n: int
    dim: int
    spread: float
    start: Array
    shift: Array

    def __post_init__(self) -> None:
        check_count("n", self.n, low=2)
        check_count("dim", self.dim)
        check_non_negative("spread", self.spread)
        for name, point in (("start", self.start), ("shift", self.shift)):
            if np.ndim(point) != 1 or not np.isfinite(point).all() or len(point) > self.dim:
                raise ParameterError(f"{name} must be a finite vector of at most {self.dim} numbers.")
        if len(self.start) != len(self.shift):
            raise ParameterError(
                f"start and shift must have one basis, got {len(self.start)} and {len(self.shift)} numbers."
            )


def mean_risk(
    instance: MeanInstance, epochs: Iterable[Epoch], *, step_size: float | Array, noise_std: float | Array
) -> Array:
    """Return the expected excess of the last iterate under random reshuffling, for every step size.

    With r = 1 - eta and w_i = eta r^(n-i): an epoch maps the expectation m (from the mean) to r^n m +
    shift sum_{public i} w_i, and the trace V of the covariance to r^2n V plus what a sample without
    replacement of the private steps varies by, plus d eta^2 times the variance of the noise that reaches the
    end. The excess is (|m|^2 + V) / 2.

    Args:
        instance: What is estimated.
        epochs: What each does, one record a step.
        step_size: eta, a number or any shape.
        noise_std: Of every draw of noise, on the gradient; a number, or in that shape.

    Returns:
        In the shape of `step_size`.

    Raises:
        ParameterError: A step size or noise out of range, or an epoch of more private steps than records.
    """
    eta, std = np.broadcast_arrays(np.asarray(step_size, dtype=np.float64), np.asarray(noise_std))
    if not (np.isfinite(eta).all() and np.all(eta > 0)):
        raise ParameterError(f"step_size must be finite and positive, got {step_size!r}.")
    if not (np.isfinite(std).all() and np.all(std >= 0)):
        raise ParameterError(f"noise_std must be finite and >= 0, got {noise_std!r}.")
    kept = 1 - eta
    m = np.broadcast_to(instance.start, (*eta.shape, len(instance.start))).astype(np.float64)
    V = np.zeros(eta.shape)
    for epoch in epochs:
        check_count("private steps of an epoch", epoch.private, low=0, high=instance.n)
        n, late = epoch.steps, kept**epoch.public  # what public steps leave of private ones
        private, squares = late - kept**n, late**2 * _powers(kept**2, epoch.private) * eta**2
        m = (kept**n)[..., None] * m + (1 - late)[..., None] * instance.shift
        V = kept ** (2 * n) * V
        V = V + instance.spread * (instance.n * squares - private**2) / (instance.n - 1)
        V = V + instance.dim * (eta * std) ** 2 * _reaching(epoch, kept)
    return np.asarray((np.sum(m**2, axis=-1) + V) / 2)


def _reaching(epoch: Epoch, kept: Array) -> Array:
    """Return the sum over the draws of noise of an epoch of the squared share that reaches its end."""
    if epoch.at_end:
        return np.ones(kept.shape)
    both = np.zeros(kept.shape)
    if epoch.noise:
        both = both + kept ** (2 * epoch.public) * _powers(kept**2, epoch.private)
    return both + _powers(kept**2, epoch.public) if epoch.public_noise else both


def _powers(base: Array, count: int) -> Array:
    """Return 1 + base + ... + base^(count - 1)."""
    near = np.abs(1 - base) < 1e-12
    return np.where(near, float(count), (1 - base**count) / np.where(near, 1.0, 1 - base))
