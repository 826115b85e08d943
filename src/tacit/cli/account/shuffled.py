"""`tacit account shuffle`: what a shuffled batch tells about one party."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.account.options import (
    Delta,
    Mechanism,
    Plot,
    RoundsOption,
    SampleRate,
    check_local_epsilon,
    check_picture,
    sampled_parties,
    shuffled_rounds,
)
from tacit.cli.account.plots import Against, check_axis, draw_comparison
from tacit.cli.output import JsonFlag, print_facts, print_json, print_text
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.privacy import Event

__all__ = ["LocalEpsilon", "Parties", "event_of", "observers", "shuffle"]

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
Messages = Annotated[int, typer.Option(help="Messages per party, each through a shuffler of its own.")]


def shuffle(
    local_epsilon: LocalEpsilon,
    n: Parties,
    delta: Delta,
    rounds: RoundsOption = 1,
    sample_rate: SampleRate = 1.0,
    mechanism: Mechanism = "general",
    messages: Messages = 1,
    plot: Plot = None,
    against: Against = "n",
    json: JsonFlag = False,
) -> None:
    """Price shuffled messages: the batch, and one message alone.

    The batch says little about one party, as long as nobody links messages to senders. With --sample-rate, a
    secret sample of that share of the parties takes part in every round. With --plot, a picture shows epsilon
    of every method for one message a round, against n, the rounds or the local epsilon.
    """
    from tacit.privacy import PureDP, guarantee, neighbours_of
    from tacit.privacy.statement import About, Statement

    check_axis(against)
    if plot is not None:
        check_picture(plot)
    check_local_epsilon(local_epsilon)
    event = shuffled_rounds(
        n=n, mechanism=mechanism, messages=messages, rounds=rounds, sample_rate=sample_rate
    )(local_epsilon)
    present = sampled_parties(n, sample_rate)
    start = time.perf_counter()
    batch = guarantee(
        event,
        delta,
        observer=observers(rounds, messages)[0],
    )
    seconds = time.perf_counter() - start
    alone = guarantee(
        PureDP(local_epsilon, neighbours_of(event)), 0.0, observer=observers(rounds, messages)[1]
    )
    found: dict[str, Any] = {
        "epsilon": batch.epsilon,
        "delta": delta,
        "local_epsilon": local_epsilon,
        "n": n,
        "parties_per_round": present,
        "mechanism": mechanism,
        "messages": messages,
        "rounds": rounds,
        "sample_rate": sample_rate,
        "method": batch.method,
        "seconds": seconds,
    }
    if plot is not None:
        draw_comparison(
            plot, against, local_epsilon=local_epsilon, n=n, delta=delta, rounds=rounds,
            sample_rate=sample_rate, mechanism=mechanism,
        )  # fmt: skip
        found["plot"] = plot
    if json:
        about = tuple(About(trust=trust, units=n) for trust in ("shuffle", "local"))
        said = Statement(kind="account shuffle", guarantees=(batch, alone), about=about, answer=found)
        print_json(said.to_builtins())
        return
    parties = f"{n:,}" + ("" if present == n else f", a secret sample of {present:,} of them a round")
    print_facts(
        {
            "epsilon": f"{batch.epsilon:.10g}",
            "delta": f"{delta:.10g}",
            "one message alone": f"epsilon {local_epsilon:.10g} ({mechanism})",
            "parties": parties,
            "rounds": rounds if messages == 1 else f"{rounds}, {messages} messages each",
            "method": batch.method,
            "computed in": f"{seconds:.3f} s",
            **({} if plot is None else {"plot": plot}),
        },
        title="Price of a shuffled batch",
    )
    print_text(f"\n{batch}")


def observers(rounds: int, messages: int) -> tuple[str, str]:
    """Return who looks at all batches, and who at one message alone."""
    batches = "an observer of the shuffled batch" + ("es" if rounds * messages > 1 else "")
    return batches, "an observer of one message and its sender"


def event_of(asked: dict[str, Any]) -> Event:
    """Return what was released, from the facts that an answer holds."""
    facts = {name: asked[name] for name in ("n", "mechanism", "messages", "rounds", "sample_rate")}
    present = sampled_parties(asked["n"], asked["sample_rate"])
    if asked["parties_per_round"] != present:
        raise ParameterError(f"parties_per_round is {present}, got {asked['parties_per_round']!r}.")
    seconds = asked["seconds"]
    if type(seconds) not in (int, float) or seconds < 0:
        raise ParameterError(f"seconds must be a number >= 0, got {seconds!r:.80}.")
    if not isinstance(asked.get("plot", ""), str):
        raise ParameterError("plot must be the name of a file.")
    return shuffled_rounds(**facts)(asked["local_epsilon"])
