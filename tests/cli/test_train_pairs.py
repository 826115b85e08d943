"""Every algorithm that is listed trains under every trust model that it is listed with."""

from __future__ import annotations

import json
from pathlib import Path

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


PAIRS = [(name, trust) for name in ALGORITHMS for trust in about(name).trusts if is_taken(trust)]


@pytest.mark.parametrize(("name", "trust"), PAIRS, ids=[f"{name}-{trust}" for name, trust in PAIRS])
def test_every_listed_pair_trains(
    name: str, trust: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Handwritten digits of 8 x 8 pixels stand in for those of 28 x 28.
    words = ["train", "--data", "digits-odd-even", "--silos", "iid:5", "--trust", trust, "--epsilon", "3"]
    more = ["--algorithm", name, "--seed", "1", "--out", str(tmp_path), "--json"]
    assert main([*words, *more]) == 0
    found = json.loads(capsys.readouterr().out)
    (result,) = found["results"].values() if isinstance(found["results"], dict) else found["results"]
    assert result["algorithm"] == name
    assert 0 < result["epsilon"] <= 3
