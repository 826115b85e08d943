"""Hidden-state accounting of long shuffled runs."""

from __future__ import annotations

from typing import Any

from benchmarks.case import Case, best_seconds
from tacit.literature import paper_noise
from tacit.privacy import PrivacyBudget, calibrate
from tacit.privacy.iteration import Iteration, Order, Release, energy_law

_FACTS: dict[str, Any] = {
    "step_times_smoothness": 1.0,
    "convex": True,
    "clip_safe": True,
    "prox_convex": True,
}


def _hidden_state(smoke: bool) -> dict[str, float]:
    n, epochs = (1_000, 10) if smoke else (100_000, 100)
    budget = PrivacyBudget(1.0, 1e-8)

    def run(z: float) -> Iteration:
        return Iteration(z, n, epochs, n // 2, order=Order.RR, release=Release.LAST, **_FACTS)

    def law() -> object:
        energy_law.cache_clear()
        return run(1.0).law

    first = best_seconds(law, 1 if smoke else 3)
    curve = run(1.0).curve()
    evaluation = best_seconds(lambda: curve.delta(1.0), 3)
    calibration = best_seconds(lambda: calibrate(run, budget), 1 if smoke else 3)
    noise = calibrate(run, budget)
    return {
        "records": n,
        "epochs": epochs,
        "energies": run(1.0).law.energies.size,
        "law_seconds": first,
        "delta_seconds": evaluation,
        "calibrate_seconds": calibration,
        "noise_multiplier": noise,
        "paper_noise_multiplier": paper_noise(1.0, 1e-8, n=n, epochs=epochs, private=n // 2),
    }


CASES = (
    Case(
        "iteration/hidden-state",
        "one delta of 100,000 records, 100 epochs in under 0.1 s",
        _hidden_state,
        lambda m: (
            f"{m['records']:,.0f} records, {m['epochs']:.0f} epochs: energies once in "
            f"{1000 * m['law_seconds']:.0f} ms, a delta in {1000 * m['delta_seconds']:.1f} ms, calibrated in "
            f"{m['calibrate_seconds']:.2f} s; the paper's accountant needs "
            f"{m['paper_noise_multiplier'] / m['noise_multiplier']:.1f} x the noise"
        ),
    ),
)
