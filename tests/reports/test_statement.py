"""Statements: complete, verifiable by anybody, silent about scores, and impossible to improve by hand."""

from __future__ import annotations

import copy
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import VerificationError
from tacit.jobs import Job, JobConfig, JobResult, TrustResult
from tacit.privacy import Guarantee, Neighbours, PureDP, guarantee, verify
from tacit.reports import build_statement, notes_of, plain_words, released
from tacit.reports.statement import guess_bound, odds
from tests.jobs.tables import write_patients
from tests.reports.runs import NASTY, compared, open_run, persons, private, regression

NOW = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)


def stated(result: JobResult) -> dict[str, Any]:
    """Return the statement as a reader of its file gets it."""
    text = json.dumps(build_statement(result, run="run", created=NOW).to_builtins(), allow_nan=False)
    data: dict[str, Any] = json.loads(text)
    return data


def claiming(one: TrustResult, epsilon: float) -> TrustResult:
    """Return a result with one guarantee of another level."""
    level = msgspec.structs.replace(one.guarantees[0], epsilon=epsilon)
    return TrustResult(**{**vars(one), "guarantees": (level,)})


@pytest.mark.parametrize("run", [compared, private, persons, regression])
def test_every_guarantee_verifies_from_the_file_alone(run: Any) -> None:
    result = run()
    statement = stated(result)
    claims = [Guarantee.from_builtins(part) for part in statement["guarantees"]]
    for claim in claims:
        verify(claim)
    assert claims == [
        g for one in result.results if one.trust != "none" for g in (*one.guarantees, *one.alone)
    ]
    assert statement["version"] == 5
    assert statement["created"] == "2025-03-01T12:30:00+00:00"


@pytest.mark.parametrize("run", [compared, private])
def test_any_lowered_digit_is_found_out(run: Any) -> None:
    for part in stated(run())["guarantees"]:
        for digit in range(7):
            lower = copy.deepcopy(part)
            lower["epsilon"] = round(part["epsilon"] - 10.0**-digit, 6)
            with pytest.raises(VerificationError, match=r"sentence|claims epsilon"):
                verify(Guarantee.from_builtins(lower))
            del lower["sentence"]  # a forger would write a sentence that fits
            with pytest.raises(VerificationError, match="its event costs"):
                verify(Guarantee.from_builtins(lower))


def test_every_silo_has_its_own_guarantee() -> None:
    statement = stated(private())
    assert [(about["trust"], about["silo"]) for about in statement["about"]] == [
        ("local", name) for name in sorted(NASTY)
    ]
    assert len(statement["guarantees"]) == 3
    for about, part in zip(statement["about"], statement["guarantees"], strict=True):
        assert repr(about["silo"]) in part["observer"]
        assert about["units"] == 48
    assert statement["data"]["sizes"] == dict.fromkeys(sorted(NASTY), 48)


def test_one_guarantee_is_about_all_silos_under_central_trust() -> None:
    (about,) = stated(regression())["about"]
    assert about == {"trust": "central", "silo": None, "units": 192}
    both = stated(compared())
    trusts = ["central"] + ["aggregate"] * 20 + ["shuffle"] * 20 + ["local"] * 10
    assert [a["trust"] for a in both["about"]] == trusts


def test_what_is_not_private_is_said() -> None:
    assert [part["trust"] for part in stated(compared())["not_private"]] == ["none"]
    statement = stated(open_run())
    assert statement["guarantees"] == []
    assert "No privacy is claimed" in statement["not_private"][0]["sentence"]


@pytest.mark.parametrize("run", [compared, private, persons, regression])
def test_a_statement_holds_no_score_and_no_path(run: Any) -> None:
    statement = stated(run())
    text = json.dumps(statement)
    for key in ("score", "scores", "accuracy", "rmse", "loss", "metric", "auc", "baseline", "confusion"):
        assert f'"{key}"' not in text
    assert "/" not in statement["data"]["name"]
    assert set(statement["data"]) == {"name", "public", "silos", "unit", "sizes", "read_off"}


def test_nothing_that_is_handed_out_depends_on_held_out_labels(tmp_path: Path) -> None:
    """Scores do, in all their parts; the statement, the model and the plan are the same to the byte."""
    path = write_patients(tmp_path)
    job = JobConfig(data=str(path), label="ill", silo_column="site", rounds=3, seed=5, name="run")
    loaded = Job(job)
    lines = path.read_text().splitlines()
    other = {"ill": "well", "well": "ill"}
    for record in loaded.data.test:
        cells, _, label = lines[1 + record].rpartition(",")
        lines[1 + record] = f"{cells},{other[label]}"
    before = loaded.run()
    path.write_text("\n".join(lines) + "\n")
    after = Job(job).run()
    assert before.results[0].scores != after.results[0].scores
    assert before.results[0].score == pytest.approx(1 - after.results[0].score)
    assert stated(before) == stated(after)
    handed_out = [
        [one.model.to_json(), one.trained.plan.to_toml()] for one in (*before.results, *after.results)
    ]
    assert handed_out[0] == handed_out[1]


def test_persons_are_counted_as_persons() -> None:
    data = stated(persons())["data"]
    assert data["unit"] == "person"
    assert data["sizes"] == {"a": 48, "b": 48}
    assert "replacing one person in that silo" in plain_words(persons().results[0])


def test_notes_say_what_must_be_known() -> None:
    assert [note.split(":")[0] for note in notes_of(compared())] == [
        "Simulated",
        notes_of(compared())[1].split(":")[0],
    ]
    assert "Hand out the local model only" in notes_of(compared())[1]
    assert any("stay with the owner" in note for note in notes_of(private()))
    assert not any("Simulated" in note for note in notes_of(private()))
    assert notes_of(open_run()) == []
    floating = Job(JobConfig(noise="gaussian", rounds=2)).run()
    assert any("floating point" in note for note in notes_of(floating))
    assert not any("floating point" in note for note in notes_of(compared()))


def test_the_model_that_trusts_least_is_released() -> None:
    assert released(compared()).trust == "local"
    assert released(regression()).trust == "central"
    assert released(open_run()).trust == "none"


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [(0.1, "1.11"), (1.0, "2.72"), (2.0, "7.39"), (3.0, "20.1"), (7.0, "1,100"), (50.0, "e^50")],
)
def test_the_factor_in_words_is_never_too_small(epsilon: float, factor: str) -> None:
    words = plain_words(claiming(private().results[0], epsilon))
    assert f"at most a factor of {factor}, up to a probability of 1 in 2,304." in words
    if not factor.startswith("e"):
        assert float(factor.replace(",", "")) >= math.exp(epsilon)


def test_odds_are_rounded_to_the_larger_probability() -> None:
    assert [odds(d) for d in (1e-5, 1 / 48**2, 0.3, 3.1e-7)] == [
        "1 in 100,000",
        "1 in 2,304",
        "0.3",
        "1 in 3,225,806",
    ]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_guess_bound_is_met_by_randomized_response(epsilon: float) -> None:
    """A bit kept with probability e^eps / (1 + e^eps) is guessed right exactly that often."""
    level = guarantee(PureDP(epsilon, Neighbours()), 0.0, observer="anybody")
    assert guess_bound(level) == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)), rel=1e-5)


def test_the_guess_bound_is_met_where_delta_reveals_all() -> None:
    """With probability delta the bit is shown, else randomized: (epsilon, delta)-DP at its worst."""
    epsilon, delta = 1.0, 0.1
    level = msgspec.structs.replace(
        guarantee(PureDP(epsilon, Neighbours()), 0.0, observer="anybody"), delta=delta
    )
    kept = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert guess_bound(level) == pytest.approx(delta + (1 - delta) * kept, rel=1e-5)
    assert np.isfinite(guess_bound(level))
