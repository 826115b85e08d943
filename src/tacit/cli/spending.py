"""What `tacit ledger show` says: what was spent, when and by which run, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from tacit.cli.output import print_bars, print_facts, print_table, print_text
from tacit.errors import LedgerError, printable

if TYPE_CHECKING:
    from tacit.ledger import Cost
    from tacit.privacy import PrivacyBudget

__all__ = ["draw_spending", "ledger_files", "print_folder", "print_ledger", "summary"]

_ENTRY: Final = ("time", "run", "epsilon", "delta")
"""What people read of a reservation."""

_SUM: Final = b'"DiscreteGaussianSum"'
"""What stands in the event of a run whose price is of sums of messages."""

# Okabe and Ito (2008): distinguishable with any colour vision.
_COLOURS: Final = ("#000000", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#0072B2")


def ledger_files(folder: Path) -> list[Path]:
    """Return the ledgers in a folder, the data set's first and the trusted server's last."""
    from tacit.ledger import CENTRAL, DATA_SET, SUFFIX, ledger_path

    first, last = ledger_path(folder, DATA_SET), ledger_path(folder, CENTRAL)
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: (file != first, file == last, file.name))
    if not files:
        own = folder / "ledger.sqlite"  # of a silo, or a server, of a federation
        if own.is_file():
            return [own]
        raise LedgerError(f"{folder} holds no ledgers; `tacit ledger create` makes them.")
    return files


def summary(path: Path) -> dict[str, Any]:
    """Return what a ledger says, without the stored answers."""
    from tacit.ledger import Ledger

    with Ledger.open(path) as ledger:
        # Read before the sums, which only grow: a reservation made meanwhile is then missing in the list,
        # never in what is spent.
        names = (*_ENTRY, "plan_digest")
        reserved = ledger.entries()
        entries = [{name: one[name] for name in names} for one in map(asdict, reserved)]
        return {
            "path": path,
            "label": ledger.label,
            "neighbours": ledger.neighbours,
            "limit": ledger.limit,
            "spent": ledger.spent(),
            "remaining": ledger.remaining(),
            "entries": entries,
            "sums": [one.run for one in reserved if _SUM in one.event],
        }


def print_ledger(found: dict[str, Any]) -> None:
    """Print one ledger."""
    facts = {
        "label": found["label"] or "none",
        "neighbours": found["neighbours"],
        "limit": _cost(found["limit"]),
        "spent": _cost(found["spent"]),
        "remaining": _cost(found["remaining"]),
        "runs": len(found["entries"]),
    }
    print_facts(facts, title=str(found["path"]))
    print_text("")
    print_bars([("spent", _share(found))])
    if found["entries"]:
        rows = [_row(entry) for entry in found["entries"]]
        print_table(_ENTRY, rows, right=("epsilon", "delta"))
    _say_sums([found])


def print_folder(folder: Path, ledgers: list[dict[str, Any]]) -> None:
    """Print the sums of all ledgers in a folder, then their reservations."""
    costs = ("limit", "spent", "remaining")
    sums = [
        (
            _name(found),
            *(_short(found[cost].epsilon) for cost in costs),
            *(_short(found[cost].delta) for cost in costs),
            len(found["entries"]),
        )
        for found in ledgers
    ]
    numbers = ("epsilon", "spent", "left", "delta", "runs")
    columns = ("ledger", "epsilon", "spent", "left", "delta", "spent", "left", "runs")
    relations = sorted({str(found["neighbours"]) for found in ledgers})
    print_facts({"neighbours": "; ".join(relations)}, title=str(folder))
    print_text("")
    print_bars([(_name(found), _share(found)) for found in ledgers])
    print_table(columns, sums, right=numbers)
    entries = [(_name(found), entry) for found in ledgers for entry in found["entries"]]
    if entries:
        rows = [(name, *_row(entry)) for name, entry in entries]
        print_table(("ledger", *_ENTRY), rows, right=numbers)
    _say_sums(ledgers)


def _say_sums(ledgers: Sequence[dict[str, Any]]) -> None:
    """Say against whom prices add up where some are of sums: the least of their colluders."""
    runs = list(dict.fromkeys(run for found in ledgers for run in found["sums"]))
    if runs:
        print_text(
            f"\nPriced as sums: {', '.join(runs)}. What several runs show together costs what is spent only "
            "if no more parties collude than the statement of each of these allows for."
        )


def draw_spending(path: Path, place: Path, ledgers: Sequence[dict[str, Any]]) -> None:
    """Draw the share of its limit that every account had spent, over time.

    Args:
        path: Picture file to write.
        place: Where the ledgers lie, for the title.
        ledgers: What `summary` says of each; those that spent most have colours and names.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    axes = figure.subplots()
    named = sorted(ledgers, key=lambda found: -_share(found))[: len(_COLOURS)]
    ends = sorted(_moment(entry) for found in ledgers for entry in found["entries"])
    # What is spent stays spent: lines go on after the last run. Equal ones show beside each other.
    last = ends[-1] + ((ends[-1] - ends[0]) / 20 or timedelta(hours=1)) if ends else None
    for found in ledgers if ends else ():
        entries = found["entries"]
        spent = [_share(found | {"spent": _sum(entries[:k])}) for k in range(len(entries) + 1)]
        known = next((k for k, one in enumerate(named) if one is found), None)
        style: dict[str, Any] = {"color": "#b0b1b2", "lw": 0.8, "zorder": 1}
        if known is not None:
            style = {
                "color": _COLOURS[known],
                "lw": 5.0 - 0.6 * known,
                "zorder": 2 + known,
                "label": _name(found),
            }
        times: Any = [ends[0], *map(_moment, entries), last]
        axes.step(times, [100 * share for share in [*spent, spent[-1]]], where="post", **style)
    axes.axhline(100, color="#000000", lw=1.0, ls="--", label="limit")
    axes.set_ylim(0, 105)
    axes.set_ylabel("spent, % of the limit")
    axes.grid(visible=True, lw=0.4, color="#e1e2e3")
    axes.set_axisbelow(True)
    figure.autofmt_xdate()
    figure.suptitle(printable(str(place)), fontsize=11)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)


def _moment(entry: dict[str, Any]) -> datetime:
    """Return when a price was reserved."""
    return datetime.fromisoformat(entry["time"])


def _sum(entries: Sequence[dict[str, Any]]) -> Cost:
    """Return what reservations add up to, as near as a picture needs it."""
    from tacit.ledger import Cost

    return Cost(sum(entry["epsilon"] for entry in entries), sum(entry["delta"] for entry in entries))


def _share(found: dict[str, Any]) -> float:
    """Return the share of the limit that is spent, of epsilon or of delta: whichever is scarcer."""
    limit, spent = found["limit"], found["spent"]
    of_delta = spent.delta / limit.delta if limit.delta > 0 else 0.0
    return float(min(max(spent.epsilon / limit.epsilon, of_delta), 1.0))


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return what people read of a reservation."""
    return entry["time"], entry["run"], _short(entry["epsilon"]), _short(entry["delta"])


def _short(number: float) -> str:
    """Return a price in a table, where all of its digits would leave a terminal; --json has them."""
    return repr(float(f"{number:.6g}"))


def _name(found: dict[str, Any]) -> str:
    """Return what a ledger is called in a folder."""
    return str(found["label"] or found["path"].name)


def _cost(cost: PrivacyBudget | Cost) -> str:
    """Return a limit or a sum of prices on one line."""
    return f"epsilon {cost.epsilon!r} at delta {cost.delta!r}"
