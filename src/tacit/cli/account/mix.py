"""`tacit account compose` and `calibrate`: any mix of releases, and what a budget allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.account.options import (
    Budget,
    Delta,
    Mechanism,
    RoundsOption,
    SampleRate,
    SamplingOption,
    as_drawn,
    check_same,
    clauses_of,
    composition,
)
from tacit.cli.account.output import (
    DIGITS,
    print_price,
    print_statement,
    rounded_down,
    rounded_up,
    rounds_in_words,
    warn_of_price,
)
from tacit.cli.account.releases import parse_release
from tacit.cli.account.shuffled import Shuffle
from tacit.cli.choices import OneOf
from tacit.cli.flags import takes
from tacit.cli.neighbours import RelationOption, neighbours_named
from tacit.cli.output import JsonFlag, print_table, print_text
from tacit.errors import (
    BudgetError,
    ParameterError,
    check_choice,
    check_count,
    check_positive,
    check_probability,
)

if TYPE_CHECKING:
    from tacit.privacy import Event, PrivacyBudget

__all__ = ["OBSERVER", "OBSERVERS", "calibrate", "calibrated", "check_prices", "compose", "composed"]

_TRUST: Final = ("central", "shuffle", "local")
OBSERVER: Final = "an observer of all releases"
OBSERVERS: Final = {
    "central": "an observer of the releases",
    "shuffle": "an observer of the shuffled batches",
    "local": "an observer of the messages and their senders",
}
_LARGEST, _LEAST = 30.0, 1e-5  # local levels above hide nothing, below say nothing


def compose(
    releases: Annotated[
        list[str], typer.Argument(help="Releases as described above, or JSON files of events.")
    ],
    delta: Delta,
    neighbours: RelationOption = "replace-one",
    json: JsonFlag = False,
) -> None:
    """Price any mix of releases on the same data.

    A release is gaussian:Z, laplace:Z, gdp:MU, zcdp:RHO, pure:EPSILON, approx:EPSILON,DELTA,
    discrete-gaussian:STD,SENSITIVITY, discrete-laplace:SCALE,SENSITIVITY, binomial:TRIALS,RESOLUTION,DIM,
    shuffle:LOCAL_EPSILON,PARTIES,MECHANISM (general unless given) or perturbed:Z,STRENGTH (the minimum of
    logistic losses with noise, and a ridge of STRENGTH squared row norms). After it, @0.01 means secret
    samples of 1%, then x1000 a thousand times: gaussian:1.1@0.01x1000. Z is noise / sensitivity. Under
    replace-one samples have a fixed size; @poisson:0.01 is for Gaussian noise on Poisson samples, and takes
    it that a record contributes at most half of the sensitivity.
    """
    from tacit.privacy import Compose, epsilon_of, guarantee, neighbours_of

    parts = tuple(parse_release(text, neighbours=neighbours) for text in releases)
    event = parts[0] if len(parts) == 1 else Compose(parts)
    asked = {
        "neighbours": neighbours_of(event).relation.value,
        "releases": [{"release": text} for text in releases],
    }
    price = guarantee(event, delta, observer=OBSERVER, assumptions=clauses_of(asked))
    warn_of_price(price)
    alone = [{"release": t, "epsilon": epsilon_of(p, delta)} for t, p in zip(releases, parts, strict=True)]
    if json:
        found = {"epsilon": price.epsilon, "delta": delta, **asked, "method": price.method, "releases": alone}
        print_statement("account compose", price, answer=found)
        return
    rows = [(row["release"], f"{row['epsilon']:.6g}") for row in alone]
    print_table(
        ("release", "epsilon alone"),
        [*rows, ("all together", f"{price.epsilon:.6g}")],
        right=("epsilon alone",),
    )
    print_text(f"\n{price}")


@dataclass(frozen=True, kw_only=True)
class CalibrateFlags:
    """A budget, and what is released under it."""

    epsilon: Budget
    delta: Delta
    trust: Annotated[
        str,
        typer.Option(
            click_type=OneOf(_TRUST, told={"shuffle": "everybody a little", "local": "everybody in full"}),
            help="Who adds the noise: {names}.",
        ),
    ] = "central"
    n: Annotated[
        int | None,
        typer.Option(
            help="Number of parties, each with one message per round.",
            show_default="needed with --trust shuffle",
        ),
    ] = None
    rounds: RoundsOption = 1
    sample_rate: SampleRate = 1.0
    mechanism: Mechanism = "general"
    neighbours: RelationOption = "replace-one"
    sampling: SamplingOption = None
    json: JsonFlag = False

    def facts(self) -> dict[str, Any]:
        """Return what is asked about, checked, by the names of an answer."""
        check_count("rounds", self.rounds)
        check_probability("sample-rate", self.sample_rate, low_open=True)
        self._check_trust()
        return {
            "trust": self.trust,
            "rounds": self.rounds,
            "sample_rate": self.sample_rate,
            "neighbours": self.neighbours,
            **as_drawn(self.sampling),
            **({"n": self.n, "mechanism": self.mechanism} if self.trust == "shuffle" else {}),
        }

    def level(self, event_of: Callable[[float], Event], budget: PrivacyBudget) -> float:
        """Return the least noise multiplier, or the largest local level, whose event meets the budget."""
        from tacit.privacy import calibrate as least

        if self.trust == "central":
            return rounded_up(least(event_of, budget))
        # What calibration varies must cost less the more there is of it: the inverse of the local epsilon.
        try:
            found = least(lambda x: event_of(min(1 / x, _LARGEST)), budget, low=1 / _LARGEST, high=1 / _LEAST)
        except BudgetError as error:
            wanted = f"epsilon = {self.epsilon:g}, delta = {self.delta:g} over {self.rounds:,} rounds"
            raise BudgetError(f"no local epsilon from {_LEAST:g} on meets {wanted}.") from error
        return rounded_down(min(1 / found, _LARGEST))

    def _check_trust(self) -> None:
        """Refuse options that a trust model does not have."""
        trust = self.trust
        if self.sampling is not None and trust != "central":
            raise ParameterError(
                f"sampling goes with --trust central only, got {self.sampling!r} for --trust {trust}."
            )
        if trust == "shuffle":
            if self.n is None:
                raise ParameterError(
                    "n must be given for --trust shuffle: what a shuffle hides depends on it."
                )
            if self.neighbours != "replace-one":
                raise ParameterError(
                    "neighbours must be replace-one for --trust shuffle, because the size of a batch is "
                    f"public, got {self.neighbours!r}."
                )
            return
        if self.mechanism != "general":
            raise ParameterError(
                f"mechanism goes with --trust shuffle only, got {self.mechanism!r} for --trust {trust}."
            )
        if trust == "local" and self.sample_rate < 1:
            raise ParameterError(
                f"sample-rate must be 1 for --trust local, got {self.sample_rate!r}: messages with their "
                "senders show who was sampled."
            )


@takes(CalibrateFlags)
def calibrate(flags: CalibrateFlags) -> None:
    """Find what a budget allows: the least noise under central trust, or the largest local epsilon.

    The answer is rounded to the safe side and priced again.
    """
    from tacit.privacy import PrivacyBudget, guarantee
    from tacit.privacy.statement import About

    budget = PrivacyBudget(flags.epsilon, flags.delta)
    asked, trust = flags.facts(), flags.trust
    name = "noise_multiplier" if trust == "central" else "local_epsilon"

    def event_of(level: float) -> Event:
        """Return the release with a noise multiplier, or with a local epsilon."""
        return calibrated({**asked, "budget_epsilon": flags.epsilon, name: level})

    level = flags.level(event_of, budget)
    price = guarantee(event_of(level), flags.delta, observer=OBSERVERS[trust], assumptions=clauses_of(asked))
    found = {
        name: level,
        "epsilon": price.epsilon,
        "budget_epsilon": flags.epsilon,
        "delta": flags.delta,
        **asked,
        "method": price.method,
    }
    rounds = rounds_in_words(flags.rounds, flags.sample_rate, flags.neighbours, flags.sampling)
    facts = {
        name.replace("_", " "): f"{level:.{DIGITS}f}",
        "epsilon": f"{price.epsilon:.10g}, of {flags.epsilon:.10g} allowed",
        "delta": f"{flags.delta:.10g}",
        "trust": trust,
        "rounds": rounds if trust == "central" else f"{flags.rounds}",
    }
    if trust == "shuffle":
        facts |= {"parties": _shuffle(found).parties, "mechanism": flags.mechanism}
    print_price(
        "account calibrate",
        price,
        answer=found,
        facts={**facts, "method": price.method},
        title="What the budget allows",
        json=flags.json,
        about=(About(trust=trust, units=flags.n),),
        units=flags.n,
    )


def composed(asked: dict[str, Any]) -> Event | None:
    """Return what was released, from the facts that an answer of `compose` holds; None if a file said it."""
    from tacit.privacy import Compose

    for row in asked["releases"]:
        if set(row) != {"release", "epsilon"} or type(row["epsilon"]) not in (int, float, type(None)):
            raise ParameterError("every one of releases must have a release and its epsilon, nothing else.")
    if any(row["release"].endswith(".json") for row in asked["releases"]):
        return None
    parts = tuple(parse_release(row["release"], neighbours=asked["neighbours"]) for row in asked["releases"])
    return parts[0] if len(parts) == 1 else Compose(parts)


def check_prices(asked: dict[str, Any]) -> None:
    """Refuse prices of single releases in an answer of `compose` that are not theirs."""
    from tacit.privacy import epsilon_of
    from tacit.privacy.statement_checks import check_work_of_all

    parts = {
        row["release"]: parse_release(row["release"], neighbours=asked["neighbours"])
        for row in asked["releases"]
    }
    check_work_of_all(parts.values())
    found = {text: epsilon_of(part, asked["delta"]) for text, part in parts.items()}
    for row in asked["releases"]:
        check_same(f"epsilon of {row['release']}", row["epsilon"], found[row["release"]])


def calibrated(asked: dict[str, Any]) -> Event:
    """Return what was released, from the facts that an answer of `calibrate` holds."""
    from tacit import privacy

    trust = check_choice("trust", asked["trust"], _TRUST)
    check_positive("budget_epsilon", asked["budget_epsilon"])
    if asked.get("epsilon", 0) > asked["budget_epsilon"]:
        raise ParameterError(f"budget_epsilon is below epsilon, got {asked['budget_epsilon']!r}.")
    level = "noise_multiplier" if trust == "central" else "local_epsilon"
    others = {"noise_multiplier", "local_epsilon", *(() if trust == "shuffle" else ("n", "mechanism"))}
    if wrong := sorted((others - {level}) & set(asked)):
        raise ParameterError(f"{wrong[0]} is not a fact of trust {trust!r}.")
    if trust == "shuffle":
        return _shuffle(asked).event()
    relation = neighbours_named(asked["neighbours"])
    kind = privacy.Gaussian if trust == "central" else privacy.PureDP
    return composition(
        kind(asked[level], relation),
        rounds=asked["rounds"],
        sample_rate=asked["sample_rate"],
        sampling=asked.get("sampling"),
    )


def _shuffle(asked: dict[str, Any]) -> Shuffle:
    """Return what was shuffled, from the facts that an answer of `calibrate` holds."""
    names = ("local_epsilon", "n", "rounds", "sample_rate", "mechanism")
    return Shuffle(**{name: asked[name] for name in names})
