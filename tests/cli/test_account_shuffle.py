"""`tacit account shuffle`: prices of the literature, statements, pictures, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from tacit.cli import main
from tacit.cli.account import plots
from tacit.cli.account.plots import _values as plotted
from tacit.cli.account.shuffled import Shuffle
from tests.cli.accounting import answer, check_refusal, check_statement, printed

LARGE = ["shuffle", "--local-epsilon", "1", "--n", "1000000", "--delta", "1e-6"]
SMALL = ["shuffle", "--local-epsilon", "1", "--n", "100", "--delta", "1e-6"]


def test_a_statement_with_another_size_for_one_message_alone_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, file = answer(SMALL, capsys), tmp_path / "forged.json"
    for place, units in ((0, 100), (0, 101), (1, 101), (1, None)):
        forged = json.loads(json.dumps(found))
        forged["about"][place]["units"] = units
        file.write_text(json.dumps(forged))
        assert main(["account", "verify", str(file)]) == (units != 100), (place, units)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("local_epsilon", "n", "delta", "epsilon"),
    [
        # The numerical bound of Feldman, McMillan and Talwar (2022).
        ("0.5", "1000", "1e-6", 0.0705235),
        ("1", "10000", "1e-6", 0.0530053),
        ("1", "1000000", "1e-6", 0.00433452),
        ("2", "10000", "1e-8", 0.196624),
    ],
)
def test_any_message_costs_what_the_literature_finds(
    local_epsilon: str, n: str, delta: str, epsilon: float, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["shuffle", "--local-epsilon", local_epsilon, "--n", n, "--delta", delta]
    found = answer(argv, capsys)
    assert found["epsilon"] == pytest.approx(epsilon, rel=2e-4)
    assert found["method"] == "shuffling, numerical blanket"
    assert found["seconds"] > 0


@pytest.mark.parametrize(
    ("local_epsilon", "mechanism", "epsilon"),
    [("1.5", "general", 0.55576), ("1.386294", "general", 0.49038), ("1.386294", "2rr", 0.37890)],
)
def test_rounds_on_samples_have_the_tabled_prices(
    local_epsilon: str, mechanism: str, epsilon: float, capsys: pytest.CaptureFixture[str]
) -> None:
    # Girgis (2023), Section 5.5: 10,000 messages a round, a sixth of the parties, 1200 rounds.
    argv = ["shuffle", "--local-epsilon", local_epsilon, "--n", "60000", "--delta", "1e-5"]
    more = ["--rounds", "1200", "--sample-rate", str(1 / 6), "--mechanism", mechanism]
    found = answer([*argv, *more], capsys)
    assert found["parties_per_round"] == 10_000
    assert found["epsilon"] == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize("mechanism", ["2rr", "krr:16", "hadamard", "hadamard:8", "laplace", "privunit:0.1"])
def test_what_is_known_of_a_mechanism_never_costs_more(
    mechanism: str, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["shuffle", "--local-epsilon", "1", "--n", "5000", "--delta", "1e-6"]
    found = answer([*argv, "--mechanism", mechanism], capsys)
    assert found["mechanism"] == mechanism
    assert 0 < found["epsilon"] <= answer(argv, capsys)["epsilon"] * (1 + 1e-9)


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--rounds", "50"],
        ["--rounds", "20", "--sample-rate", "0.1"],
        ["--messages", "3", "--sample-rate", "0.1"],
    ],
    ids=" ".join,
)
def test_a_price_is_a_statement_about_the_batch_and_one_message(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(["shuffle", "--local-epsilon", "1", "--n", "1000", "--delta", "1e-6", *more], capsys)
    batch, alone = found["guarantees"]
    assert batch["epsilon"] == found["epsilon"]
    assert (alone["epsilon"], alone["delta"]) == (1.0, 0.0)
    assert batch["neighbours"]["unit"] == alone["neighbours"]["unit"] == "party"
    assert "the shuffler is honest" in batch["assumptions"]
    present = "100" if "--sample-rate" in more else "1,000"
    assert f"every batch holds {present} honest messages" in batch["assumptions"]
    assert ("nobody learns which parties are sampled" in batch["assumptions"]) is ("--sample-rate" in more)
    check_statement(found, tmp_path / "statement.json", capsys)


def test_without_a_delta_a_shuffle_gives_the_local_level(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["shuffle", "--local-epsilon", "0.7", "--n", "1000000", "--delta", "0"], capsys)
    assert found["epsilon"] == 0.7


def test_messages_of_one_party_share_its_sample(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["shuffle", "--local-epsilon", "1", "--n", "1000", "--delta", "1e-6", "--sample-rate", "0.1"]
    event = answer([*argv, "--messages", "4", "--rounds", "3"], capsys)["guarantees"][0]["event"]
    assert [event["event"], event["count"]] == ["Repeat", 3]
    assert [event["part"]["event"], event["part"]["rate"]] == ["Sampled", 0.1]
    assert [event["part"]["part"]["event"], event["part"]["part"]["count"]] == ["Repeat", 4]


def test_what_is_said_of_a_sample_is_what_is_priced(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["shuffle", "--local-epsilon", "1", "--n", "1005", "--delta", "1e-6", "--sample-rate", "0.1"]
    found = answer(argv, capsys)
    event = found["guarantees"][0]["event"]
    assert event["part"]["parties"] == found["parties_per_round"] == 100
    assert event["rate"] == 100 / 1005
    assert "1,005, a secret sample of 100 of them a round" in printed(argv, capsys)


def test_people_read_the_price(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(LARGE, capsys)
    assert "epsilon 0.004335 delta 1e-06" in out
    assert "one message alone epsilon 1 (general)" in out
    assert re.search(r"computed in \d+\.\d{3} s", out)
    assert "every batch holds 1,000,000 honest messages" in out


@pytest.mark.parametrize("against", ["n", "rounds", "local-epsilon"])
def test_every_method_with_a_finite_price_is_a_line(
    against: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "_COUNT", 2)
    drawn: list[Figure] = []
    save = Figure.savefig

    def saved(figure: Figure, path: Path, **options: Any) -> None:
        drawn.append(figure)
        save(figure, path, **options)

    monkeypatch.setattr(Figure, "savefig", saved)
    path = tmp_path / "bounds.png"
    argv = ["shuffle", "--local-epsilon", "0.5", "--n", "40", "--delta", "1e-5"]
    found = answer([*argv, "--plot", str(path), "--against", against], capsys)
    assert found["plot"] == str(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    (axes,) = drawn[0].axes
    names = {str(line.get_label()) for line in axes.lines if not str(line.get_label()).startswith("_")}
    assert {
        "no shuffler (proof)",
        "clones, Rényi (proof)",
        "thesis bound 2 (proof)",
        "Erlingsson et al. (2019), Rényi (proof)",
        "Feldman et al. (2023) (paper only)",
        "randomized response on equal data, one round (lower bound)",
    } <= names
    assert {text.get_text() for text in drawn[0].legends[0].get_texts()} == names
    axis = {"n": "parties n", "rounds": "rounds T", "local-epsilon": "local epsilon of one message"}[against]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (axis, "epsilon")
    low, high = axes.get_ylim()
    for line in axes.lines:
        if "lower bound" in str(line.get_label()) or "no shuffler" in str(line.get_label()):
            ys = np.asarray(line.get_ydata())
            assert len(ys) == 2
            assert low < ys.min() <= ys.max() < high


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--n", "1"], "n must be a whole number >= 2, got 1: a shuffle of one message hides nothing"),
        (["--n", "0"], "n must be a whole number >= 2, got 0"),
        (["--n", "2000000000"], "n must be a whole number from 2 to 1000000000"),
        (["--n", "1e6"], "Invalid value for '--n'"),
        (["--local-epsilon", "0"], "local-epsilon must be a finite number > 0, got 0.0"),
        (["--local-epsilon", "nan"], "local-epsilon must be a finite number > 0, got nan"),
        (["--local-epsilon", "31"], "local-epsilon must be at most 30, got 31.0"),
        (["--delta", "1"], "delta must be in [0, 1), got 1.0"),
        (["--delta", "-1e-9"], "delta must be in [0, 1)"),
        (["--rounds", "0"], "rounds must be a whole number >= 1, got 0"),
        (["--messages", "0"], "messages must be a whole number >= 1, got 0"),
        (["--sample-rate", "0"], "sample-rate must be in (0, 1], got 0.0"),
        (["--sample-rate", "1.1"], "sample-rate must be in (0, 1], got 1.1"),
        (["--sample-rate", "0.01"], "sample-rate must leave at least 2 of the n = 100 parties in a round"),
        (["--mechanism", "rappor"], "mechanism must be one of general, 2rr, krr:B, hadamard"),
        (["--mechanism", "krr"], "mechanism must be one of general"),
        (["--mechanism", "2rr:3"], "mechanism must be one of general"),
        (["--mechanism", "krr:1"], "mechanism krr:B needs a whole number B from 2 to 1e9, got '1'"),
        (["--mechanism", "privunit:0.9"], "needs the measure q of the cap in (0, 0.5]"),
        (["--against", "delta"], "against must be one of n, rounds, local-epsilon"),
        (["--plot", "bounds.docx"], "plot must be a file that ends with one of .png"),
        (["--plot", "nowhere/bounds.png"], "plot must be a file in a folder that exists"),
    ],
)
def test_bad_input_is_one_line(
    more: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refusal([*SMALL, *more], said, capsys)
    assert not list(tmp_path.iterdir())


def test_missing_options_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    check_refusal(["shuffle", "--local-epsilon", "1", "--delta", "1e-6"], "Missing option '--n'", capsys)
    check_refusal(["shuffle", "--n", "10", "--delta", "1e-6"], "Missing option '--local-epsilon'", capsys)


@pytest.mark.parametrize("command", ["shuffle", "subsample", "iterate", "compose", "calibrate", "compare"])
def test_help_shows_every_word(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["account", command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "--delta" in out
    assert "--json" in out
    if command == "compose":
        assert "gaussian:1.1@0.01x1000" in out


@pytest.mark.parametrize(
    ("rounds", "seen"), [("1", "the shuffled batch sees"), ("2", "the shuffled batches sees")]
)
def test_one_batch_is_called_one(rounds: str, seen: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["shuffle", "--local-epsilon", "1", "--n", "100", "--delta", "1e-6", "--rounds", rounds]
    assert seen in printed(argv, capsys)


def test_pictures_span_what_has_a_price_around_the_value_that_was_given() -> None:
    shuffle = Shuffle(local_epsilon=1.0, n=2000, rounds=50, sample_rate=0.5)
    parties, rounds = (plotted(against, shuffle) for against in ("n", "rounds"))
    assert (parties[0], parties[-1]) == (20.0, 200_000.0)
    assert (rounds[0], rounds[-1]) == (1.0, 5000.0)
