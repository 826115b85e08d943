"""Guarantees of many silos as commands print them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tacit.cli.app import main
from tacit.privacy import Event, Gaussian, Guarantee, Sampled, guarantee
from tacit.privacy.paragraphs import paragraphs
from tacit.privacy.statement import About, Statement


def _of_silos(events: dict[str, Event]) -> tuple[list[Guarantee], list[About]]:
    claims = [
        guarantee(event, 1e-6, observer=f"everybody outside silo {name!r}, the server included,")
        for name, event in events.items()
    ]
    return claims, [About(trust="local", silo=name, units=100) for name in events]


def _said(claims: list[Guarantee], about: list[About]) -> list[str]:
    return [f"{who}: {text}" if who else text for who, text in paragraphs(claims, about)]


def test_silos_of_different_sizes_are_one_paragraph_that_states_the_weakest() -> None:
    claims, about = _of_silos({"a": Sampled(Gaussian(1.0), 0.1), "it's": Sampled(Gaussian(1.0), 0.11)})
    (said,) = _said(claims, about)
    assert claims[0].epsilon < claims[1].epsilon
    assert said.startswith(f"local, each of silos 'a', 'it's': (epsilon = {claims[1].epsilon}, ")
    assert "whatever everybody outside the silo, the server included, sees" in said
    assert said.endswith(
        "This is the weakest of them; each epsilon: "
        f"{claims[0].epsilon} in silo 'a', {claims[1].epsilon} in silo 'it's'."
    )


def test_events_that_promise_the_same_are_one_paragraph() -> None:
    events: dict[str, Event] = {"a": Gaussian(4.0), "b": Gaussian(4.0 * (1 + 1e-12)), "c": Gaussian(4.0)}
    (said,) = _said(*_of_silos(events))
    assert said.count("epsilon") == 1
    assert said.startswith("local, each of silos 'a', 'b', 'c': ")


def test_whatever_else_differs_is_said() -> None:
    claims, about = _of_silos({name: Gaussian(4.0) for name in "abcd"})
    claims[1] = msgspec.structs.replace(claims[1], observer=claims[1].observer + " if blind,")
    claims[2] = msgspec.structs.replace(claims[2], assumptions=("the sun shines",))
    about[3] = About(trust="central", units=400)
    said = _said(claims, about)
    assert len(said) == 4
    assert "outside silo 'b', the server included, if blind, sees" in said[1]
    assert said[2].endswith("provided that the sun shines.")
    assert said[3].startswith("central: (")
    assert _said(claims[:1], []) == [str(claims[0])]


def test_very_many_silos_are_a_range() -> None:
    events: dict[str, Event] = {f"s{k}": Gaussian(4.0 + k / 100) for k in range(50)}
    claims, about = _of_silos(events)
    (said,) = _said(claims, about)
    assert "local, each of 50 silos 's0', 's1', 's2', ..., 's47', 's48', 's49': " in said
    assert said.endswith(
        f"between {claims[-1].epsilon:.10g} in silo 's49' and {claims[0].epsilon:.10g} in silo 's0'."
    )


def test_a_training_run_says_what_every_silo_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--trust", "local", "--batch", "32", "--rounds", "2", "--name", "sizes"]) == 0
    shown = capsys.readouterr().out
    assert main(["account", "verify", "runs/sizes/statement.json"]) == 0
    for out in (shown, capsys.readouterr().out):
        flat = " ".join(out.split())
        assert flat.count("whatever everybody outside") == 1
        assert "local, each of silos '0', '1', '2', '3', '4', '5', '6', '7', '8', '9': (epsilon = 2, " in flat
        assert "each epsilon: 1." in flat


def test_a_large_delta_is_said_once_for_silos_of_all_sizes() -> None:
    claims, about = _of_silos({"a": Gaussian(4.0), "b": Gaussian(4.0)})
    claims = [msgspec.structs.replace(claim, delta=0.1) for claim in claims]
    about[1] = About(trust="local", silo="b", units=200)
    (warning,) = Statement(kind="train", guarantees=tuple(claims), about=tuple(about)).warnings
    assert "not below 1 / 200" in warning
