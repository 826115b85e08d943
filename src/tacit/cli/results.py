"""What a finished training says to a person: its table, what is guaranteed, and where everything lies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.output import print_table, print_text, print_whole

if TYPE_CHECKING:
    from tacit.jobs import JobResult

__all__ = ["show_result"]


def show_result(result: JobResult, folder: Path, *, roster: Path | None = None) -> None:
    """Print the table of results, what is guaranteed, and where everything lies.

    Args:
        result: A finished job.
        folder: Where it was written.
        roster: Of the federation that ran it, whose parties have signed.
    """
    folder, roster = _from_here(folder), None if roster is None else _from_here(roster)
    keys = "" if roster is None else f"--keys {roster} "
    from tacit.privacy.paragraphs import paragraphs
    from tacit.reports import baseline_of, guarantees_about, left_out, result_rows, silo_words
    from tacit.reports.inside import hidden_words
    from tacit.reports.statement import notes_on_moment
    from tacit.reports.tables import metric_of, personal_words, unused_labels, why_chosen

    rows = result_rows(result)
    metric = metric_of(result)
    columns = ("trust", "algorithm", metric, "epsilon", "delta", "sent per silo", "rounds", "seconds")
    cells = [(r.trust, r.algorithm, r.score, r.epsilon, r.delta, r.size, r.rounds, r.seconds) for r in rows]
    cells.append(("baseline", *baseline_of(result), "", "", "", "", ""))
    print_text(f"{result.job.source}: {silo_words(result)}")
    if not result.job.architecture.is_plain:
        size = result.results[0].trained.w.size
        print_text(f"model: {result.job.architecture}, {size:,} parameters")
    print_table(columns, cells, right=columns[2:])
    runs = ((one.trust, one.trained.algorithm, one.trained.algorithm_reason) for one in result.results)
    trained = [(one.trained.algorithm, one.trained) for one in result.results]
    inside = {name: hidden_words(found.plan) for name, found in trained}
    sample = result.facts.sample
    about = [
        *why_chosen(runs),
        *(f"{name}: {words}" for name, words in inside.items() if words),
        *unused_labels(
            ((name, found.trained_with) for name, found in trained),
            labelled=sample is not None and sample.y is not None,
        ),
        *notes_on_moment(result.job.stated, result.facts.assumed),
    ]
    if result.job.leaves_out_central:
        about.append("central is left out: no server sees the steps inside silos, to add noise to them.")
    about += [personal_words(one.trust, one.personal) for one in result.results if one.personal is not None]
    clips = {one.trust: one.trained.clip for one in result.results if one.trained.clip is not None}
    about += [f"{trust}: a first round chose the clip {clip:.4g}." for trust, clip in clips.items()]
    about += [f"{trust} is left out: {why}." for trust, why in left_out(result).items()]
    print_text("\n".join(["", *about, ""]) if about else "")
    for who, said in paragraphs(*guarantees_about(result)):
        print_text(f"{who}: {said}")
    print_whole(f"\nReport:  {folder / 'report.html'}")
    print_whole(f"Check:   tacit account verify {keys}{folder / 'statement.json'}")


def _from_here(path: Path) -> Path:
    """Return a path as one would type it in this folder."""
    return path.relative_to(here) if path.is_relative_to(here := Path.cwd()) else path
