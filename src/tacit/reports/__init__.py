"""What a training job leaves for people and programs: run folders, statements, reports, tables."""

from tacit.reports.figures import draw_lines
from tacit.reports.html import render
from tacit.reports.run_folder import RunFolder, claim_folder, write_run
from tacit.reports.statement import STATEMENT_VERSION, build_statement, notes_of, plain_words, released
from tacit.reports.tables import result_rows, results_json

__all__ = [
    "STATEMENT_VERSION",
    "RunFolder",
    "build_statement",
    "claim_folder",
    "draw_lines",
    "notes_of",
    "plain_words",
    "released",
    "render",
    "result_rows",
    "results_json",
    "write_run",
]
