"""Reports of single answers, as `--report` writes them: pages that need nothing from outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.files import check_file
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.reports import AnswerPage

__all__ = ["ReportFlag", "check_page", "write_page"]

ReportFlag = Annotated[
    Path | None,
    typer.Option(help="Page to read and hand on, with pictures: .html.", show_default="no report"),
]


def check_page(path: Path | None) -> None:
    """Refuse a page that could not be written, and load what it takes, before anything is spent."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"report must be a file that ends with .html, got {str(path)!r}.")
    check_file("report", path)
    from tacit.reports import load_answer_page

    load_answer_page()


def write_page(path: Path, page: AnswerPage) -> None:
    """Write a report."""
    from datetime import UTC, datetime

    from tacit.reports import render_answer

    path.write_text(render_answer(page, created=datetime.now(UTC)), encoding="utf-8")
