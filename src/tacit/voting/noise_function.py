"""The artefact of a design: a noise function with the certificate that it keeps its promise.

Its values are multiples of 2^-52, so that a 64-bit word draws them exactly and what is certified is what is
released. An object whose certificate does not hold cannot be made, nor read from a file.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, VerificationError
from tacit.numerics import Array, IntArray
from tacit.privacy import Certified, Neighbours
from tacit.privacy.certified import (
    GRID,
    exact_worst_case,
    is_monotone,
    output_probabilities,
    worst_case,
)
from tacit.privacy.strict_json import is_version, read_json
from tacit.voting.functions import full_gamma
from tacit.voting.release import ballot_counts, noisy_majority
from tacit.voting.setting import Setting

__all__ = [
    "FORMAT_VERSION",
    "Certificate",
    "NoiseFunction",
    "certified",
    "certify",
    "check_design",
]

FORMAT_VERSION = 1
_EXACT_UP_TO = 21
"""Up to so many teachers every design is also checked without floating point."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a noise function needs, for the worst of all teachers.

    Attributes:
        delta_required: The least delta at the target epsilon, rounded up; 0 is pure DP.
        slack: target_delta minus the largest H - E H'; >= 0 where the target is met.
        worst: Teachers at each vertex of the worst case (0,0), (1,1), (0,D), (D,0), (1-D,1), (1,1-D), (a,b),
            (b,a).
        exact: Whether it was computed without floating point.
    """

    delta_required: float
    slack: float
    worst: tuple[int, int, int, int, int, int, int, int]
    exact: bool

    @property
    def holds(self) -> bool:
        """Whether the target is met."""
        return self.slack >= 0


def certify(gamma: npt.ArrayLike, setting: Setting, *, exact: bool = False) -> Certificate:
    """Compute the exact price of a noise function, over all independent private teachers.

    Args:
        gamma: Shape (ceil(K / 2),): the values for l = h, ..., K, in [0, 1]; need not be monotone.
        setting: The teachers and the target.
        exact: Use whole numbers with every rounding outwards instead of floating point with a proven bound on
            its errors. Then gamma must consist of multiples of 2^-52.

    Returns:
        The certificate, whether it holds or not.

    Raises:
        ParameterError: A gamma of another shape, outside [0, 1], or too costly to check.

    Example:
        >>> from tacit.voting import allowance
        >>> round(certify(np.ones(6), allowance(11, 0.1, 1)).delta_required, 5)
        0.08917

    Reference:
        Jiang (2025), Lemmas 3.4.4 and 3.6.1: necessary and sufficient (docs/theory/voting.md, section 2).
    """
    half = _checked(gamma, setting)
    return _certify(tuple(half.tolist()), setting, exact=exact)


@lru_cache(maxsize=256)
def _certify(gamma: tuple[float, ...], setting: Setting, *, exact: bool) -> Certificate:
    """Compute a certificate once."""
    half = np.array(gamma, dtype=np.float64)
    needed: Any
    if exact:
        needed, worst = exact_worst_case(setting.voters, half, setting.target_epsilon)
    else:
        needed, worst = worst_case(setting.voters, half, setting.target_epsilon)
    required = float(needed)
    if required < needed:
        required = math.nextafter(required, math.inf)
    slack = type(needed)(setting.target_delta) - needed
    return Certificate(
        delta_required=min(max(required, 0.0), 1.0),
        # A tiny slack below 0 must not become 0.
        slack=float(slack) if float(slack) != 0 or slack == 0 else math.copysign(5e-324, slack),
        worst=worst,
        exact=exact,
    )


class NoiseFunction(msgspec.Struct, frozen=True, kw_only=True):
    """DaRRM: publish the majority of the votes with probability gamma(L), else a fair coin.

    Attributes:
        setting: The teachers and the target.
        gamma: The values for l = h, ..., K, multiples of 2^-52 in [0, 1]; gamma(K - l) = gamma(l).
        method: How it was designed.
        objective: What it was designed for, in words.
        certificate: That the target is met.

    Raises:
        ParameterError: Values off the grid or outside [0, 1], or a gamma that does not meet the target.

    Reference:
        Jiang (2025), Algorithm 1 (DaRRM). The teachers must be independent given the data and draw fresh
        randomness for every query; for repeated queries of fixed teachers see `majority_privacy_report`.
    """

    setting: Setting
    gamma: tuple[float, ...]
    method: str
    certificate: Certificate
    objective: str = ""

    def __post_init__(self) -> None:
        half = _checked(self.gamma, self.setting)
        if np.any(half * GRID % 1):
            raise ParameterError("gamma must consist of multiples of 2**-52; make it with certified().")
        found = _certify(tuple(half.tolist()), self.setting, exact=False)
        if not found.holds:
            raise ParameterError(
                f"gamma does not meet the target: at epsilon {self.setting.target_epsilon!r} it needs delta "
                f"{found.delta_required!r}, more than {self.setting.target_delta!r}."
            )
        if not math.isclose(self.certificate.slack, found.slack, rel_tol=1e-6, abs_tol=1e-12):
            raise ParameterError(
                f"certificate must be that of gamma, with slack {found.slack!r}; make it with certified()."
            )

    @property
    def full(self) -> Array:
        """gamma(0), ..., gamma(K)."""
        return full_gamma(self.setting.teachers, self.gamma)

    @property
    def monotone(self) -> bool:
        """Whether gamma does not fall towards unanimity."""
        return is_monotone(self.gamma)

    def output_probabilities(self) -> Array:
        """Return P(the published bit is 1) given l ones, l = 0, ..., K."""
        return output_probabilities(self.setting.teachers, self.gamma)

    def release(self, votes: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Publish one bit for each query.

        Args:
            votes: Shape (queries, K), whole numbers 0 and 1 or booleans.
            rng: Source of the coins; the secure stream when the bits leave.

        Returns:
            Shape (queries,), 0 and 1. The law is exact: one 64-bit word a query, and no rounding.

        Raises:
            ParameterError: Votes of another shape or other than 0 and 1. More than two classes are refused:
                the condition on gamma is about one bit; `GNMax` publishes the winner of several.
        """
        return self.release_counts(ballot_counts(votes, self.setting.teachers), rng)

    def release_counts(self, counts: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Publish one bit for each count of ones; as `release`, with counts of shape (queries,)."""
        return noisy_majority(counts, self.gamma, self.setting.teachers, rng)

    def event(self, neighbours: Neighbours | None = None, *, affected: int | None = None) -> Certified:
        """Return what one published bit reveals, if the votes were drawn freshly for it.

        Args:
            neighbours: The relation under which the teachers are private; replacing one record by default.
            affected: How many teachers such a change may reach; what the setting says if not given.
        """
        s = self.setting
        reached = s.affected if affected is None else affected
        return Certified(
            teachers=s.teachers,
            epsilon=s.epsilon,
            delta=s.delta,
            gamma=self.gamma,
            # All votes of the teachers that are reached cost no more than their sum.
            target_epsilon=min(s.target_epsilon, s.epsilon * (reached or s.teachers)),
            neighbours=neighbours or Neighbours(),
            affected=reached,
        )

    def to_json(self) -> bytes:
        """Write the artefact; floats are written in full."""
        return msgspec.json.encode({"version": FORMAT_VERSION, **msgspec.to_builtins(self)})

    @classmethod
    def from_json(cls, data: bytes | str) -> NoiseFunction:
        """Read an artefact and certify it again.

        Raises:
            VerificationError: Not JSON, an unknown version, a field that is missing or wrong, a gamma that
                does not meet the target, or another certificate than its own.
        """
        try:
            fields = read_json(data)
        except ParameterError as error:
            raise VerificationError(f"a noise function must be JSON as written by tacit: {error}.") from error
        version = fields.pop("version", None) if isinstance(fields, dict) else None
        if not is_version(version, FORMAT_VERSION):
            raise VerificationError(
                f"the noise function has version {version!r}; this tacit reads {FORMAT_VERSION}."
            )
        try:
            read = msgspec.convert(fields, _Strict)
            found = certify(read.gamma, read.setting, exact=read.certificate.exact)
            noise = cls(**{**msgspec.structs.asdict(read), "certificate": found})
        except (msgspec.ValidationError, ParameterError) as error:
            raise VerificationError(f"the noise function cannot be used: {error}") from error
        stated = read.certificate
        # Another machine may round otherwise in the last bits; nothing but the numbers of gamma is trusted.
        if not all(
            math.isclose(getattr(stated, name), getattr(found, name), rel_tol=1e-6, abs_tol=1e-12)
            for name in ("slack", "delta_required")
        ):
            raise VerificationError(
                f"the noise function states that it needs delta {stated.delta_required!r} with slack "
                f"{stated.slack!r}; it needs {found.delta_required!r} with {found.slack!r}."
            )
        return noise


def check_design(noise: NoiseFunction, *, teachers: int, epsilon: float | None, delta: float) -> None:
    """Refuse a design for other teachers than these, or beside levels of theirs that contradict it.

    Args:
        noise: The design.
        teachers: K, how many there are.
        epsilon: What was said of each of them; None for nothing.
        delta: That goes with it.
    """
    s = noise.setting
    if s.teachers != teachers:
        raise ParameterError(f"design must be for {teachers} teachers, got one for {s.teachers}.")
    if epsilon is not None and (epsilon, delta) != (s.epsilon, s.delta):
        raise ParameterError(
            f"epsilon and delta must be those of the design, {(s.epsilon, s.delta)!r}, or not given; got "
            f"{(epsilon, delta)!r}."
        )


class _Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The fields of an artefact as a parser checks them."""

    setting: Setting
    gamma: tuple[float, ...]
    method: str
    certificate: Certificate
    objective: str = ""


def certified(
    gamma: npt.ArrayLike, setting: Setting, *, method: str = "custom", objective: str = ""
) -> NoiseFunction:
    """Make an artefact of a noise function, scaled down by as little as its certificate needs.

    Args:
        gamma: Shape (ceil(K / 2),), in [0, 1].
        setting: The teachers and the target.
        method: How it was designed.
        objective: What it was designed for, in words.

    Returns:
        gamma times min(1, (E - 1 + 2 target_delta) / cost), rounded to multiples of 2^-52, such that the
        certificate holds for what is released: in floating point with all its errors, and up to 21 teachers
        also in whole numbers. At most some 1e-11 of gamma is lost to rounding.

    Raises:
        ParameterError: A gamma of another shape, outside [0, 1], or too costly to check.

    Reference:
        Derived in docs/theory/voting.md, section 3 (repair): the cost is linear in gamma.
    """
    half = _checked(gamma, setting)
    # A price is rounded up by 1e-12 of epsilon; with that much to spare it is the target, not a hair above.
    spare = 2e-12 * setting.target_epsilon * math.exp(setting.target_epsilon) if setting.target_delta else 0.0
    scale = 1.0
    for margin in (0.0, *np.geomspace(2.0**-51, 0.5, 26).tolist()):
        rounded = np.round(half * scale * (1 - margin) * GRID) / GRID
        found = certify(rounded, setting)
        if margin == 0 and found.slack < spare:
            needed = setting.target_delta - found.slack
            scale = (setting.room - 2 * spare) / (2 * needed + math.expm1(setting.target_epsilon))
        if found.slack >= spare and setting.teachers <= _EXACT_UP_TO:
            found = certify(rounded, setting, exact=True)
        if found.slack >= spare:
            return NoiseFunction(
                setting=setting,
                gamma=tuple(rounded.tolist()),
                method=method,
                objective=objective,
                certificate=found,
            )
    raise ParameterError(
        f"no multiple of this gamma meets epsilon {setting.target_epsilon!r} within floating point; "
        "epsilon may be too small."
    )


def _checked(gamma: npt.ArrayLike, setting: Setting) -> Array:
    """Return gamma as floats of the right shape, all in [0, 1]."""
    output_probabilities(setting.teachers, gamma)
    return np.array(gamma, dtype=np.float64)
