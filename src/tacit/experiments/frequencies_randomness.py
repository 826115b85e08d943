"""How few random bits frequencies take, and what fewer cost (Girgis 2023, Figures 7.7 and 7.8, Table 7.1).

A thousand values, whose frequencies fall by a factor of 0.8 each; binary Hadamard response as printed, its
columns dealt out in blocks and column 0 among them. The thesis shows pictures, and does not say how estimates
become frequencies: only cutting off what is negative and dividing by the sum gives its numbers. The column of
the reference holds what an independent computation found for the settings here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.experiments.frequencies_randomness_statements import (
    curve_statements,
    table_statements,
    threshold_statements,
)
from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.frequencies import (
    BinaryHadamard,
    FrequencyOracle,
    HadamardResponse,
    KaryResponse,
    RecoverableHadamard,
    UnaryEncoding,
    project,
)
from tacit.numerics import Array, binary_entropy
from tacit.randomness import simulated

__all__ = ["compute", "run", "table"]

VALUES = 1000
CLIENTS = 500_000
"""Of Figure 7.8."""
N_GRID = (100_000, 150_000, 200_000, 300_000, 500_000, 700_000, 850_000, 1_000_000)
EPSILON_GRID = (0.2, 0.5, 0.7, 0.8, 1.0, 1.5, 1.8, 2.0, 3.0)
_PROJECTIONS = ("clip-normalize", "none", "simplex")
_BITS = {"7.7": (1.0, 0.7), "7.8": (1.0, 0.9, 0.6)}
_NAME = "frequencies-randomness"


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute both figures and the table; `quick` takes few places and runs."""
    if quick:
        return compute((100_000, 150_000, 850_000, 1_000_000), (0.5, 0.7, 1.0, 2.0), 4, progress)
    return compute(N_GRID, EPSILON_GRID, 20, progress)


def compute(
    n_grid: Sequence[int], epsilon_grid: Sequence[float], runs: int, progress: Callable[[int, int], Any]
) -> Report:
    """Compute some places of both figures, and the table.

    Args:
        n_grid: Numbers of clients of Figure 7.7.
        epsilon_grid: Levels of Figure 7.8.
        runs: Runs per point, 2 or more.
        progress: Called with (done, total).
    """
    law = 0.8 ** np.arange(VALUES)
    law /= law.sum()
    places = [("7.7", bits, n, 1.0) for bits in _BITS["7.7"] for n in n_grid]
    places += [("7.8", bits, CLIENTS, epsilon) for bits in _BITS["7.8"] for epsilon in epsilon_grid]
    rows: dict[str, list[dict[str, object]]] = {"7.7": [], "7.8": []}
    for done, (figure, bits, n, epsilon) in enumerate(places):
        progress(done, len(places))
        at: dict[str, float] = {"n": n} if figure == "7.7" else {"epsilon": epsilon}
        for method, errors in _errors(law, bits, n, epsilon, runs).items():
            rows[figure].append(_row(figure, method, f"R = {bits:g}", at, errors))
        if bits == 1:
            ours = BinaryHadamard(k=VALUES, epsilon=epsilon)
            rng = simulated(0, _NAME, "tacit", f"{n} {epsilon}")
            found = [_l1(ours.estimate(ours.simulate(law, n, rng)), law, "simplex") for _ in range(runs)]
            rows[figure].append(_row(figure, "simplex", "tacit", at, found))
    progress(len(places), len(places))
    many = table((10, 100, 1000), (0.5, 1.0))
    labels = {"l1": "l1 error", "n": "clients"}
    return Report(
        rows=sorted(rows["7.7"], key=lambda row: _PROJECTIONS.index(str(row["panel"]).removeprefix("7.7, "))),
        x="n",
        y="l1",
        error="standard error",
        line="line",
        panel="panel",
        log_y=True,
        labels=labels,
        title="Figure 7.7: error against clients, by how estimates become frequencies",
        notes=(
            f"{VALUES} values, epsilon 1, means over {runs} runs; R bounds the random bits of a client. none "
            "keeps estimates as they are, clip-normalize cuts and divides, simplex takes the nearest "
            "frequencies; tacit is its default: columns drawn, column 0 left out, nearest frequencies.",
            *curve_statements(rows["7.7"]),
            *threshold_statements(rows["7.8"]),
            *table_statements(many),
        ),
        more={
            "7.8": Report(
                rows=sorted(rows["7.8"], key=lambda row: str(row["panel"]) != "7.8, clip-normalize"),
                x="epsilon",
                y="l1",
                error="standard error",
                line="line",
                panel="panel",
                log_y=True,
                labels=labels,
                title="Figure 7.8: error against epsilon, by random bits",
                notes=(f"{VALUES} values, {CLIENTS} clients, means over {runs} runs.",),
            ),
            "7.1": Report(
                rows=many,
                x="k",
                y="random bits",
                error=None,
                line="mechanism",
                panel="epsilon",
                log_y=True,
                title="Table 7.1: random bits of a client, and exact risk",
                notes=("n risk is the squared l2 error times the number of clients, before any projection.",),
            ),
        },
    )


def table(sizes: Sequence[int], epsilons: Sequence[float]) -> list[dict[str, object]]:
    """Return Table 7.1 in numbers: entropies as printed and as they are, and exact risks, values equal."""
    known = reference(_NAME)
    rows: list[dict[str, object]] = []
    for epsilon in epsilons:
        for k in sizes:
            for name, (oracle, printed) in _mechanisms(k, epsilon).items():
                n = 1 << 20  # a multiple of all numbers of columns
                risk = n * oracle.mse(n)
                bits = known.get((f"7.1 bits, {epsilon:g}", name, k))
                risks = known.get((f"7.1 risk, {epsilon:g}", name, k))
                rows.append(
                    {
                        "mechanism": name,
                        "epsilon": epsilon,
                        "k": k,
                        "random bits": oracle.entropy_bits,
                        "printed bits": printed,
                        "reference bits": bits,
                        "message bits": oracle.message_bits,
                        "n risk": risk,
                        "reference n risk": risks,
                        "n risk / k": risk / k,
                    }
                )
    return rows


def _mechanisms(k: int, epsilon: float) -> dict[str, tuple[FrequencyOracle, float | None]]:
    """Return the mechanisms of the table, and ours, each with the bits that the thesis prints."""
    e, coin = math.exp(epsilon), binary_entropy(1 / (math.exp(epsilon) + 1))
    hadamard = math.log(2 * k * (3 * e - 1) / e) - epsilon * e / (3 * e - 1)
    kary = math.log(k - 1 + e) - epsilon * e / (k - 1 + e)
    return {
        "RAPPOR": (UnaryEncoding(k=k, epsilon=epsilon, symmetric=True), k * coin),
        "RR": (KaryResponse(k=k, epsilon=epsilon), kary / math.log(2)),
        "HR": (HadamardResponse(k=k, epsilon=epsilon), hadamard / math.log(2)),
        "BH": (_printed(k, epsilon, 1.0), coin),
        "recoverable": (RecoverableHadamard(k=k, epsilon=epsilon), None),
    }


def _printed(k: int, epsilon: float, bits: float) -> BinaryHadamard:
    """Return binary Hadamard response as printed."""
    return BinaryHadamard(k=k, epsilon=epsilon, random_bits=bits, assignment="blocks", skip_constant=False)


def _errors(law: Array, bits: float, n: int, epsilon: float, runs: int) -> dict[str, list[float]]:
    """Return the l1 errors of some runs, by how estimates become frequencies."""
    oracle = _printed(VALUES, epsilon, bits)
    rng = simulated(0, _NAME, "printed", f"{bits} {n} {epsilon}")
    found = [oracle.estimate(oracle.simulate(law, n, rng)) for _ in range(runs)]
    return {method: [_l1(one, law, method) for one in found] for method in _PROJECTIONS}


def _l1(estimate: Array, law: Array, method: str) -> float:
    return float(np.abs(project(estimate, method) - law).sum())


def _row(
    figure: str, method: str, line: str, at: dict[str, float], errors: Sequence[float]
) -> dict[str, object]:
    """Return one point."""
    ((_, place),) = at.items()
    expected = reference(_NAME).get((f"{figure}, {method}", line, place))
    mean = float(np.mean(errors))
    return {
        "panel": f"{figure}, {method}",
        "line": line,
        **at,
        "l1": mean,
        "standard error": float(np.std(errors, ddof=1) / math.sqrt(len(errors))),
        "reference": expected,
        "difference": None if expected is None else mean - expected,
    }
