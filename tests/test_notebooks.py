"""Notebooks run from their first cell to their last, and hold nothing of the machine they were written on."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pandas as pd
import pytest
from tools import notebooks

from tests.cli import test_journey as journey

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_kept(notebook: Path) -> None:
    found = json.loads(notebook.read_text(encoding="utf-8"))
    kept = [cell for cell in found["cells"] if cell.get("outputs") or cell.get("execution_count")]
    assert kept == []
    assert set(found["metadata"]) <= {"kernelspec", "language_info"}
    assert set(found["metadata"]["language_info"]) == {"name"}  # not the version of a Python


@pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client", "ignore::DeprecationWarning:zmq")
def test_files_become_scores(tmp_path: Path) -> None:
    ran = notebooks.run(FOLDER / "files-to-scores.ipynb", tmp_path)
    page = notebooks.page(ran)
    for shown in (
        "columns.toml: 8 gaps to fill in",
        "4 files, 3,600 records: 0 to mend",
        "each with the limit epsilon 8.0 at delta 0.001, for replacing one person",
        "baseline  most ",
        "verified: 4 guarantees in runs/first/statement.json",
        "&lt;title&gt;",  # of the report, which is a page in the page
        "new.csv: 900 records, scored by first into scored.csv",
        "data set  [##########..............................]  25 %",
    ):
        assert shown in page, shown
    tables = [line for line in page.splitlines() if "─" in line]
    assert tables
    assert max(map(len, tables)) <= notebooks.COLUMNS, "a table that the page does not show"
    assert "\x1b" not in page, "colours of a terminal"
    assert "warning:" not in page
    assert "Warning:" not in page
    scored, truth = pd.read_csv(tmp_path / "scored.csv"), pd.read_csv(tmp_path / "wards" / "east.csv")
    assert (scored["prediction"] == truth["readmitted"]).mean() > 0.65


def test_the_records_are_those_of_the_journey() -> None:
    cells = json.loads((FOLDER / "files-to-scores.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert inspect.getsource(journey.write_wards).rstrip() in code


def test_a_cell_that_fails_is_told(tmp_path: Path) -> None:
    import nbformat
    from nbclient.exceptions import CellExecutionError

    failing = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0", id="one")])
    nbformat.write(failing, tmp_path / "failing.ipynb")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        notebooks.run(tmp_path / "failing.ipynb", tmp_path)
