"""Every algorithm that is listed trains under every trust model that it is listed with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import ParameterError
from tacit.jobs import JobConfig
from tacit.learning import ALGORITHMS, about


def is_taken(trust: str) -> bool:
    """Whether the command has that trust model: algorithms may run under more of them than jobs name."""
    try:
        JobConfig(trust=trust)
    except ParameterError:
        return False
    return True


OWN_ROUNDS = ("multistage", "output-perturbation", "objective-perturbation", "sufficient-statistics")
"""What has one round, or needs many."""
PAIRS = [(name, trust) for name in ALGORITHMS for trust in about(name).trusts if is_taken(trust)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    rows = rng.uniform(-1, 1, (300, 2))
    path = tmp_path_factory.mktemp("pairs") / "t.csv"
    lines = [f"{a:.4f},{b:.4f},{'abcde'[k % 5]},{'yes' if a > b else 'no'}" for k, (a, b) in enumerate(rows)]
    path.write_text("\n".join(["a,b,site,y", *lines]) + "\n")
    columns = "".join(f'{name} = {{kind = "numeric", lower = -1.0, upper = 1.0}}\n' for name in "ab")
    label = 'label = {kind = "classes", column = "y", classes = ["no", "yes"]}'
    path.with_name("t.columns.toml").write_text(f"{label}\n[columns]\n{columns}")
    public = [f"{a:.4f},{b:.4f},{'yes' if a > b else 'no'}" for a, b in rng.uniform(-1, 1, (60, 2))]
    path.with_name("public.csv").write_text("\n".join(["a,b,y", *public]) + "\n")
    label = 'label = {kind = "numeric", column = "b", lower = -1.0, upper = 1.0}'
    others = 'y = {kind = "ignore"}\na = {kind = "numeric", lower = -1.0, upper = 1.0}'
    path.with_name("numbers.toml").write_text(f"{label}\n[columns]\n{others}\n")
    return path


@pytest.mark.parametrize(("name", "trust"), PAIRS, ids=[f"{name}-{trust}" for name, trust in PAIRS])
def test_every_listed_pair_trains(
    name: str, trust: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(table), "--silo-column", "site", "--trust", trust, "--epsilon", "3"]
    # The first trust model of each in as many rounds as it takes by itself.
    if trust != about(name).trusts[0] and name not in OWN_ROUNDS:
        words += ["--rounds", "8"]
    more = ["--algorithm", name, "--seed", "1", "--out", str(tmp_path), "--json"]
    if ALGORITHMS[name].unit is not None:  # five parties: 1 / 5^2 would protect nobody
        more += ["--delta", "1e-4"]
    if getattr(ALGORITHMS[name], "needs_public", False):
        more += ["--public", str(table.with_name("public.csv"))]
    task = ["--task", "regression", "--columns", str(table.with_name("numbers.toml")), "--label", "b"]
    assert main([*words, *(task if name == "pda" else ["--label", "y"]), *more]) == 0
    found = json.loads(capsys.readouterr().out)
    (result,) = found["results"].values() if isinstance(found["results"], dict) else found["results"]
    assert result["algorithm"] == name
    assert 0 < result["epsilon"] <= 3
