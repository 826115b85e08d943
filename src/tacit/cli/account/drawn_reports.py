"""`tacit account reports`: what SGD on shuffled reports costs, by every accountant, and what it sends."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.account.options import Delta, check_same
from tacit.cli.account.output import print_price
from tacit.cli.choices import OneOf
from tacit.cli.flags import takes
from tacit.cli.names import REPORTS
from tacit.cli.output import JsonFlag
from tacit.errors import ParameterError, VerificationError, check_count, check_probability

if TYPE_CHECKING:
    from tacit.learning.algorithms.shuffled_reports import ReportMean
    from tacit.privacy import Event
    from tacit.privacy.statement import Statement

__all__ = ["OBSERVER", "Randomizer", "check_prices", "check_reports", "event_of", "reports"]

OBSERVER = "an observer of the shuffled batches"

Randomizer = Annotated[
    str,
    typer.Option(
        click_type=OneOf(
            REPORTS,
            told={
                "hemisphere": "one direction",
                "hadamard": "for gradients in an l1 ball",
                "bitplane": "one bit of one coordinate, for an l-infinity ball",
            },
        ),
        help="How a gradient becomes a report: {names}.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Reports:
    """Rounds of reports about records of clients, of whom some are drawn in secret.

    Attributes:
        local_epsilon: Exact level of the report on one record.
        clients: n.
        drawn: k of them in a round; None: all of them, or those that join.
        join_rate: Probability with which each joins by itself; None where they are drawn.
        records: m of each client.
        sampled: s of which a client reports on.
        rounds: T.
        dim: Parameters of the model.
        randomizer: How a gradient becomes a report.
    """

    local_epsilon: Annotated[float, typer.Option(help="Exact local epsilon of the report on one record.")]
    clients: Annotated[int, typer.Option(help="Number of honest clients.")]
    rounds: Annotated[int, typer.Option(help="Number of rounds.")]
    dim: Annotated[int, typer.Option(help="Number of parameters of the model.")]
    drawn: Annotated[
        int | None,
        typer.Option(help="Clients that the shuffler draws in each round.", show_default="all of them"),
    ] = None
    join_rate: Annotated[
        float | None,
        typer.Option(
            help="Instead, the probability with which every client joins a round by itself (DSS-SGD).",
            show_default="clients are drawn",
        ),
    ] = None
    records: Annotated[int, typer.Option(help="Records of each client.")] = 1
    sampled: Annotated[int, typer.Option(help="Records that a client of a round reports on.")] = 1
    randomizer: Randomizer = "hemisphere"

    @property
    def mean(self) -> ReportMean:
        """The mean of such reports.

        Raises:
            ParameterError: No report has that level.
        """
        from tacit.learning.algorithms.shuffled_reports import report_mean
        from tacit.privacy import TrustModel
        from tacit.privacy.shuffling.pair import check_local_level

        check_local_level("local-epsilon", self.local_epsilon)
        check_count("dim", self.dim)
        multiplier = 1 / (2 * math.sinh(self.local_epsilon / 2))
        found = report_mean(
            self.randomizer,  # type: ignore[arg-type]  # one of the names, which it checks
            multiplier,
            dim=self.dim,
            trust=TrustModel.SHUFFLE,
        )
        if not math.isclose(found.pure_epsilon, self.local_epsilon, rel_tol=1e-9):
            raise ParameterError(
                f"local-epsilon must be a level that {self.randomizer} has, got {self.local_epsilon!r}; the "
                f"nearest is {found.pure_epsilon:.6g}."
            )
        return found

    def event(self) -> Event:
        """Return what is released.

        Raises:
            ParameterError: A value that is not allowed; it names the option.
        """
        from tacit.learning.algorithms.shuffled_reports import event_of_reports
        from tacit.privacy.composition import MOST_RELEASES

        mean = self.mean
        check_count("rounds", self.rounds, high=MOST_RELEASES)
        if self.drawn is not None and self.join_rate is not None:
            raise ParameterError("drawn and join-rate exclude each other: clients are drawn, or join.")

        if self.join_rate is not None:
            check_probability("join-rate", self.join_rate, low_open=True)
        return event_of_reports(
            mean,
            clients=self.clients,
            rounds=self.rounds,
            drawn=self.drawn,
            rate=self.join_rate,
            records=self.records,
            sampled=self.sampled,
        )

    @property
    def about(self) -> str:
        """What a report is of, as a clause of the guarantee: its price alone would not say."""
        return f"a report is of a gradient of {self.dim:,} numbers, by {self.randomizer!r}"

    @property
    def bits(self) -> float:
        """Expected bits of a client in a round, where the order of its reports is not sent."""
        from tacit.learning.algorithms.shuffled_reports import report_bits

        share = self.join_rate or (self.drawn or self.clients) / self.clients
        return share * report_bits(self.mean, self.sampled)

    def by_others(self, delta: float) -> dict[str, float]:
        """Return the epsilon by accountants of the literature; none of clients that join by themselves."""
        from tacit.literature.shuffling.rounds import cldp_epsilons

        if self.join_rate is not None or delta == 0:
            return {}
        found = cldp_epsilons(
            self.local_epsilon,
            delta,
            rounds=self.rounds,
            clients=self.clients,
            sampled_clients=self.drawn or self.clients,
            records=self.records,
            sampled_records=self.sampled,
        )
        return {"general" if name == "curve" else name: value for name, value in found.items()}


@dataclass(frozen=True, kw_only=True)
class ReportFlags(Reports):
    """What is priced, and how it is shown."""

    delta: Delta
    json: JsonFlag = False


@takes(ReportFlags)
def reports(flags: ReportFlags) -> None:
    """Price SGD on shuffled reports: CLDP-SGD and DSS-SGD.

    Each gradient is a report of its own, of a given local epsilon, about records of clients whom only the
    shuffler knows. Beside the price stand those of other accountants: the curve of any report of that level,
    Renyi divergences, and compositions of amplified rounds. The printed level of Girgis (2023) is a parameter
    v, whose exact level is 2 asinh(v / 2).
    """
    from tacit.privacy import guarantee

    price = guarantee(flags.event(), flags.delta, observer=OBSERVER, assumptions=(flags.about,))
    asked = {field.name: getattr(flags, field.name) for field in fields(Reports)}
    others = flags.by_others(flags.delta)
    joined = "all of them in every round"
    if flags.drawn not in (None, flags.clients):
        joined = f"{flags.drawn:,} drawn in secret"
    elif flags.join_rate is not None:
        joined = f"each joins with probability {flags.join_rate:g}"
    print_price(
        "account reports",
        price,
        answer={
            "epsilon": price.epsilon,
            "delta": flags.delta,
            "method": price.method,
            **asked,
            "bits_per_client": flags.bits,
            "accountants": others,
        },
        facts={
            "epsilon": f"{price.epsilon:.10g}",
            "delta": f"{flags.delta:.10g}",
            "one report alone": f"epsilon {flags.local_epsilon:.10g} ({flags.randomizer})",
            "clients": f"{flags.clients:,}, {joined}",
            "records": f"{flags.sampled:,} of {flags.records:,} of a client",
            "rounds": f"{flags.rounds:,}",
            "bits of a client": f"{flags.bits:.6g} a round, expected",
            "method": price.method,
            **{f"by {name}": f"{value:.6g}" for name, value in others.items()},
        },
        title="Price of SGD on shuffled reports",
        json=flags.json,
    )


def event_of(asked: dict[str, Any]) -> Event:
    """Return what was released, from the facts that an answer holds."""
    return _asked(asked).event()


def check_reports(found: Statement) -> None:
    """Refuse a guarantee about reports of other gradients."""
    if (about := _asked(found.answer).about) not in found.guarantees[0].assumptions:
        raise VerificationError(f"the statement leaves out what its price is of: {about}.")


def check_prices(asked: dict[str, Any]) -> None:
    """Refuse bits and prices by other accountants that are not those of the run."""
    stated, others = _asked(asked), asked["accountants"]
    check_same("bits_per_client", asked["bits_per_client"], stated.bits)
    found = stated.by_others(asked["delta"])
    if not isinstance(others, dict) or set(others) != set(found):
        raise ParameterError(f"accountants must be {', '.join(found) or 'none'}.")
    for name, value in found.items():
        check_same(f"the price by {name}", others[name], value)


def _asked(asked: dict[str, Any]) -> Reports:
    return Reports(**{field.name: asked[field.name] for field in fields(Reports)})
