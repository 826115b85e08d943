"""The tables beside the experiments: every line is read, and none hides another."""

from __future__ import annotations

from importlib import resources

import pytest

from tacit.experiments import EXPERIMENTS
from tacit.experiments.reference import reference

TABLES = sorted(
    (file.name.removesuffix(".csv"), file.read_text(encoding="utf-8"))
    for file in (resources.files("tacit.experiments") / "tables").iterdir()
    if file.name.endswith(".csv")
)


@pytest.mark.parametrize(("name", "text"), TABLES, ids=[name for name, _ in TABLES])
def test_every_line_is_one_value_of_an_experiment(name: str, text: str) -> None:
    assert name in EXPERIMENTS
    assert len(reference(name)) == len(text.splitlines()) - 1
