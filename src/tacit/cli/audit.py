"""`tacit audit`: attack a mechanism and report an empirical lower bound on epsilon next to the claim."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_picture
from tacit.cli.flags import takes
from tacit.cli.names import ATTACKED
from tacit.cli.output import JsonFlag, print_facts, print_json, print_line, print_text, progress
from tacit.errors import ParameterError, check_choice, check_count

if TYPE_CHECKING:
    import numpy as np

    from tacit.audits import Audit, Target
    from tacit.numerics import Array

__all__ = ["audit"]

_RUNS: Final = 1_000_000
_TRAINING_RUNS: Final = 4_000
_ESTIMATOR_RUNS: Final = 10_000
_FIGURE_RUNS: Final = 100_000
_FEWEST_DRAWN: Final = 100
_CHUNK: Final = 250
_ALARMS: Final = "share of false alarms"
_FOUND: Final = "share of the runs with the unit that is found"


@dataclass(frozen=True, kw_only=True)
class AuditFlags:
    """What is attacked, and how often."""

    mechanism: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                ATTACKED,
                told={
                    "krr:B": "randomized response on B values",
                    "training": "a whole run with a canary",
                    "aggregate": "a sum of shares of noise",
                    "bandit": "rewards of a batch",
                },
                checked=False,
            ),
            help="What is attacked, a mechanism, a mean estimator or a run: {names}.",
        ),
    ] = "gaussian"
    epsilon: Annotated[float, typer.Option(help="Privacy loss that the mechanism claims to meet.")] = 1.0
    delta: Annotated[float, typer.Option(help="Probability that the bound may fail, in [0, 1).")] = 1e-5
    runs: Annotated[
        int | None,
        typer.Option(
            help="Number of runs in all.",
            show_default=f"{_RUNS:,}; {_TRAINING_RUNS:,} for training, {_ESTIMATOR_RUNS:,} for estimators "
            "but additive",
        ),
    ] = None
    confidence: Annotated[float, typer.Option(help="Confidence of the lower bound, in (0, 1).")] = 0.95
    noise_factor: Annotated[
        float,
        typer.Option(help="What the noise is multiplied by; 0.5 shows how a broken mechanism is caught."),
    ] = 1.0
    dim: Annotated[
        int | None,
        typer.Option(
            help="Number of coordinates, for estimators and training.",
            show_default="1; 2 for training",
        ),
    ] = None
    colluding: Annotated[
        int | None,
        typer.Option(
            help="Parties that play with the server, beside two that do not, for aggregate.", show_default="1"
        ),
    ] = None
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds of one run, for training.", show_default="5")
    ] = None
    trust: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(("local", "shuffle", "central"), told={"shuffle": "not for training"}),
            help="Trust model, for estimators, bandits and training: {names}.",
            show_default="the first that it is for",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of the attack: the same seed finds the same.")] = 0
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Picture file: what the attack finds, and the most that it may find.",
            show_default="no picture",
        ),
    ] = None
    json: JsonFlag = False

    @property
    def trains(self) -> bool:
        """Whether whole runs are attacked."""
        return self.mechanism == "training"

    @property
    def one_by_one(self) -> bool:
        """Whether runs are made one by one, and take seconds."""
        from tacit.audits import MECHANISMS

        return self.mechanism.partition(":")[0] not in MECHANISMS

    @property
    def total(self) -> int:
        """Runs in all."""
        usual = _TRAINING_RUNS if self.trains else _ESTIMATOR_RUNS if self.one_by_one else _RUNS
        return usual if self.runs is None else self.runs

    def target(self) -> Target:
        """Return what is attacked; options that a mechanism does not have are refused."""
        from tacit.audits import MECHANISMS, canary_settings, mechanism_target, training_target
        from tacit.means import ESTIMATORS
        from tacit.privacy import PrivacyBudget, TrustModel

        check_choice(
            "mechanism", self.mechanism.partition(":")[0], ["training", *{**MECHANISMS, **ESTIMATORS}]
        )
        summed = self.mechanism in ("aggregate", "modular-sum")
        federated = self.trains or (self.mechanism in ESTIMATORS and not summed)
        for name, value, allowed in (
            ("dim", self.dim, federated),
            ("trust", self.trust, federated or self.mechanism == "bandit"),
            ("rounds", self.rounds, self.trains),
            ("colluding", self.colluding, summed),
        ):
            if value is not None and not allowed:
                raise ParameterError(f"{name} is not an option of the mechanism {self.mechanism!r}.")
        trust = None
        if self.trust is not None:
            shuffled = () if self.trains or self.mechanism == "additive" else ("shuffle",)
            trust = TrustModel(check_choice("trust", self.trust, ["local", *shuffled, "central"]))
        budget = PrivacyBudget(self.epsilon, self.delta)
        if self.trains:
            rounds, dim = 5 if self.rounds is None else self.rounds, 2 if self.dim is None else self.dim
            settings = canary_settings(budget, rounds=rounds, dim=dim, trust=trust or TrustModel.LOCAL)
            return training_target(settings, noise_factor=self.noise_factor)
        dim = 1 if self.dim is None else self.dim
        return mechanism_target(
            self.mechanism,
            budget,
            noise_factor=self.noise_factor,
            dim=dim,
            trust=trust,
            colluding=1 if self.colluding is None else self.colluding,
        )


@takes(AuditFlags)
def audit(flags: AuditFlags) -> None:
    """Attack a mechanism and report an empirical lower bound on epsilon next to its claim.

    The mechanism is calibrated for the budget and run many times on two neighbouring data sets. With the
    stated confidence, its epsilon is at least the bound. Exits with 1 if that exceeds the claim.
    """
    from tacit.audits import audit as attack
    from tacit.randomness import simulated

    if flags.plot is not None:
        check_picture(flags.plot)
        check_count("runs", _RUNS if flags.runs is None else flags.runs, low=_FEWEST_DRAWN)
    target = flags.target()
    games = [target] if target.alone is None else [target, target.alone]
    with progress("attacking", total=float(flags.total)) as show:
        found, *others = [
            attack(
                _in_chunks(game, show) if flags.one_by_one else game.run,
                (game.event, flags.delta),
                runs=flags.total,
                confidence=flags.confidence,
                rng=simulated(flags.seed, "audit"),
                attack=game.attack,
            )
            for game in games
        ]
    if flags.plot is not None:
        _draw(target, flags, flags.plot, title=f"{flags.mechanism}: {found.attack}")
    if flags.json:
        alone = {"alone": others[0].to_builtins()} if others else {}
        known = {"mechanism": flags.mechanism, "noise_factor": flags.noise_factor}
        print_json({**known, **found.to_builtins(), **alone})
    else:
        _show(flags.mechanism, flags.noise_factor, found)
        for one in others:
            _show(f"{flags.mechanism}, one message alone", flags.noise_factor, one)
    if any(one.refuted for one in (found, *others)):
        raise typer.Exit(1)


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
        print_text(
            f"A claim that holds is refuted with probability {1 - found.confidence:.2g} at most: if no other "
            "--seed refutes it, nor this one at --confidence 0.999999, that was chance."
        )
    else:
        print_line(
            to_error=False,
            label="not refuted",
            text="the attack finds no more than is claimed",
            colour="green",
        )


def _draw(target: Target, flags: AuditFlags, path: Path, *, title: str) -> None:
    """Draw what the attack finds at each rate of false alarms, and the most that the claim allows."""
    import numpy as np

    from tacit.audits import claimed_power, power
    from tacit.randomness import simulated
    from tacit.reports import draw_lines

    runs = min(flags.total, _FIGURE_RUNS)
    rates = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.9])
    rates = rates[rates * runs >= 10]
    found, errors = power(target.run, rates, runs=runs, rng=simulated(flags.seed, "audit", "figure"))
    most = claimed_power(target.event, rates, accuracy=flags.delta or 1e-6)
    lines = {"attack": (found, errors), "most that the claim allows": (most, np.zeros(rates.size))}
    rows: list[dict[str, object]] = [
        {_ALARMS: float(x), _FOUND: float(y), "error": float(e), "line": name}
        for name, (ys, es) in lines.items()
        for x, y, e in zip(rates, ys, es, strict=True)
    ]
    # Without privacy, everything is found.
    rows.append({_ALARMS: None, _FOUND: 1.0, "error": 0.0, "line": "attack"})
    draw_lines(rows, path, x=_ALARMS, y=_FOUND, error="error", line="line", log_x=True, title=title)
