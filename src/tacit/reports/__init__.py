"""What people and programs read: run folders, statements, pages, pictures and tables."""

from tacit.reports.answers import (
    AnswerPage,
    PageFigure,
    PagePart,
    Tile,
    load_answer_page,
    price_tiles,
    render_answer,
)
from tacit.reports.bandits import draw_estimates, draw_regret, run_page, simulation_page
from tacit.reports.comparison import (
    COMPARED_COLUMNS,
    comparison_cells,
    comparison_json,
    comparison_notes,
    draw_comparison,
)
from tacit.reports.fair_plots import draw_curve
from tacit.reports.fair_run import fair_figures, weight_words, write_fair_run
from tacit.reports.figures import draw_lines
from tacit.reports.frequencies import draw_frequencies, frequency_page
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
    "AnswerPage",
    "DataFigures",
    "Metrics",
    "ModelFigures",
    "PageFigure",
    "PagePart",
    "Point",
    "RunFolder",
    "Tile",
    "baseline_of",
    "build_statement",
    "claim_folder",
    "comparison_cells",
    "comparison_json",
    "comparison_notes",
    "draw_comparison",
    "draw_curve",
    "draw_estimates",
    "draw_frequencies",
    "draw_lines",
    "draw_regret",
    "fair_figures",
    "frequency_page",
    "guarantees_about",
    "left_out",
    "load_answer_page",
    "notes_of",
    "plain_words",
    "price_tiles",
    "read_metrics",
    "released",
    "render",
    "render_answer",
    "result_rows",
    "results_json",
    "run_page",
    "silo_words",
    "simulation_page",
    "weight_words",
    "write_fair_run",
    "write_run",
]
