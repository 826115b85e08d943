"""What a decoder's spectral moments say: its scale, its error, and where it beats another."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import ParameterError, check_finite, check_non_negative

__all__ = ["SpectralMoments"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SpectralMoments:
    """Moments of the spectrum of S = sum_i G_i^T G_i under a transform; see `tacit.compression.spectral`.

    Attributes:
        n: Number of parties.
        k: Numbers per party.
        dim: Coordinates of a vector.
        padded_dim: Coordinates d' that the maps work on.
        m: (1/d') E sum lambda / T.
        a1: (1/d') E sum_i tr(P_i T(S)^{+2} P_i).
        a2: (1/d') E sum lambda^2 / T^2.
        noise: (1/d') E sum lambda / T^2, equal to `a1` for maps with orthonormal rows.
        m_stderr: Standard error of `m`; 0 for closed forms and for the limit.
        a1_stderr: Standard error of `a1`.
        a2_stderr: Standard error of `a2`.
        noise_stderr: Standard error of `noise`.
        heavy: Whether `a1` and `noise` are means of inverse eigenvalues so near 0 that they have no fourth
            moment, or no mean at all: simulated standard errors then say nothing.
        draws: Simulated spectra; 0 where none was needed.
        method: `closed`, `free` or `mc`.
    """

    n: int
    k: int
    dim: int
    padded_dim: int
    m: float
    a1: float
    a2: float
    noise: float
    m_stderr: float = 0.0
    a1_stderr: float = 0.0
    a2_stderr: float = 0.0
    noise_stderr: float = 0.0
    heavy: bool = False
    draws: int = 0
    method: str = "closed"

    @property
    def beta(self) -> float:
        """The factor that makes the decoder unbiased."""
        return self.n / self.m

    @property
    def beta_stderr(self) -> float:
        """Standard error of `beta`."""
        return self.beta * self.m_stderr / self.m

    @property
    def A1(self) -> float:  # noqa: N802 - the paper's name
        """Factor of sum_i ||x_i||^2 in n^2 E||estimate||^2."""
        return self.beta**2 * self.a1 / self.n

    @property
    def A2(self) -> float:  # noqa: N802 - the paper's name
        """Factor of sum_{i != l} <x_i, x_l> in n^2 E||estimate||^2; 1 for one party, where it is empty."""
        if self.n == 1:
            return 1.0
        return self.beta**2 * (self.a2 - self.a1) / (self.n * (self.n - 1))

    def normalized_mse(self, correlation: float) -> float:
        """Predict n^2 MSE / S1 at correlation R = S2 / S1.

        Where vectors were padded, the error of the coordinates that are kept: (d - 1) / (d' - 1) of the whole
        (exact for T = 1, else to about 1e-3).

        Raises:
            ParameterError: `correlation` is outside [-1, n - 1].
        """
        if not -1 - 1e-9 <= correlation <= self.n - 1 + 1e-9 * max(self.n - 1, 1):
            raise ParameterError(f"correlation must be in [-1, {self.n - 1}], got {correlation!r}.")
        return self._kept * ((self.A1 - 1) + correlation * (self.A2 - 1))

    def normalized_mse_stderr(self, correlation: float) -> float:
        """Standard error of `normalized_mse`, at most: 0 where nothing is simulated, infinite if unknown.

        n^2 MSE / S1 = beta^2 / n (c a1 + (1 - c) a2) - 1 - R with c = 1 - R / (n - 1), so that a1 does not
        count for identical vectors. The errors of the three moments are added up, as if fully correlated.
        """
        full = max(self.n - 1, 1)
        of_a1, of_a2 = abs(1 - correlation / full), abs(correlation / full)
        if self.heavy and of_a1 > 1e-12:
            return math.inf
        own = of_a1 * self.a1_stderr if of_a1 > 1e-12 else 0.0
        own += of_a2 * self.a2_stderr
        scale = (1 - correlation / full) * self.a1 + correlation / full * self.a2
        return self._kept * self.beta**2 / self.n * (own + 2 * abs(scale) * self.m_stderr / self.m)

    def mse(self, S1: float, S2: float) -> float:
        """Predict E||estimate - mean||^2 for vectors with these sums.

        Args:
            S1: sum_i ||x_i||^2, >= 0.
            S2: sum_{i != l} <x_i, x_l>, from -S1 to (n - 1) S1.

        Raises:
            ParameterError: a sum is out of its range.
        """
        check_non_negative("S1", S1)
        check_finite("S2", S2)
        return S1 * self.normalized_mse(S2 / S1) / self.n**2 if S1 > 0 else 0.0

    def noise_mse(self, variance: float) -> float:
        """Predict the extra error when every sent number carries independent noise of a variance.

        (beta^2 / n^2) * variance * d' * `noise`, times d / d' where padding is cut off.

        Raises:
            ParameterError: `variance` is negative or not finite.
        """
        check_non_negative("variance", variance)
        return (self.beta / self.n) ** 2 * variance * self.dim * self.noise

    def noise_mse_stderr(self, variance: float) -> float:
        """Standard error of `noise_mse`, at most; infinite if unknown."""
        check_non_negative("variance", variance)
        if variance == 0:
            return 0.0
        if self.heavy:
            return math.inf
        relative = self.noise_stderr / self.noise + 2 * self.m_stderr / self.m
        return self.noise_mse(variance) * relative

    @property
    def _kept(self) -> float:
        """Share of the error that falls on the coordinates that are kept."""
        return 1.0 if self.dim == self.padded_dim else (self.dim - 1) / (self.padded_dim - 1)
