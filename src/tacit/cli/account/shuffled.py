"""`tacit account shuffle`: what a shuffled batch tells about one party."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.account.options import (
    Delta,
    Mechanism,
    Plot,
    RoundsOption,
    SampleRate,
    check_mechanism,
    composition,
)
from tacit.cli.account.output import print_price
from tacit.cli.account.plots import Against, check_axis, draw_comparison
from tacit.cli.files import check_picture
from tacit.cli.flags import takes
from tacit.cli.output import JsonFlag
from tacit.errors import ParameterError, check_count, check_probability

if TYPE_CHECKING:
    from tacit.privacy import Event

__all__ = ["Shuffle", "event_of", "observers", "shuffle"]

LocalEpsilon = Annotated[
    float,
    typer.Option(help="Pure local epsilon of one message, in (0, 30]: what the message alone may reveal."),
]
Parties = Annotated[
    int,
    typer.Option(
        "--n", help="Number of parties, at least 2, each with one honest message that is delivered."
    ),
]
Messages = Annotated[
    int,
    typer.Option(help="Number of messages per party, each through a shuffler of its own."),
]


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """Rounds of shuffled messages, of all or of sampled parties.

    Attributes:
        local_epsilon: Of one message.
        n: Parties that exist.
        rounds: Rounds.
        sample_rate: Share of the parties that take part in a round; the sample is secret.
        mechanism: The local randomizer, by name.
        messages: Messages of one party in a round.
    """

    local_epsilon: LocalEpsilon
    n: Parties
    rounds: RoundsOption = 1
    sample_rate: SampleRate = 1.0
    mechanism: Mechanism = "general"
    messages: Messages = 1

    @property
    def present(self) -> int:
        """How many of the parties take part in a round.

        Raises:
            ParameterError: Fewer than two parties, or fewer than two in a sample.
        """
        from tacit.privacy.shuffling.pair import MOST_PARTIES

        if self.n < 2:
            raise ParameterError(
                f"n must be a whole number >= 2, got {self.n!r}: a shuffle of one message hides nothing."
            )
        check_count("n", self.n, low=2, high=MOST_PARTIES)
        check_probability("sample-rate", self.sample_rate, low_open=True)
        present = int(self.sample_rate * self.n * (1 + 1e-12))
        if present < 2:
            raise ParameterError(
                f"sample-rate must leave at least 2 of the n = {self.n:,} parties in a round, got "
                f"{self.sample_rate!r}: a shuffle of one message hides nothing."
            )
        return present

    @property
    def parties(self) -> str:
        """The parties in words."""
        sample = f", a secret sample of {self.present:,} of them a round"
        return f"{self.n:,}{'' if self.present == self.n else sample}"

    def event(self) -> Event:
        """Return what is released.

        Raises:
            ParameterError: A value that is not allowed; it names the option.
        """
        from tacit import privacy
        from tacit.privacy.shuffling.pair import check_local_level

        check_local_level("local-epsilon", self.local_epsilon)
        present = self.present
        check_count("messages", self.messages)
        check_mechanism(self.mechanism)
        party = privacy.Neighbours(unit=privacy.Unit.PARTY)
        part: Event = privacy.Shuffled(self.local_epsilon, present, self.mechanism, party)
        # The messages of a party share one sample: they are composed before they are sampled.
        part = privacy.Repeat(part, self.messages) if self.messages > 1 else part
        # What is sampled is a whole number of parties.
        return composition(part, rounds=self.rounds, sample_rate=present / self.n)


@dataclass(frozen=True, kw_only=True)
class ShuffleFlags(Shuffle):
    """What is priced, and how it is shown."""

    delta: Delta
    plot: Plot = None
    against: Against = "n"
    json: JsonFlag = False


@takes(ShuffleFlags)
def shuffle(flags: ShuffleFlags) -> None:
    """Price shuffled messages: the batch, and one message alone.

    The batch says little about one party, as long as nobody links messages to senders. With --sample-rate, a
    secret sample of that share of the parties takes part in every round. With --plot, a picture shows epsilon
    of every method for one message a round, against n, the rounds or the local epsilon.
    """
    from tacit.privacy import PureDP, guarantee, neighbours_of
    from tacit.privacy.statement import About

    check_axis(flags.against)
    if flags.plot is not None:
        check_picture(flags.plot)
    event, (batches, message) = flags.event(), observers(flags.rounds, flags.messages)
    start = time.perf_counter()
    batch = guarantee(event, flags.delta, observer=batches)
    seconds = time.perf_counter() - start
    alone = guarantee(PureDP(flags.local_epsilon, neighbours_of(event)), 0.0, observer=message)
    plot = {} if flags.plot is None else {"plot": flags.plot}
    if flags.plot is not None:
        draw_comparison(flags.plot, flags.against, flags, delta=flags.delta)
    print_price(
        "account shuffle",
        batch,
        alone,
        answer={
            "epsilon": batch.epsilon,
            "delta": flags.delta,
            "local_epsilon": flags.local_epsilon,
            "n": flags.n,
            "parties_per_round": flags.present,
            "mechanism": flags.mechanism,
            "messages": flags.messages,
            "rounds": flags.rounds,
            "sample_rate": flags.sample_rate,
            "method": batch.method,
            "seconds": seconds,
            **plot,
        },
        facts={
            "epsilon": f"{batch.epsilon:.10g}",
            "delta": f"{flags.delta:.10g}",
            "one message alone": f"epsilon {flags.local_epsilon:.10g} ({flags.mechanism})",
            "parties": flags.parties,
            "rounds": f"{flags.rounds}" + (f", {flags.messages} messages each" if flags.messages > 1 else ""),
            "method": batch.method,
            "computed in": f"{seconds:.3f} s",
            **plot,
        },
        title="Price of a shuffled batch",
        json=flags.json,
        about=tuple(About(trust=trust, units=flags.n) for trust in ("shuffle", "local")),
        units=flags.n,
    )


def observers(rounds: int, messages: int) -> tuple[str, str]:
    """Return who looks at all batches, and who at one message alone."""
    batches = "an observer of the shuffled batch" + ("es" if rounds * messages > 1 else "")
    return batches, "an observer of one message and its sender"


def event_of(asked: dict[str, Any]) -> Event:
    """Return what was released, from the facts that an answer holds."""
    stated = Shuffle(**{field.name: asked[field.name] for field in fields(Shuffle)})
    if asked["parties_per_round"] != stated.present:
        raise ParameterError(f"parties_per_round is {stated.present}, got {asked['parties_per_round']!r}.")
    seconds = asked["seconds"]
    if type(seconds) not in (int, float) or seconds < 0:
        raise ParameterError(f"seconds must be a number >= 0, got {seconds!r:.80}.")
    if not isinstance(asked.get("plot", ""), str):
        raise ParameterError("plot must be the name of a file.")
    return stated.event()
