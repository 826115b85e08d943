"""`tacit bandit run`: a bandit with real clients, from a log of what was observed."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from tacit.cli.bandit.question import TRUSTS, Decisions, budget_facts, read_actions
from tacit.cli.choices import OneOf
from tacit.cli.files import check_file, check_picture
from tacit.cli.flags import takes
from tacit.cli.output import JsonFlag, print_json, print_table, print_text
from tacit.cli.pages import ReportFlag, check_page, write_page
from tacit.cli.paying import SeedOption
from tacit.errors import DataError, ParameterError, check_choice

if TYPE_CHECKING:
    from tacit.bandits import BanditPlan, Batch, LiveBandit, RewardPrivacy
    from tacit.ledger import Ledger
    from tacit.numerics import Array, IntArray

__all__ = ["run"]

_BEGINS: Final = ("actions", "horizon", "trust")
_RANGE: Final = ("lower", "upper")
_NO_ESTIMATES: Final = "plot is of the estimates of a batch, and none is answered yet."


@dataclass(frozen=True, kw_only=True)
class RunFlags(Decisions):
    """A run: where it is kept, what it is of, and what was observed."""

    record: Annotated[
        Path,
        typer.Argument(help="File that keeps the run; made where it is missing, gone on with where it is."),
    ]
    actions: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of the actions, one a row, without a header.", show_default="those of the record"
        ),
    ] = None
    horizon: Annotated[
        float | None,
        typer.Option(help="Number of rounds, one client each.", show_default="that of the record"),
    ] = None
    trust: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(TRUSTS),
            help="Who is trusted: {names}.",
            show_default="that of the record",
        ),
    ] = None
    lower: Annotated[
        float, typer.Option(help="Lowest reward; lower ones are clipped, and NaN counts as this one.")
    ] = -1.0
    upper: Annotated[float, typer.Option(help="Highest reward; higher ones are clipped.")] = 1.0
    log: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of what was observed, with the columns batch, action and reward; or "
            "message, under local and shuffle trust. It may grow: answered batches are passed over.",
            show_default="none",
        ),
    ] = None
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Ledger that pays for the rewards under central trust, once for the whole run.",
            show_default="the one beside the log",
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            help="CSV file for the actions of the batch that is to be played, one client a row; under "
            "shuffle trust dealt at random, so that only the shuffler may see it.",
            show_default="none",
        ),
    ] = None
    seed: SeedOption = None
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Picture file of the estimates of the batch that was answered last.",
            show_default="no picture",
        ),
    ] = None
    report: ReportFlag = None
    json: JsonFlag = False

    def __post_init__(self) -> None:
        if self.plot is not None:
            check_picture(self.plot)
        check_page(self.report)

    def asked(self) -> BanditPlan | None:
        """Return the plan that the flags ask for; None where they name none."""
        given = [name for name in _BEGINS if getattr(self, name) is not None]
        named = [f for f in fields(self) if f.name in _RANGE or hasattr(Decisions, f.name)]
        others = [f.name for f in named if getattr(self, f.name) != f.default]
        if not given and not others:
            return None
        if len(given) < len(_BEGINS):
            missing = next(name for name in _BEGINS if name not in given)
            raise ParameterError(f"{missing} must be given to start a run, or to check one that was started.")
        rows, horizon, trust = self.actions, self.horizon, self.trust
        if rows is None or horizon is None or trust is None:
            return None
        found = self.plan(read_actions(rows), horizon, check_choice("trust", trust, TRUSTS))
        return replace(found, reward_range=(self.lower, self.upper))


@takes(RunFlags)
def run(flags: RunFlags) -> None:
    """Run a bandit with real clients, batch after batch.

    The first call starts the run and says what is to be played. Have clients play it, append what they answer
    to a log, and call again with the log: complete batches are answered, once and for ever, and the next one
    is said. The record holds noisy sums only, and must not be put back to an older copy.
    """
    from tacit.bandits import LiveBandit
    from tacit.privacy.statement import Statement
    from tacit.randomness import secure, simulated

    asked = flags.asked()
    if flags.out is not None:
        _check_out(flags.out, flags)
    with ExitStack() as opened:
        if flags.record.exists():
            bandit = LiveBandit.resume(flags.record, plan=asked, seed=flags.seed)
            log = None if flags.log is None else _read_log(flags.log, bandit.plan.privacy)
            bandit.pay_from(_payers(flags, opened, pays=bandit.draws_noise))
        else:
            bandit, log = _start(flags, asked, opened), None
        answered = [] if log is None else _answer(bandit, log)
        batch = bandit.next_batch()
    if flags.out is not None:
        rng = secure() if flags.seed is None else simulated(flags.seed, "bandit deal", batch.number)
        shuffled = bandit.plan.privacy.trust == "shuffle"
        rows = batch.deal(rng) if shuffled else batch.in_order()
        flags.out.write_text("action\n" + "".join(f"{row}\n" for row in rows.tolist()), encoding="utf-8")
    _draw(flags, bandit)
    facts = _facts(bandit, batch, answered, flags.out)
    if flags.json:
        print_json(Statement(kind="bandit run", guarantees=bandit.guarantees, answer=facts).to_builtins())
    else:
        _show(facts, bandit, log)


def _start(flags: RunFlags, plan: BanditPlan | None, opened: ExitStack) -> LiveBandit:
    """Start a run."""
    from tacit.bandits import LiveBandit
    from tacit.privacy.weak import warn_of_weak

    if plan is None:
        raise ParameterError(
            f"record must be a run that was started, got {str(flags.record)!r}; give --actions, --horizon "
            "and --trust to start it."
        )
    if flags.plot is not None:
        raise ParameterError(_NO_ESTIMATES)
    check_file("record", flags.record)
    if flags.log is not None:
        raise ParameterError("log is of a run that was started: what would it be the answers to?")
    privacy = plan.privacy
    if privacy.private:
        warn_of_weak(privacy.epsilon, privacy.delta, unit=privacy.neighbours.unit)
    payers = _payers(flags, opened, pays=False)
    return LiveBandit.start(plan, flags.record, seed=flags.seed, accounts=payers)


def _payers(flags: RunFlags, opened: ExitStack, *, pays: bool) -> list[Ledger]:
    """Open the ledgers that pay: those that are named, or those beside the log of a run that pays.

    Args:
        flags: Of the command.
        opened: Closes them.
        pays: Whether answers in the log will be paid for.
    """
    from tacit.cli.paying import paying_places
    from tacit.data import TableFiles
    from tacit.ledger import ledgers_of, open_paying
    from tacit.privacy import Neighbours, Part

    if pays and flags.log is not None:
        log = TableFiles((flags.log,), together=False)
        places = paying_places(log, flags.ledger, Neighbours(part=Part.REWARD), local=False)
    else:
        places = [] if flags.ledger is None else [ledgers_of(flags.ledger)]
    return [opened.enter_context(one) for place in places for one in open_paying(place, local=False)]


def _check_out(out: Path, flags: RunFlags) -> None:
    """Refuse an output that cannot be written, or that would replace a file of the run."""
    check_file("out", out)
    beside = [flags.record.with_name(flags.record.name + end) for end in (".lock", ".new")]
    for path in (flags.record, *beside, flags.log, flags.actions, flags.ledger, flags.plot, flags.report):
        if path is not None and out.resolve() == path.resolve():
            raise ParameterError(f"out must be a file of its own, got {str(out)!r}, which the run needs.")


class _Log(NamedTuple):
    """Rows of a log: batch, action and answer of each."""

    numbers: IntArray
    actions: IntArray
    answers: Array


def _answer(bandit: LiveBandit, log: _Log) -> list[int]:
    """Answer every batch that the log holds whole; return their numbers."""
    numbers, actions, answers = log
    answered: list[int] = []
    while True:
        batch = bandit.next_batch()
        mine = numbers == batch.number
        whole = not batch.final and int(mine.sum()) >= batch.rounds
        later = numbers[numbers > batch.number]
        if later.size and not whole:
            raise DataError(f"log has rows of batch {int(later.min())}, which is not out.")
        if later.size and bandit.draws_noise and not bandit.is_kept:
            # Nobody knows a batch before the one ahead of it is answered: these rewards were answered before.
            raise DataError(
                f"log has rows of batch {int(later.min())} and the record waits for batch {batch.number}: it "
                "is an older copy, or another run. Answering would draw fresh noise for the same rewards; "
                "put the latest record back, or name the ledger that paid for it."
            )
        if not whole:  # nothing yet, or still coming in
            return answered
        bandit.observe(batch.number, actions[mine], answers[mine])
        answered.append(batch.number)


def _read_log(path: Path, privacy: RewardPrivacy) -> _Log:
    """Read batch, action and answer of every row; no answer is quoted.

    An answer that is no number is NaN: one client's cell is no reason to refuse the others.
    """
    import numpy as np

    from tacit.data import read_table
    from tacit.data.cells import numbers

    if not path.is_file():
        raise ParameterError(f"log must be a file that exists, got {str(path)!r}.")
    kind = "message" if privacy.by_message else "reward"
    columns = ["batch", "action", kind]
    table = read_table(path, numeric=columns, may_be_empty=True)
    if sorted(table.columns) != sorted(columns):
        raise DataError(
            f"log must have the columns {', '.join(columns)}, got {', '.join(map(str, table.columns))!r:.80}."
        )
    # Cell by cell: a Parquet file may hold text, whole columns of it.
    batches, actions, answers = (numbers(table[name]) for name in columns)
    public = np.stack([batches, actions])
    if not np.all((public >= [[1], [0]]) & (public < 2**53) & (public == np.floor(public))):
        raise DataError(
            f"log must have whole numbers as batch, from 1, and as action, from 0; {path} has others."
        )
    whole = public.astype(np.int64)
    return _Log(whole[0], whole[1], answers)


def _draw(flags: RunFlags, bandit: LiveBandit) -> None:
    """Write the picture and the report that were asked for; neither is a release of its own."""
    if flags.plot is None and flags.report is None:
        return
    from tacit.reports import draw_estimates, run_page

    decisions = bandit.decisions()
    if flags.plot is not None:
        if not decisions:
            raise ParameterError(_NO_ESTIMATES)
        alive, last = decisions[-1]
        figure = draw_estimates(last, alive, trust=budget_facts(bandit.plan.privacy)["trust"])
        figure.savefig(flags.plot, dpi=200)
    if flags.report is not None:
        page = run_page(bandit.plan, decisions, bandit.guarantees, best=bandit.best, finished=bandit.finished)
        write_page(flags.report, page)


def _facts(bandit: LiveBandit, batch: Batch, answered: list[int], out: Path | None) -> dict[str, Any]:
    """Return where a run stands, for programs."""
    first = bandit.guarantees[0]
    return {
        "answered": answered,
        "batches_answered": bandit.answered,
        "left": bandit.alive.tolist(),
        "best": bandit.best,
        "finished": bandit.finished,
        "reward_range": list(bandit.plan.reward_range),
        **budget_facts(bandit.plan.privacy),
        "next": {
            "batch": batch.number,
            "final": batch.final,
            "rounds": batch.rounds,
            "actions": batch.actions.tolist(),
            "counts": batch.counts.tolist(),
            "level": batch.level if math.isfinite(batch.level) else None,
        },
        "out": None if out is None else str(out),
        "epsilon": first.epsilon if math.isfinite(first.epsilon) else None,
        "delta": first.delta,
        "simulated": first.simulated,
        "guarantee": str(first),
    }


def _show(facts: dict[str, Any], bandit: LiveBandit, log: _Log | None) -> None:
    """Print where a run stands."""
    said = ", ".join(map(str, facts["answered"]))
    print_text(
        f"{facts['batches_answered']} batches answered{f' ({said} now)' if said else ''}, "
        f"{len(facts['left'])} actions left, best so far: {facts['best']}"
    )
    after = facts["next"]
    low, high = facts["reward_range"]
    if not after["final"]:
        print_text(f"rewards are clipped to [{low:g}, {high:g}]")
    what = "play to the end, and collect nothing" if after["final"] else f"batch {after['batch']}: play"
    print_text(f"{what}, {after['rounds']:,} rounds")
    rows: list[tuple[object, ...]] = list(zip(after["actions"], after["counts"], strict=True))
    columns: tuple[str, ...] = ("action", "rounds")
    if log is not None and not after["final"] and (log.numbers == after["batch"]).any():
        in_log = log.actions[log.numbers == after["batch"]].tolist()
        rows = [(*row, in_log.count(row[0])) for row in rows]
        columns = (*columns, "in the log")
    print_table(columns, rows, right=columns[1:])
    print_text("")
    for claim in bandit.guarantees:
        print_text(str(claim))
