"""Trust models at equal privacy: what is trained, the order of the rows, and verdicts that follow them."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.experiments import Report
from tacit.experiments.trust_models import COLLUDING, DEMO, MNIST, TRUSTS, Silos, compute
from tacit.experiments.trust_models_plain import PLAIN, PlainCase, plain_rounds
from tacit.experiments.trust_models_statements import plain_statements, statements
from tacit.learning.preparation import prepare
from tacit.privacy import TrustModel

SMALL = Silos(name="small", data=DEMO.data, trials=2, epsilons=(2.0,))


@pytest.fixture(scope="module")
def report() -> Report:
    return compute([SMALL], plain_trials=2, progress=lambda *_: None)


def test_every_trust_model_spends_the_same_and_colluders_are_named(report: Report) -> None:
    found = {(row["trust"], row["epsilon"]): row for row in report.rows}
    assert set(found) == {
        ("none", None),
        *((trust, e) for trust in TRUSTS if trust != "none" for e in SMALL.epsilons),
    }
    for (trust, epsilon), row in found.items():
        assert 0.6 < float(str(row["accuracy"])) < 1
        alone = row["alone"]
        if trust == "aggregate":
            # With 8 of 10 shares alone is about sqrt(8) as weak.
            assert 2 * float(str(epsilon)) < float(str(alone)) < 5 * float(str(epsilon))
        elif trust != "shuffle":
            assert alone is None
    assert COLLUDING == 2
    assert any("2 silos may collude" in note for note in report.notes)


def test_the_report_has_its_verdicts_and_the_plain_table(report: Report) -> None:
    assert set(report.notes) >= set(statements(report.rows))
    plain = report.more["plain"]
    assert len(plain.rows) == len(PLAIN)
    assert set(plain.notes) >= set(plain_statements(plain.rows))


def test_silos_are_those_of_the_demo_and_of_pairs_of_digits() -> None:
    records = DEMO.records(3)
    assert len(records.train) == 10
    assert sum(map(len, records.train)) + len(records.test) == 1797
    assert (MNIST.split, MNIST.data) == ("pairs", "mnist-odd-even")


@pytest.mark.parametrize("trust", ["central", "aggregate, 2 collude", "aggregate, 5 collude", "local"])
def test_plain_descent_has_the_noise_that_its_trust_model_says(trust: str) -> None:
    """Of the same budget: one noise, n / m of it, or one of every silo, to the rounding of the grid."""
    sizes = [144] * 10
    error = prepare(PlainCase(trust, 20, 1.0).settings, sizes).problem.variance
    central = prepare(PlainCase("central", 20, 1.0).settings, sizes).problem.variance
    noises = {"central": 1.0, "aggregate, 2 collude": 10 / 8, "aggregate, 5 collude": 2.0, "local": 10.0}
    assert error / central == pytest.approx(noises[trust], rel=0.02)


def test_without_privacy_plain_descent_repeats() -> None:
    row = plain_rounds(PlainCase("none", 20, None), 2)
    assert row["standard error"] == 0
    assert float(str(row["accuracy"])) > 0.75
    assert PlainCase("none", 20, None).settings.trust is None
    assert PlainCase("local", 20, 1.0).settings.trust is TrustModel.LOCAL


# Verdicts


def row(trust: str, epsilon: float | None, accuracy: float, **more: Any) -> dict[str, object]:
    return {
        "data": "d",
        "trust": trust,
        "epsilon": epsilon,
        "accuracy": accuracy,
        "standard error": 0.001,
        "alone": None,
        "kB sent": 10.0,
        **more,
    }


def test_verdicts_say_what_held_and_what_is_chance() -> None:
    rows = [
        row("central", 1.0, 0.90),
        row("aggregate", 1.0, 0.901),
        row("local", 1.0, 0.80),
        row("shuffle", 1.0, 0.95, **{"kB sent": 400.0}),
        row("none", None, 0.94),
    ]
    said = list(statements(rows))
    assert (
        "d, epsilon 1: central above aggregate: did not hold, within chance (0.9000 against 0.9010)." in said
    )
    assert "d, epsilon 1: aggregate above local: held (0.9010 against 0.8000)." in said
    assert "d, epsilon 1: aggregate within 1.5 points of central: held (-0.10)." in said
    assert any("aggregate no less accurate than shuffle: did not hold" in one for one in said)
    assert any("for 40 times fewer bytes" in one for one in said)
    assert "d: without privacy above all: did not hold (0.9400 against 0.9500)." in said
    falling = [row("local", 1.0, 0.9), row("local", 2.0, 0.8)]
    assert list(statements(falling)) == ["d: local is more accurate for more epsilon: did not hold."]


def test_plain_verdicts_compare_the_better_number_of_rounds() -> None:
    def plain(trust: str, rounds: int, epsilon: float, accuracy: float) -> dict[str, object]:
        return {
            "trust": trust, "rounds": rounds, "epsilon": epsilon, "accuracy": accuracy, "standard error": 0.0,
        }  # fmt: skip

    rows = [
        plain(trust, rounds, epsilon, accuracy)
        for epsilon in (1.0, 2.0)
        for trust, two in (
            ("central", (0.80, 0.85)),
            ("aggregate, 2 collude", (0.79, 0.84)),
            ("local", (0.74, 0.70)),
        )
        for rounds, accuracy in zip((20, 60), two, strict=True)
    ]
    said = " ".join(plain_statements(rows))
    assert "gain 10.0 points against local trust, where 11.4 were computed; 1.0 behind central" in said
    assert "60 rounds help under aggregate trust: held (0.7900 and 0.8400)." in said
    assert "60 rounds hurt under local trust: held (0.7400 and 0.7000)." in said
