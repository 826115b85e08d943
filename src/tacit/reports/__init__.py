"""What a training job leaves for people and programs: run folders, statements, reports, tables."""

from tacit.reports.comparison import (
    COMPARED_COLUMNS,
    comparison_cells,
    comparison_json,
    comparison_notes,
    draw_comparison,
)
from tacit.reports.fair_plots import draw_curve
from tacit.reports.fair_run import fair_figures, write_fair_run
from tacit.reports.figures import draw_lines
from tacit.reports.html import render
from tacit.reports.metrics import DataFigures, Metrics, ModelFigures, Point, read_metrics
from tacit.reports.run_folder import RunFolder, claim_folder, write_run
from tacit.reports.statement import (
    build_statement,
    guarantees_about,
    left_out,
    notes_of,
    plain_words,
    released,
)
from tacit.reports.tables import (
    baseline_of,
    result_rows,
    results_json,
    silo_words,
)

__all__ = [
    "COMPARED_COLUMNS",
    "DataFigures",
    "Metrics",
    "ModelFigures",
    "Point",
    "RunFolder",
    "baseline_of",
    "build_statement",
    "claim_folder",
    "comparison_cells",
    "comparison_json",
    "comparison_notes",
    "draw_comparison",
    "draw_curve",
    "draw_lines",
    "fair_figures",
    "guarantees_about",
    "left_out",
    "notes_of",
    "plain_words",
    "read_metrics",
    "released",
    "render",
    "result_rows",
    "results_json",
    "silo_words",
    "write_fair_run",
    "write_run",
]
