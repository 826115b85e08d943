"""What is said of the tasks on compressed means follows the rows, both ways."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.experiments.dme_statements import statements

Row = dict[str, object]
GOOD: Mapping[str, float] = {"Rand-k": 3.0, "RkS(avg)": 2.0, "RPS(avg)": 1.0, "Wangni": 1.5, "Induced": 4.0}


def rows(
    setting: str, errors: Mapping[str, float], *, k: int = 6, loss: float = 1.0, slow: str = "RPS(avg)"
) -> list[Row]:
    """Return one setting; losses are `loss` times the errors."""
    return [
        {
            "setting": setting,
            "estimator": name,
            "k": k,
            "error": error,
            "standard error": 0.1,
            "loss": loss * error,
            "bits per party": 120.0 if name == "Wangni" else 100.0,
            "ms per round": 9.0 if name == slow else 1.0,
        }
        for name, error in errors.items()
    ]


def said(*parts: list[Row]) -> str:
    return "\n".join(statements([row for part in parts for row in part]))


def test_what_holds_everywhere_is_said_to_hold() -> None:
    less = {**GOOD, "RPS(avg)": 1.4}
    text = said(rows("images, iid, n = 10", GOOD), rows("images, by label, n = 10", less))
    for key in ("error", "loss"):
        assert f"{key}: RPS(avg) < RkS(avg) < Rand-k: yes, in 2 of 2 settings." in text
        assert f"{key}: RPS(avg) is the best of the paper's methods: yes, in 2 of 2 settings." in text
    assert "RPS(avg) gains less over Rand-k, in error, where parties differ: yes, in 1 of 1 pairs" in text
    assert "RPS(avg) takes the longest: yes, in 2 of 2 settings" in text
    assert "Wangni sends up to 20% more bits" in text
    assert "Induced is Rand-k" not in text


def test_what_fails_is_named() -> None:
    worse = {**GOOD, "RPS(avg)": 2.1, "Wangni": 0.5}
    text = said(
        rows("images, iid, n = 10", worse, k=5, slow="Wangni"),
        rows("images, by label, n = 10", GOOD, k=5),
    )
    assert (
        "error: RPS(avg) < RkS(avg) < Rand-k: no, in 1 of 2 settings; not images, iid, n = 10, k = 5 (within "
        "two standard errors)." in text
    )
    assert (
        "error: RPS(avg) is the best of the paper's methods: no, in 1 of 2 settings (images, by label, "
        "n = 10, k = 5); Wangni in 1." in text
    )
    assert "where parties differ: no, in 0 of 1 pairs" in text
    assert "RPS(avg) takes the longest: no, in 1 of 2 settings" in text


def test_loss_is_judged_apart_from_error() -> None:
    text = said(rows("images, iid, n = 10", GOOD, loss=-1.0))
    assert "error: RPS(avg) < RkS(avg) < Rand-k: yes" in text
    assert "loss: RPS(avg) < RkS(avg) < Rand-k: no" in text


def test_one_number_of_induced_is_one_of_rand_k() -> None:
    assert "For k = 1 Induced is Rand-k: no, errors within 7.1" in said(rows("d", GOOD, k=1))
    assert "For k = 1 Induced is Rand-k: yes" in said(rows("d", {**GOOD, "Induced": 3.1}, k=1))


def test_opt_knows_the_correlation_and_is_not_ranked() -> None:
    text = said(rows("d", {**GOOD, "RPS(opt)": 0.1}, slow="RPS(opt)"))
    assert "error: RPS(avg) is the best of the paper's methods: yes" in text
