"""Estimators that randomise every row by itself, for the contract, with their laws written out slowly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from tacit.means import (
    BitplaneMean,
    Estimator,
    HadamardMean,
    HemisphereMean,
    ItemMean,
    LocalLaplaceMean,
    PrivUnitGMean,
    PrivUnitMean,
    RotatedMean,
    Round,
    SampledBinaryMean,
    ShuffledGaussianMean,
)
from tacit.numerics import Array, hadamard_matrix
from tacit.privacy import TrustModel
from tests.contract.cases import Attack, Case, LawCase, clip_to

LOCAL, SHUFFLE = TrustModel.LOCAL, TrustModel.SHUFFLE


def level(epsilon: float, share: float) -> float:
    """Half the noise is taken as twice the level; 30 is the highest."""
    return min(epsilon / share, 30.0) if share else 30.0


def few(trust: TrustModel) -> int | None:
    """So few rows are decoded, for tests of batches that are not whole."""
    return 2 if trust is SHUFFLE else None


def named_items(response: str, trust: TrustModel, epsilon: float, dim: int, share: float) -> Estimator:
    return ItemMean(
        dim=dim,
        local_epsilon=level(epsilon, share),
        response=response,  # type: ignore[arg-type]
        trust=trust,
        n_min=few(trust),
    )


def binary(trust: TrustModel, epsilon: float, samples: int, dim: int, share: float, **more: str) -> Estimator:
    return SampledBinaryMean(
        dim=dim,
        samples=min(samples, dim),
        local_epsilon=level(epsilon, share),
        trust=trust,
        n_min=few(trust),
        **more,  # type: ignore[arg-type]
    )


def bitplane(
    trust: TrustModel, epsilons: tuple[float, ...], samples: int, dim: int, share: float, **more: str
) -> Estimator:
    return BitplaneMean(
        dim=dim,
        samples=min(samples, dim),
        local_epsilons=tuple(level(e, share) for e in epsilons),
        trust=trust,
        n_min=few(trust),
        **more,  # type: ignore[arg-type]
    )


def rotated(
    trust: TrustModel,
    epsilons: tuple[float, ...],
    encoder: str,
    dim: int,
    share: float,
    kappa: float | None = None,
) -> Estimator:
    return RotatedMean(
        dim=dim,
        samples=dim,
        local_epsilons=tuple(level(e, share) for e in epsilons),
        encoder=encoder,  # type: ignore[arg-type]
        kappa=kappa,
        trust=trust,
        n_min=few(trust),
    )


def one_report(
    kind: Callable[..., Estimator], trust: TrustModel, epsilon: float, dim: int, share: float
) -> Estimator:
    return kind(dim=dim, local_epsilon=level(epsilon, share), trust=trust, n_min=few(trust))


def gaussian_reports(dim: int, share: float) -> Estimator:
    return ShuffledGaussianMean(dim=dim, noise_multiplier=0.3 * max(share, 1e-5), n_min=2)


def laplace(trust: TrustModel, epsilon: float, steps: int, dim: int, share: float) -> Estimator:
    return LocalLaplaceMean(
        dim=dim, local_epsilon=level(epsilon, share), steps=steps, trust=trust, n_min=few(trust)
    )


OPPOSITE = Attack(rows=np.array([[1e6, 0.0]]), others=np.array([[-1e6, 0.0]]), middle=0.0, gap=1.0)


def _symbols(
    name: str, make: Callable[..., Estimator], ball: str, *, reached: float = 0.5, trials: int = 800
) -> Case:
    return Case(
        name=name,
        make=make,
        clip=clip_to(ball),
        exact=False,
        symbols=True,
        reached=reached,
        trials=trials,
    )


ESTIMATORS = [
    _symbols("sampled binary, local", partial(binary, LOCAL, 3.0, 3), "box"),
    _symbols("sampled binary, shuffled", partial(binary, SHUFFLE, 2.0, 5), "box"),
    _symbols(
        "sampled binary, thesis",
        partial(binary, LOCAL, 3.0, 3, blocks="padded", decoder="horvitz"),
        "box",
        reached=0.25,  # ones in every coordinate are the worst
    ),
    _symbols("bit planes, local", partial(bitplane, LOCAL, (3.0, 2.0), 4), "linf", trials=2000),
    _symbols("bit planes, shuffled", partial(bitplane, SHUFFLE, (4.0, 3.0, 3.0), 5), "linf"),
    _symbols(
        "bit planes, thesis",
        partial(bitplane, LOCAL, (4.0, 4.0), 5, blocks="padded", decoder="horvitz"),
        "linf",
    ),
    *(
        _symbols(
            f"rotated, {encoder}, {trust.value}",
            partial(rotated, trust, (6.0, 5.0), encoder),
            "l2",
            reached=0.3,
            trials=1000,
        )
        for encoder, trust in (
            ("hadamard", LOCAL),
            ("orthogonal", LOCAL),
            ("cosine", SHUFFLE),
            ("kashin", SHUFFLE),
        )
    ),
    *(
        Case(
            name=f"hadamard, {trust.value}",
            make=partial(one_report, HadamardMean, trust, 3.0),
            clip=clip_to("l1"),
            exact=False,
            symbols=True,
            attack=OPPOSITE if trust is LOCAL else None,
        )
        for trust in (LOCAL, SHUFFLE)
    ),
    *(
        Case(
            name=f"items, {response}, {trust.value}",
            make=partial(named_items, response, trust, 3.0),
            clip=lambda row, radius: np.maximum(clip_to("l1")(row, radius), 0.0),
            exact=False,
            symbols=True,
            reached=0.2,
            attack=None,
        )
        for response in ("krr", "hr")
        for trust in (LOCAL, SHUFFLE)
    ),
    *(
        Case(
            name=f"{kind.__name__}, {trust.value}",
            make=partial(one_report, kind, trust, 4.0),
            exact=False,
            trials=2000 if kind is HemisphereMean else 800,
            symbols=kind is HemisphereMean,
            close=1e-3,  # the entry of the lifted dimension is a root of a rounding error
            attack=OPPOSITE if trust is LOCAL else None,
        )
        for kind in (PrivUnitMean, PrivUnitGMean, HemisphereMean)
        for trust in (LOCAL, SHUFFLE)
    ),
    Case(
        name="shuffled gaussian",
        make=gaussian_reports,
        exact=False,
        trials=800,
        close=2e-3,  # the grid
    ),
    *(
        Case(
            name=f"local laplace, {steps} steps, {trust.value}",
            make=partial(laplace, trust, 4.0, steps),
            clip=clip_to("l1"),
            exact=False,
            attack=OPPOSITE if trust is LOCAL else None,
        )
        for steps, trust in ((2**16, LOCAL), (0, LOCAL), (0, SHUFFLE))
    ),
]


# Laws of one report, symbol by symbol


def flip_prob(epsilon: float) -> float:
    return float(1 / (1 + np.exp(epsilon)))


def block_sizes(estimator: SampledBinaryMean | BitplaneMean | RotatedMean, dim: int) -> list[int]:
    if estimator.blocks == "padded":
        return [-(-dim // estimator.samples)] * estimator.samples
    return [len(part) for part in np.array_split(np.arange(dim), estimator.samples)]


def planes_of(z: float, m: int) -> list[float]:
    """Probability of a one in each plane: 0 or 1, and q in the last, with the clamp."""
    bits, rest = [], z
    for k in range(1, m):
        bit = min(1, int(np.floor(2**k * rest)))
        bits.append(float(bit))
        rest -= bit / 2**k
    return [*bits, float(np.clip(2 ** (m - 1) * rest, 0, 1))]


def unit_interval(estimator: Estimator, row: Array) -> Array:
    """The numbers in [0, 1] that bit planes are taken of."""
    if isinstance(estimator, SampledBinaryMean):
        return np.asarray(clip_to("box")(row, 1.0))
    if isinstance(estimator, BitplaneMean):
        return np.asarray((clip_to("linf")(row, 1.0) + 1) / 2)
    assert isinstance(estimator, RotatedMean)
    assert estimator.encoder == "hadamard"
    this_round = Round(n=1, radius=1.0)
    D, signs = estimator.coded_dim, estimator.rotation(this_round).signs  # type: ignore[attr-defined]
    padded = np.append(clip_to("l2")(row, 1.0), np.zeros(D - len(row)))
    coded = hadamard_matrix(D) @ (signs * padded) / np.sqrt(D)
    assert estimator.kappa is not None
    box = min(1.0, estimator.kappa / np.sqrt(D))
    return np.asarray((np.clip(coded / box, -1, 1) + 1) / 2)


def symbol_laws(estimator: Estimator, row: Array) -> list[list[float]]:
    """For every channel, the probabilities of its symbols."""
    if isinstance(estimator, HadamardMean):
        x, K, p = clip_to("l1")(row, 1.0), estimator.coded_dim, flip_prob(estimator.local_epsilon)
        inner = hadamard_matrix(K)[:, : len(x)] @ x
        plus = [(1 - 2 * p) * (1 + h) / 2 + p for h in inner]
        return [[share / K for one in plus for share in (1 - one, one)]]
    assert isinstance(estimator, SampledBinaryMean | BitplaneMean | RotatedMean)
    z = unit_interval(estimator, row)
    many = isinstance(estimator, BitplaneMean | RotatedMean)
    epsilons = estimator.local_epsilons if many else (estimator.local_epsilon,)  # type: ignore[union-attr]
    sizes, laws = block_sizes(estimator, len(z)), []
    padded = np.append(z, np.zeros(sum(sizes) - len(z)))
    ones = [planes_of(float(number), len(epsilons)) for number in padded]
    for k, epsilon in enumerate(epsilons):
        p, start = flip_prob(epsilon), 0
        for size in sizes:
            law: list[float] = []
            for c in range(start, start + size):
                one = ones[c][k] * (1 - p) + (1 - ones[c][k]) * p
                law += [(1 - one) / size, one / size]
            laws.append(law)
            start += size
    return laws


def all_symbols(make: Callable[[int, float], Estimator], dim: int) -> Array:
    """All payloads of the report on one row."""
    alphabets = [len(law) for law in symbol_laws(make(dim, 1.0), np.zeros(dim))]
    half = 2 ** ((max(alphabets) - 1).bit_length() - 1)
    return np.asarray(np.array(list(product(*(range(size) for size in alphabets)))) - half)


def symbols_log_law(estimator: Estimator, rows: Array, outcomes: Array) -> Array:
    laws = symbol_laws(estimator, rows[0])
    half = 2 ** ((max(map(len, laws)) - 1).bit_length() - 1)
    with np.errstate(divide="ignore"):
        return np.asarray(sum(np.log(law)[outcomes[:, k] + half] for k, law in enumerate(laws)))


def rows_of(lows: float, dim: int) -> list[tuple[float, ...]]:
    """Rows on a coarse grid, and far outside of the ball."""
    axis = [x for x in (-3.0, -1.0, -0.6, -0.5, 0.0, 0.25, 0.5, 0.7, 1.0, 3.0) if x >= lows or x == -3.0]
    if dim > 2:
        axis = [-3.0, 0.0, 0.6, 3.0]
    return list(product(axis, repeat=dim))


def _law(
    name: str, make: Callable[[int, float], Estimator], dims: tuple[int, ...], *, tight: bool
) -> LawCase:
    return LawCase(
        name=name,
        make=make,
        dims=dims,
        outcomes=partial(all_symbols, make),
        log_law=symbols_log_law,
        points=partial(rows_of, -1.0),
        rows=1,
        tight=tight,
    )


LAWS = [
    _law("sampled binary, s = 1", partial(binary, LOCAL, 1.0, 1), (1, 2, 4), tight=True),
    _law("sampled binary, s = 2", partial(binary, LOCAL, 0.5, 2), (2, 3, 4), tight=True),
    _law("sampled binary, padded", partial(binary, LOCAL, 0.5, 2, blocks="padded"), (3,), tight=True),
    _law("bit planes, m = 1", partial(bitplane, LOCAL, (1.0,), 2), (1, 3), tight=True),
    _law("bit planes, m = 2", partial(bitplane, LOCAL, (0.6, 0.4), 1), (1, 2, 3), tight=True),
    _law("bit planes, m = 3", partial(bitplane, LOCAL, (0.6, 0.3, 0.3), 2), (1,), tight=True),
    _law("hadamard", partial(one_report, HadamardMean, LOCAL, 1.0), (1, 2, 3, 4), tight=True),
    _law(
        "rotated, clipped",
        partial(rotated, LOCAL, (0.5, 0.4), "hadamard", kappa=1.0),
        (1, 2),
        tight=True,
    ),
    _law("rotated, padded", partial(rotated, LOCAL, (1.0,), "hadamard", kappa=2.0), (3,), tight=False),
]
