"""`tacit audit`: attack a mechanism and report an empirical lower bound on epsilon next to the claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.files import check_picture
from tacit.cli.output import JsonFlag, print_facts, print_json, print_line, progress
from tacit.errors import ParameterError, check_choice, check_count

if TYPE_CHECKING:
    import numpy as np

    from tacit.audits import Audit, Target
    from tacit.numerics import Array

__all__ = ["audit"]

_RUNS: Final = 1_000_000
_TRAINING_RUNS: Final = 4_000
_FIGURE_RUNS: Final = 100_000
_FEWEST_DRAWN: Final = 100
_CHUNK: Final = 250
_ALARMS: Final = "share of false alarms"
_FOUND: Final = "share of the runs with the unit that is found"


def audit(
    mechanism: Annotated[
        str,
        typer.Option(
            help="gaussian, laplace, discrete-gaussian, discrete-laplace, 2rr, krr:B (randomized response on "
            "B values), additive (the mean estimator), or training (a whole run with a canary record)."
        ),
    ] = "gaussian",
    epsilon: Annotated[float, typer.Option(help="Privacy loss that the mechanism claims to meet.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability that the bound may fail, in [0, 1).")] = 1e-5,
    runs: Annotated[
        int | None,
        typer.Option(help=f"Runs in all; {_RUNS} unless given, {_TRAINING_RUNS} for training."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the lower bound, in (0, 1).")] = 0.95,
    noise_factor: Annotated[
        float, typer.Option(help="Multiplies the noise; 0.5 shows how a broken mechanism is caught.")
    ] = 1.0,
    dim: Annotated[int | None, typer.Option(help="Coordinates (additive, training).")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of one run (training); 5 unless given.")] = None,
    trust: Annotated[
        str | None, typer.Option(help="Who adds the noise (additive, training): local or central.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the attack: the same seed finds the same.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Picture file: what the attack finds, and the most that it may find.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Attack a mechanism and report an empirical lower bound on epsilon next to its claim.

    The mechanism is calibrated for the budget and run many times on two neighbouring data sets. With the
    stated confidence, its epsilon is at least the bound. Exits with 1 if that exceeds the claim.
    """
    from tacit.audits import audit as attack
    from tacit.randomness import simulated

    if plot is not None:
        check_picture(plot)
        check_count("runs", _RUNS if runs is None else runs, low=_FEWEST_DRAWN)
    target = _target(
        mechanism, epsilon, delta, noise_factor=noise_factor, dim=dim, rounds=rounds, trust=trust
    )
    training = mechanism == "training"
    total = (_TRAINING_RUNS if training else _RUNS) if runs is None else runs
    with progress("attacking", total=float(total)) as show:
        found = attack(
            _in_chunks(target, show) if training else target.run,
            (target.event, delta),
            runs=total,
            confidence=confidence,
            rng=simulated(seed, "audit"),
            attack=target.attack,
        )
    if plot is not None:
        _draw(target, plot, title=f"{mechanism}: {found.attack}", runs=total, seed=seed, delta=delta)
    if json:
        print_json({"mechanism": mechanism, "noise_factor": noise_factor, **found.to_builtins()})
    else:
        _show(mechanism, noise_factor, found)
    if found.refuted:
        raise typer.Exit(1)


def _target(
    mechanism: str,
    epsilon: float,
    delta: float,
    *,
    noise_factor: float,
    dim: int | None,
    rounds: int | None,
    trust: str | None,
) -> Target:
    """Return what is attacked; options that a mechanism does not have are refused."""
    from tacit.audits import MECHANISMS, canary_settings, mechanism_target, training_target
    from tacit.privacy import PrivacyBudget, TrustModel

    check_choice("mechanism", mechanism.partition(":")[0], [*MECHANISMS, "training"])
    federated = mechanism in ("additive", "training")
    for name, value, allowed in (
        ("dim", dim, federated),
        ("trust", trust, federated),
        ("rounds", rounds, mechanism == "training"),
    ):
        if value is not None and not allowed:
            raise ParameterError(f"{name} is not an option of the mechanism {mechanism!r}.")
    if trust is not None:
        check_choice("trust", trust, ["local", "central"])
    view = TrustModel.LOCAL if trust is None else TrustModel(trust)
    budget = PrivacyBudget(epsilon, delta)
    if mechanism == "training":
        settings = canary_settings(
            budget, rounds=5 if rounds is None else rounds, dim=2 if dim is None else dim, trust=view
        )
        return training_target(settings, noise_factor=noise_factor)
    return mechanism_target(
        mechanism, budget, noise_factor=noise_factor, dim=1 if dim is None else dim, trust=view
    )


def _in_chunks(target: Target, show: Any) -> Any:
    """Return the attack in parts, so that progress is seen."""
    import numpy as np

    done = 0

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        nonlocal done
        parts = [np.zeros(0)]
        for start in range(0, size, _CHUNK):
            parts.append(target.run(present, min(_CHUNK, size - start), rng))
            done += len(parts[-1])
            show(float(done))
        return np.concatenate(parts)

    return run


def _show(mechanism: str, noise_factor: float, found: Audit) -> None:
    """Print what was found for people."""
    broken = "" if noise_factor == 1 else f", with {noise_factor:.10g} times the noise that it needs"
    claim = f"{found.claimed_epsilon:.10g} at delta {found.delta:.10g}"
    facts = {
        "claimed epsilon": claim,
        "lower bound": f"{int(found.empirical_epsilon_lower * 1e4) / 1e4:.4f}",
        "confidence": f"{found.confidence:.10g}",
        "runs": f"{found.runs}",
        "attack": found.attack,
        "guesses": f"{found.right} right, {found.wrong} wrong",
    }
    print_facts(facts, title=f"Attack on {mechanism}{broken}")
    if found.refuted:
        print_line(to_error=False, label="refuted", text="epsilon is larger than claimed")
    else:
        print_line(
            to_error=False,
            label="not refuted",
            text="the attack finds no more than is claimed",
            colour="green",
        )


def _draw(target: Target, path: Path, *, title: str, runs: int, seed: int, delta: float) -> None:
    """Draw what the attack finds at each rate of false alarms, and the most that the claim allows."""
    import numpy as np

    from tacit.audits import claimed_power, power
    from tacit.randomness import simulated
    from tacit.reports import draw_lines

    runs = min(runs, _FIGURE_RUNS)
    rates = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.9])
    rates = rates[rates * runs >= 10]
    found, errors = power(target.run, rates, runs=runs, rng=simulated(seed, "audit", "figure"))
    most = claimed_power(target.event, rates, accuracy=delta or 1e-6)
    lines = {"attack": (found, errors), "most that the claim allows": (most, np.zeros(rates.size))}
    rows: list[dict[str, object]] = [
        {_ALARMS: float(x), _FOUND: float(y), "error": float(e), "line": name}
        for name, (ys, es) in lines.items()
        for x, y, e in zip(rates, ys, es, strict=True)
    ]
    # Without privacy, everything is found.
    rows.append({_ALARMS: None, _FOUND: 1.0, "error": 0.0, "line": "attack"})
    draw_lines(rows, path, x=_ALARMS, y=_FOUND, error="error", line="line", log_x=True, title=title)
