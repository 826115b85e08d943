"""The phases of localised subgradient descent: records, rounds, steps, pulls and clips; and the bound.

Source: Lowy (2023), Algorithm 7 with Theorem 50, Appendix C.4.3; docs/theory/heavy-tailed-training.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.means import MomentBound, balanced_clip, clip_bias

__all__ = [
    "LocalizedPhase",
    "localization_bound",
    "paper_phases",
    "paper_power",
    "sharp_phases",
    "spread_rounds",
    "strongly_convex_rows",
]

_GROWTH = 8.0
"""How much stronger the pull of a phase is than that of the one before."""

_LARGEST = 2.0**90


@dataclass(frozen=True, kw_only=True)
class LocalizedPhase:
    """One phase of localised subgradient descent.

    Attributes:
        share: Of every silo's records.
        rows: n_i, records of all silos.
        rounds: T_i.
        pull: lambda_i.
        step_size: eta_i.
        clip: C_i.
        reach: D_i, how far points may be from where the phase began; infinite for anywhere.
        noise_std: Root of the variance of a round's mean, all coordinates: noise, and of samples of a block.
        bias: B_i.
        budget: Share of the budget of one release, of those whose noise has the run's multiplier.
    """

    share: float
    rows: float
    rounds: int
    pull: float
    step_size: float
    clip: float
    reach: float
    noise_std: float
    bias: float
    budget: float


def paper_power(*, rows: float, lipschitz: float, length: float, rate: float) -> float:
    """Return p = max(1, 2 ln(L / (R rate)) / ln n), the least p >= 1 with L <= n^(p/2) R rate."""
    return max(1.0, 2 * math.log(lipschitz / (length * rate)) / math.log(rows))


def paper_phases(
    *,
    rows: float,
    share: float,
    rounds: Sequence[int],
    noise: float,
    diameter: float,
    lipschitz: float,
    moment: MomentBound,
    second: float,
    free: bool = True,
) -> tuple[LocalizedPhase, ...]:
    """Return the phases of Theorem 50, with other rounds than its own.

    lambda_i eta_i T_i stays what the theorem makes it, as far as eta_i <= 1 / lambda_i.

    Args:
        rows: n, of all phases and one less.
        share: Of all records that these are.
        rounds: T_i of every phase; of none, the theorem's own for log2(n) phases.
        noise: Variance of the noise of a mean of all n rows clipped to 1, with the whole budget: the paper's
            4 d / (epsilon n)^2.
        diameter: D.
        lipschitz: L.
        moment: Of order 2k.
        second: r_2.
        free: Whether the rounds of all phases are divided as the theorem does.
    """
    n, k, r_2k = rows, moment.order / 2, moment.value
    # epsilon n / sqrt(d), whatever the trust model; without noise hardly finite.
    signal = 2 / math.sqrt(max(noise, 1e-24))
    heavy = signal / math.sqrt(math.log(n))
    rate = 1 / math.sqrt(n) + heavy ** (-(k - 1) / k)
    p = paper_power(rows=n, lipschitz=lipschitz, length=r_2k, rate=rate)
    first = r_2k * diameter * n**2 / second * rate
    first *= min(1 / lipschitz, (signal / n) ** ((k - 1) / k) / r_2k)
    other = diameter * n ** (-p / 2)
    other *= min(
        1 / (second * n ** ((p - 1) / 2)), 1 / lipschitz, heavy ** ((k - 1) / k) / (r_2k * n ** (p / 2))
    )
    eta, found = min(first, other), []
    count = len(rounds) or int(math.log2(n))
    for i in range(1, count + 1):
        part, step_size = n / 2**i, eta / 4**i
        contraction = part**-p
        pull = contraction / step_size
        root = math.log(n) if i < count else 1.0
        clip = min(r_2k * (signal / 2**i / math.sqrt(root)) ** (1 / k), _LARGEST)
        once = noise * 4**i * clip**2  # d sigma^2 of a single round
        length = 1
        for _ in range(20):
            over = diameter**2 * pull / (once * length * step_size) if once > 0 else math.inf
            before, length = length, math.ceil(2 / contraction * max(1.0, math.log(min(over, 1e300))))
            if before == length:
                break
        found.append((part, length, pull, step_size, clip))
    own = [one[1] for one in found]
    given_rounds = (spread_rounds(sum(rounds), own) if free else rounds) if rounds else own
    phases = []
    for i, ((part, length, pull, step_size, clip), given) in enumerate(
        zip(found, given_rounds, strict=True), start=1
    ):
        rate_i = min(1.0, pull * step_size * length / given)
        phases.append(
            LocalizedPhase(
                share=share / 2**i,
                rows=part,
                rounds=given,
                pull=pull,
                step_size=rate_i / pull,
                clip=clip,
                reach=2 * lipschitz / pull,
                noise_std=math.sqrt(noise * 4**i * given) * clip,
                bias=clip_bias(MomentBound(k, r_2k), clip, method="paper"),
                budget=1 / given,
            )
        )
    return tuple(phases)


def sharp_phases(
    *,
    rows: float,
    share: float,
    rounds: Sequence[int],
    noise: float,
    diameter: float,
    lipschitz: float,
    moment: MomentBound | None,
    length: float,
    clip: float | None,
    most: float,
) -> tuple[LocalizedPhase, ...]:
    """Return phases whose pulls grow by 8 and whose `localization_bound` is about the least.

    Args:
        rows: n, of all phases and about one less.
        share: Of all records that these are.
        rounds: T_i of every phase.
        noise: Variance of the noise of a mean of all n rows clipped to 1, with the whole budget.
        diameter: D.
        lipschitz: L; infinite where it is not known.
        moment: Half its order is what the bias falls with; None for none.
        length: r, of the gradients.
        clip: C where it is given; None chooses it.
        most: The largest clip.
    """
    parts = []
    for i, given in enumerate(rounds, start=1):
        part, once = rows / 2**i, noise * 4**i * given
        rate = min(1 / 8, 2 * max(1.0, math.log(given)) / given)
        chosen, bias = (most if clip is None else clip), 0.0
        if moment is not None:
            # Of half the order: what is bounded is the square of an average over records.
            half = MomentBound(max(moment.order / 2, 1 + 1e-6), moment.value)
            if clip is None:
                std = math.sqrt(once * rate)
                whole = max(1, int(part))
                chosen = balanced_clip(half, rows=whole, dim=1, noise_multiplier=std * whole, sensitivity=1.0)
                chosen = min(chosen, most, _LARGEST)
            bias = clip_bias(half, chosen)
        parts.append((part, given, rate, chosen, bias, math.sqrt(once) * chosen))
    # Without what whole steps add, 12 a r^2: a pull that is strong for its sake keeps points at the start.
    _, _, rate, _, bias, std = parts[0]
    first = 2 * rate * std**2 + 2 * bias**2
    pull = math.sqrt(2 * (8 / 3 * length**2 / parts[0][0] + 8 * first)) / diameter
    phases = []
    for i, (part, given, rate, chosen, bias, std) in enumerate(parts, start=1):
        phases.append(
            LocalizedPhase(
                share=share / 2**i,
                rows=part,
                rounds=given,
                pull=pull,
                step_size=rate / pull,
                clip=chosen,
                reach=2 * lipschitz / pull,
                noise_std=std,
                bias=bias,
                budget=1 / given,
            )
        )
        pull *= _GROWTH
    return tuple(phases)


def localization_bound(phases: Sequence[LocalizedPhase], *, length: float, diameter: float) -> float:
    """Return a bound on E F(w_l) - F* of localised phases, for eta_i lambda_i <= 1.

    With w^_i the minimum of phase i's pulled mean loss, w^_0 = w*, and Z_i >= E |w_i - w^_i|^2, Z_0 = D^2:

        sum_i [2 r^2 / (lambda_i n_i) + lambda_i Z_(i-1) / 2] + r sqrt(Z_l),

    since F(w^_i) - F(y) <= 2 r^2 / (lambda_i n_i) + (lambda_i / 2) |y - w_(i-1)|^2 in expectation. With a =
    lambda_i eta_i, lambda_i^2 Z_i is at most (1 - a/2)^T r^2 + 2 a (6 r^2 + V^2) + 2 B^2 for a <= 1/8, or
    (1 - a)^T r^2 + a (2 r^2 + 2 lambda_i^2 D_i^2 + V^2) + B^2 for points within D_i; and Z_i <= D^2.

    Args:
        phases: In order.
        length: r, the second moment of gradients, its supremum over points inside.
        diameter: D.

    Reference:
        Lowy (2023), Lemma 51, Proposition 54 and the proof of Theorem 50.
    """
    total, before = 0.0, diameter**2
    for phase in phases:
        total += 2 * length**2 / (phase.pull * phase.rows) + phase.pull * before / 2
        rate, variance, far = phase.pull * phase.step_size, phase.noise_std**2, min(phase.reach, diameter)
        near = (1 - rate) ** phase.rounds * length**2 + phase.bias**2
        near += rate * (2 * length**2 + 2 * (phase.pull * far) ** 2 + variance)
        part = (phase.rows, phase.rounds, rate, phase.clip, phase.bias, phase.noise_std)
        free = _behind(part, length) if rate <= 1 / 8 else math.inf
        before = min(min(near, free) / phase.pull**2, diameter**2)
    return total + length * math.sqrt(before)


def strongly_convex_rows(rows: int) -> list[float]:
    """Return what share of n records each run on strongly convex losses has: 2^(j-2) / log2(n), j = 1, 2, ...

    There are ceil(log2(log2(n))) runs, each a power of two records, and together at most n.
    """
    whole = math.log2(max(rows, 4))
    count = max(1, math.ceil(math.log2(whole)))
    sizes = [
        2.0 ** math.floor(math.log2(max(1.0, 2.0 ** (j - 2) * rows / whole))) for j in range(1, count + 1)
    ]
    return [size / rows for size in sizes]


def _behind(part: tuple[float, int, float, float, float, float], length: float) -> float:
    """Return lambda^2 Z of a phase that needs no bound on where points are; a <= 1/8."""
    _, given, rate, _, bias, std = part
    return (1 - rate / 2) ** given * length**2 + 2 * rate * (6 * length**2 + std**2) + 2 * bias**2


def spread_rounds(total: int, weights: Sequence[float]) -> list[int]:
    """Return whole numbers, at least 1 each, about in proportion to weights, that add up to the total."""
    rest, left, found = total, sum(weights), []
    for number, weight in enumerate(weights):
        after = len(weights) - number - 1
        part = max(1, min(round(rest * weight / left), rest - after))
        found.append(part)
        rest, left = rest - part, left - weight
    found[0] += rest
    return found
