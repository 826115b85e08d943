"""The page that compares libraries was written by the tool, and the tool runs where there are no peers."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers import libraries, page, run
from benchmarks.peers.tasks import TASKS

FACTS = {"commit": "0000000", "cpus": 2}


def row(
    library: str,
    value: float,
    *,
    error: float = 0.001,
    relation: str = "add-remove",
    name: str = "classify/mnist",
) -> dict[str, Any]:
    """Return what one library says to the first question of a task."""
    task = next(task for task in TASKS if task.name == name)
    answer = {"value": value, "error": error, "said": [0.9, 1e-5], "processor": 2.0, "wall": 3.0}
    return {
        "task": task.name,
        "library": library,
        "relation": relation,
        "note": "",
        "rests": "noise",
        "lines": 9,
        "answers": [{"question": task.asked[1], **answer}],
        "import_seconds": 1.0,
        "import_mb": 100.0,
        "peak_mb": 200.0,
        "commit": "0000000",
    }


def rendered(*rows: dict[str, Any]) -> str:
    return page.render({"facts": FACTS, "versions": {}, "rows": list(rows)})


def test_the_page_is_what_the_tool_writes() -> None:
    record = json.loads(run.RECORD.read_text(encoding="utf-8"))
    assert page.PAGE.read_text(encoding="utf-8") == page.render(record), "run `python -m benchmarks peers`"
    assert run.in_order(record["rows"]) == record["rows"]


def test_the_record_is_about_the_files_that_are_there() -> None:
    lines = {
        (task.name, library.name, way.relation, way.note): libraries.lines_of(
            library.module, way.function or task.kind
        )
        for task in TASKS
        for library in libraries.LIBRARIES
        for way in library.ways
        if task.name.startswith(way.tasks)
    }
    for one in json.loads(run.RECORD.read_text(encoding="utf-8"))["rows"]:
        known = (one["task"], one["library"], one["relation"], one["note"])
        assert one["lines"] == lines[known], f"{known} has other code now: run `python -m benchmarks peers`"


@pytest.mark.parametrize(
    ("ours", "said"),
    [(0.8, "**loses 1**"), (0.894, "**loses 1**"), (0.896, "is even in 1"), (0.95, "**wins 1**")],
)
def test_a_loss_is_printed_as_plainly_as_a_win(ours: float, said: str) -> None:
    text = rendered(row("tacit", ours), row("opacus", 0.9))
    assert "Of 1 questions" in text
    assert said in text
    assert f"| {100 * ours:.1f} ± 0.1 % | opacus: 90.0 ± 0.1 % |" in text


@pytest.mark.parametrize(
    ("ours", "said"), [(79_000, "**loses 1**"), (119_000, "is even in 1"), (121_000, "**wins 1**")]
)
def test_more_gradients_in_a_second_win(ours: float, said: str) -> None:
    text = rendered(
        *(row(name, value, name="speed/mnist") for name, value in (("tacit", ours), ("opacus", 1e5)))
    )
    assert said in text
    assert f"| {ours:,} | opacus: 100,000 |" in text


def test_other_neighbours_are_not_compared() -> None:
    text = rendered(row("tacit", 0.8, relation="replace-one"), row("opacus", 0.9))
    assert "Of 0 questions" in text
    assert text.count("90.0 ± 0.1 %") == 1  # it stands in the table of its task


def test_a_peer_with_several_settings_is_compared_once_and_at_its_best() -> None:
    better = row("opacus", 0.95) | {"note": "other"}
    text = rendered(row("tacit", 0.93), row("opacus", 0.9), better)
    assert "Of 1 questions" in text
    assert "| opacus (other): 95.0 ± 0.1 % | loses |" in text


def test_what_tacit_refuses_and_a_peer_answers_is_a_loss() -> None:
    refused = row("tacit", 0.0)
    refused["answers"] = [{"question": refused["answers"][0]["question"], "failed": "ParameterError: no."}]
    text = rendered(refused, row("opacus", 0.9))
    assert "**loses 1**" in text
    assert "none: ParameterError: no." in text


def test_the_tool_runs_with_no_peer_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(name: str) -> str:
        if name != "tacit":
            raise metadata.PackageNotFoundError(name)
        return "0.1.0"

    monkeypatch.setattr(metadata, "version", version)
    before = page.PAGE.read_bytes()
    run.main(["--quick", "--only", "price/gaussian"], FACTS)
    text = capsys.readouterr().out
    assert "| dp-accounting | add-remove | none: not installed |" in text
    assert "| tacit | add-remove | 2.594 |" in text
    assert "| opacus | not installed |" in text
    assert page.PAGE.read_bytes() == before  # a quick run writes no page


def test_what_a_library_refuses_is_reported_and_ends_nothing() -> None:
    task = next(task for task in TASKS if task.name == "price/gaussian")
    way = libraries.Way(task.name, "add-remove", "nothing", function="absent")
    found = run.ask(task, libraries.LIBRARIES[0], way, [], quick=True)
    assert found == {
        "failed": "AttributeError: module 'benchmarks.peers.with_tacit' has no attribute 'absent'"
    }


def test_lines_are_those_of_what_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "with_it.py").write_text(
        '"""A docstring."""\n'
        "from a import (\n    b,\n    c,\n)\nimport unused\n\nSIZE = 3\nOTHER = 4\n\n"
        "def helper(x):\n    return x\n\ndef other(x):\n    return unused.it(OTHER)\n\n"
        "def classify(X):\n    # said\n    y = b(X)\n\n    return helper(y + SIZE)\n"
    )
    monkeypatch.setattr(libraries, "HERE", tmp_path)
    assert libraries.lines_of("with_it", "classify") == 5
    assert libraries.lines_of("with_it", "other") == 3
