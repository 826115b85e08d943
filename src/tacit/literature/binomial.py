"""The parameters of binomial sums as printed, kept for comparison: proven, but far too much noise.

For the same guarantee, `calibrate_binomial_sum` needs 400 to 540 times less standard deviation in the vector
sum, so nothing in tacit releases data with these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.literature.silo_learning import check_delta, check_range
from tacit.privacy import PrivacyBudget

__all__ = [
    "BinomialParameters",
    "paper_scalar_parameters",
    "paper_stream_noise_std",
    "paper_vector_parameters",
]


@dataclass(frozen=True, kw_only=True)
class BinomialParameters:
    """Grid and noise of one sum as Cheu, Joseph, Mao and Peng (2022) set them.

    Attributes:
        resolution: Grid steps g of the range of a coordinate.
        noise_bits: Noise bits b of one party and coordinate.
        probability: That a noise bit is one, below 1/2.
        parties: Number of parties n.
        epsilon: Level that every coordinate's noise is set for (the proof's eps_hat in the vector sum).
        delta: Delta that it is set for.
    """

    resolution: int
    noise_bits: int
    probability: float
    parties: int
    epsilon: float
    delta: float

    @property
    def noise_variance(self) -> float:
        """Variance of the noise in a coordinate of the sum, in squared grid steps."""
        return self.parties * self.noise_bits * self.probability * (1 - self.probability)

    def claimed_epsilon(self, distance: float) -> float:
        """Return Lemma 3.1's level for one coordinate of two inputs at `distance`, as part of its range.

        The two independent roundings add 2/g (1/g would do: round both with the same coin).
        """
        check_probability("distance", distance)
        return self.epsilon * (2 / self.resolution + distance)


def paper_scalar_parameters(
    epsilon: float, delta: float, parties: int, *, resolution: int | None = None
) -> BinomialParameters:
    """Return the parameters of Lemma 3.1 for a scalar sum of inputs in [0, 1].

    Args:
        epsilon: In (0, 15].
        delta: In (0, 1/2).
        parties: Number of parties n, >= 2.
        resolution: Grid steps g, at least sqrt(n) and 0.389 epsilon; the least such number where not given.

    Raises:
        ParameterError: A value outside of the proof's conditions.

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Lemma 3.1, for inputs that are rescaled to [0, 1]. Its proof uses
        ln((1 + a) / (1 - a)) <= 3 a at a = epsilon / (3 g), which needs g >= 0.389 epsilon (see
        docs/errata.md).
    """
    check_positive("epsilon", epsilon)
    check_positive("delta", delta)
    if epsilon > 15:
        raise ParameterError(f"epsilon must be at most 15 for Lemma 3.1, got {epsilon!r}.")
    if delta >= 0.5:
        raise ParameterError(f"delta must be below 1/2 for Lemma 3.1, got {delta!r}.")
    check_count("parties", parties, low=2)
    least = max(math.ceil(math.sqrt(parties)), math.ceil(0.389 * epsilon))
    g = least if resolution is None else resolution
    check_count("resolution", g, low=least)
    scaled = g * g * math.log(2 / delta) / (epsilon * epsilon * parties)
    bits = math.floor(180 * scaled) + 1
    return BinomialParameters(
        resolution=int(g),
        noise_bits=bits,
        probability=90 * scaled / bits,
        parties=int(parties),
        epsilon=epsilon,
        delta=delta,
    )


def paper_vector_parameters(epsilon: float, delta: float, parties: int, dim: int) -> BinomialParameters:
    """Return the parameters that prove Theorem 3.2 for a sum of vectors of norm at most 1.

    g = max(2 sqrt(n), sqrt(d), 4), delta_hat = delta / (d + 1) and
    eps_hat = epsilon / (18 sqrt(ln(1/delta_hat))), then Lemma 3.1 at (eps_hat, delta_hat).

    Args:
        epsilon: In (0, 15].
        delta: In (0, 1/2).
        parties: Number of parties n, >= 2.
        dim: Number of coordinates d, >= 1.

    Raises:
        ParameterError: A value outside of the proof's conditions.

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Theorem 3.2, with the parameters of its proof and the range
        [-1, 1] of a coordinate, which Algorithm 2 misprints (see docs/errata.md).
    """
    check_positive("epsilon", epsilon)
    check_positive("delta", delta)
    if epsilon > 15 or delta >= 0.5:
        raise ParameterError(
            f"epsilon must be at most 15 and delta below 1/2 for Theorem 3.2, got {epsilon!r} and {delta!r}."
        )
    check_count("parties", parties, low=2)
    check_count("dim", dim)
    g = math.ceil(max(2 * math.sqrt(parties), math.sqrt(dim), 4))
    part = delta / (dim + 1)
    return paper_scalar_parameters(epsilon / (18 * math.sqrt(-math.log(part))), part, parties, resolution=g)


def paper_stream_noise_std(batch: int, budget: PrivacyBudget, *, lipschitz: float = 1.0) -> float:
    """Return zeta of the pan-private stream, of a mean: zeta^2 = 8 L^2 ln(2/delta) / (m eps)^2.

    Sound, and a third more than one release of sensitivity 2 L / m needs (`tacit.learning.PanPrivateStream`).

    Args:
        batch: m, records of a round.
        budget: (eps, delta).
        lipschitz: L.

    Raises:
        ParameterError: delta = 0, or eps > 1, outside the theorem.

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Algorithm 6 and Theorem C.3.

    Example:
        >>> round(paper_stream_noise_std(100, PrivacyBudget(1.0, 1e-5)), 6)
        0.098817
    """
    check_count("batch", batch)
    eps, delta = check_delta(budget)
    check_range(eps, 1.0)
    return check_positive("lipschitz", lipschitz) * math.sqrt(8 * math.log(2 / delta)) / (batch * eps)
