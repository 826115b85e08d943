"""What a fair training leaves on disk: its model, its statement, its figures and a report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from msgspec import UNSET

from tacit.errors import printable
from tacit.fairness import MetricTable
from tacit.jobs import MODEL_FILE, FairResult
from tacit.privacy import NonPrivate, Unit
from tacit.privacy.run_clauses import OPEN, SCORED, SIMULATED
from tacit.privacy.statement import About, DataFacts, OpenModel, Statement, digest_of
from tacit.reports.fair_plots import curve_svg, rates_svg
from tacit.reports.html import template
from tacit.reports.run_folder import RunFolder, finish
from tacit.reports.statement import model_words
from tacit.reports.tables import format_delta, format_epsilon

__all__ = ["FAIR_FIGURES_FILE", "fair_figures", "weight_words", "write_fair_run"]

FAIR_FIGURES_FILE: Final = "fairness.json"
_PAGE: Final = "fair.html.j2"


def fair_figures(result: FairResult) -> dict[str, Any]:
    """Return the numbers of a fair training, as its file and the command line have them.

    Everything about held-out records is an exact statistic of them: of private ones it stays with their
    owner.
    """
    private = _private(result)
    before, fair = result.unconstrained, result.fair
    found: dict[str, Any] = {
        "version": 1,
        "run": result.job.run,
        "data": printable(result.job.title),
        "sensitive": list(result.job.sensitive_columns),
        "fairness": result.notion,
        "fairness_weight": result.weight,
        "max_violation": result.job.max_violation,
        "records": 0 if fair is None else fair.records,
        "accuracy": None if fair is None else fair.accuracy,
        "violation": result.violation,
        "unconstrained_accuracy": None if before is None else before.accuracy,
        "unconstrained_violation": None if before is None else before.violation(result.notion),
        "held_out": None if fair is None else asdict(fair),
        "rates": [_rates(table) for table in result.tables],
        "curve": [asdict(point) for point in result.curve],
        "seconds": result.seconds,
    }
    if private:
        weakest = result.guarantee
        found |= {
            "protect": result.job.protect,
            "trust": result.model.trust,
            "epsilon": weakest.epsilon,
            "delta": weakest.delta,
            "simulated": weakest.simulated,
            "guarantee": str(weakest),
        }
    return found


def write_fair_run(result: FairResult, folder: RunFolder) -> Path:
    """Write the folder of a fair training: `model.json`, `statement.json`, `fairness.json`, `report.html`.

    Args:
        result: A finished job.
        folder: Made by `claim_folder`.

    Returns:
        The folder.

    Raises:
        DataError: The folder cannot be written, or holds a finished run.
    """
    with finish(folder) as path:
        created = datetime.now(UTC)
        figures = fair_figures(result)
        _json(path / FAIR_FIGURES_FILE, figures)
        result.model.save(path / MODEL_FILE)
        files = [path / MODEL_FILE]
        if result.plan is not None:
            files.append(path / "plan.toml")
            files[-1].write_text(result.plan.to_toml(), encoding="utf-8")
        if result.data.description is not None:
            files.append(path / "columns.toml")
            files[-1].write_bytes(result.data.description)
        statement = fair_statement(result, run=path.name, created=created, files=files)
        _json(path / "statement.json", statement.to_builtins())
        page = _render(result, figures, run=path.name, created=created)
        (path / "report.html").write_text(page, encoding="utf-8")
    return path


def fair_statement(result: FairResult, *, run: str, created: datetime, files: list[Path]) -> Statement:
    """Build what `tacit account verify` reads; it holds no score and nothing else of private data."""
    private = _private(result)
    data, trust = result.data, result.model.trust
    sizes = data.sizes
    claims = [*result.guarantees, *result.alone] if private else []
    return Statement(
        kind="train",
        run=printable(run),
        created=created.isoformat(timespec="seconds"),
        tacit=version("tacit"),
        released=trust,
        algorithm="dp-fermi" if private else "fermi",
        model=printable(model_words(result.model)),
        guarantees=tuple(claims),
        about=tuple(_about(result)) if private else (),
        not_private=() if private else (OpenModel(trust=trust, sentence=OPEN),),
        data=DataFacts(
            name=printable(result.job.title),
            public=data.public,
            silos=len(sizes),
            unit=Unit.RECORD,
            sizes=dict(zip(data.silo_names, sizes, strict=True)),
            read_off=tuple(map(printable, data.read_off)),
            sensitive=tuple(map(printable, result.job.sensitive_columns))
            if result.job.protect == "sensitive"
            else (),
        ),
        notes=tuple(map(printable, _notes(result))),
        digests={file.name: digest_of(file) for file in files},
    )


def _rates(table: MetricTable) -> dict[str, Any]:
    """Return the rates about one label; a rate of no record is None."""
    return {
        "positive": str(table.positive),
        "computed_by": table.source,
        "by_group": {name: _numbers(row) for name, row in table.by_group.iterrows()},
        "overall": _numbers(table.overall),
        "difference": _numbers(table.difference),
        "ratio": _numbers(table.ratio),
    }


def _numbers(row: Any) -> dict[str, float | None]:
    """Return a row of rates; NaN is none."""
    return {str(name): None if math.isnan(value) else float(value) for name, value in row.items()}


def _about(result: FairResult) -> list[About]:
    """Return whom each guarantee is about, and then each of those about messages alone."""
    data, trust = result.data, result.model.trust
    if trust == "central":
        return [About(trust=trust, silo=None, units=sum(data.sizes))]
    return [
        About(trust=trust, silo=silo, units=n, alone=alone)
        for alone, found in ((UNSET, result.guarantees), (True, result.alone))
        for silo, n, _ in zip(data.silo_names, data.sizes, found, strict=bool(found))
    ]


def _private(result: FairResult) -> bool:
    """Return whether anything is claimed."""
    return not isinstance(result.guarantee.event, NonPrivate)


def weight_words(result: FairResult) -> str:
    """Return how a private run has come to its weight, a sentence; empty where somebody gave it."""
    if result.job.max_violation is None or not _private(result):
        return ""
    return (
        f"The weight {result.weight:.4g} of the penalty was found by the run, for a violation of "
        f"{result.job.max_violation:g} on training records: noisy counts of decisions by group moved it in "
        "every round, and what they cost is in the guarantee. That the violation is met is not promised."
    )


def _notes(result: FairResult) -> list[str]:
    """Return what must be known besides the guarantees, as whole sentences."""
    notes = [*result.data.notes, *filter(None, [weight_words(result)])]
    if _private(result) and any(one.simulated for one in result.guarantees):
        notes.append(SIMULATED)
    return notes if result.data.public else [*notes, SCORED]


def _render(result: FairResult, figures: Mapping[str, Any], *, run: str, created: datetime) -> str:
    """Write the report as HTML; text from the data is escaped."""
    weakest = result.guarantee
    private = _private(result)
    fair = result.fair
    return template(_PAGE).render(
        run=run,
        created=f"{created.day} {created:%B %Y, %H:%M} UTC",
        version=version("tacit"),
        data_name=printable(result.job.title),
        public=result.data.public,
        sensitive=", ".join(result.job.sensitive_columns),
        notion=result.notion,
        weight=f"{result.weight:.4g}",
        found=weight_words(result),
        private=private,
        protect=result.job.protect,
        sentence=str(weakest),
        simulated=private and weakest.simulated,
        epsilon=format_epsilon(weakest.epsilon) if private else "none",
        delta=format_delta(weakest.delta) if private else "none",
        figures=figures,
        fair=fair,
        plots={
            "curve": Markup()
            if fair is None
            else curve_svg(
                result.curve, notion=result.notion, run=(fair.violation(result.notion), fair.accuracy)
            ),
            "rates": Markup() if fair is None else rates_svg(fair, result.unconstrained),
        },
    )


def _json(path: Path, data: Mapping[str, Any]) -> None:
    """Write strict JSON: no NaN, no infinity."""
    path.write_text(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")
