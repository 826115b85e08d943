"""The frame: every error is one line and its exit code, whatever a command does."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
import pytest
import typer

from tacit import errors
from tacit.cli import main, output
from tacit.cli.app import COMMANDS, GROUPS, command
from tacit.errors import PrivacyWarning, TacitError
from tacit.privacy import Neighbours

ERRORS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TacitError)
]  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], int]:
    """Run a function as the command `tacit probe`."""

    def as_command(probe: Callable[[], None]) -> int:
        alone = typer.Typer()
        alone.command()(probe)
        monkeypatch.setitem(command().commands, "probe", typer.main.get_command(alone))
        return main(["probe"])

    return as_command


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_one_line_and_its_exit_code(
    kind: type[TacitError],
    run: Callable[[Callable[[], None]], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def probe() -> None:
        raise kind("what is wrong,\nand [bold]what[/bold] is\x1b[2J allowed.")

    assert run(probe) == kind.exit_code > 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "tacit: what is wrong, and [bold]what[/bold] is\\x1b[2J allowed.\n"


def test_the_tree_of_errors_has_exit_codes_of_its_own() -> None:
    codes = {kind.__name__: kind.exit_code for kind in ERRORS}
    assert codes == {
        "TacitError": 1, "VerificationError": 1, "ParameterError": 2, "UnknownNameError": 2, "DataError": 3,
        "BudgetError": 4, "LedgerError": 5, "RefusalError": 6, "AuthenticationError": 7,
    }  # fmt: skip


@pytest.mark.parametrize("stop", [KeyboardInterrupt, click.Abort])
def test_an_interrupt_is_one_line_and_exits_130(
    stop: type[BaseException],
    run: Callable[[Callable[[], None]], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def probe() -> None:
        raise stop

    assert run(probe) == 130
    assert capsys.readouterr().err == "tacit: interrupted.\n"


def test_an_interrupt_while_modules_are_read_is_one_line() -> None:
    code = """
import importlib.abc, sys
from tacit.cli import main

class Stop(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "tacit.cli.train":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stop())
sys.exit(main(["--help"]))
"""
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tacit: interrupted.\n")


def test_a_file_that_cannot_be_used_is_one_line(
    run: Callable[[Callable[[], None]], int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(lambda: tmp_path.write_text("a folder")) == 1  # type: ignore[arg-type]
    assert capsys.readouterr().err == f"tacit: {tmp_path}: Is a directory.\n"


def test_an_unforeseen_error_keeps_its_traceback(run: Callable[[Callable[[], None]], int]) -> None:
    def probe() -> None:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        run(probe)


def test_a_privacy_warning_is_one_line_and_others_stay(
    run: Callable[[Callable[[], None]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    before = warnings.showwarning

    def probe() -> None:
        for _ in range(2):
            warnings.warn("bounds were read\noff the data", PrivacyWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="another"):  # pytest turns it into an error
            warnings.warn("another", UserWarning, stacklevel=1)

    assert run(probe) == 0
    assert capsys.readouterr().err == "warning: bounds were read off the data\n"
    assert warnings.showwarning is before


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["acount"], "No such command 'acount'. Did you mean 'account'? See `tacit --help`."),
        (["account", "noise"], "Missing option '--epsilon'. See `tacit account noise --help`."),
        (["account", "noise", "--epsilo", "1"], "No such option"),
        (["account", "noise", "--epsilon", "one"], "'one' is not a valid float"),
        (["data", "describe"], "Missing argument 'NAME'"),
    ],
)
def test_a_usage_error_is_one_line_and_exits_2(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tacit: ")
    assert len(captured.err.splitlines()) == 1
    assert said in captured.err


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    helped = capsys.readouterr()
    assert main([]) == 2
    assert capsys.readouterr().out.strip() == helped.out.strip()
    for name in [*COMMANDS, *GROUPS]:
        assert f" {name} " in helped.out
    assert helped.err == ""


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["train"], "Tables, a pattern in quotes or a folder"),
        (["reproduce"], "Name of an experiment"),
        (["account", "verify"], "A statement: JSON"),
        (["ledger", "show"], "A ledger file, a folder of ledgers, or one of tables."),
    ],
)
def test_help_says_what_an_argument_is(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main([*argv, "--help"]) == 0
    assert said in capsys.readouterr().out


def _commands(
    outer: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command below this one and itself, with the words that call it."""
    yield path, outer
    for name, inner in getattr(outer, "commands", {}).items():
        yield from _commands(inner, (*path, name))


ALL_COMMANDS = dict(_commands(command()))


@pytest.mark.parametrize("path", ALL_COMMANDS, ids=" ".join)
def test_help_breaks_lines_only_where_the_terminal_ends(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    width = 200
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*path, "--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    prose = lines[: next(k for k, line in enumerate(lines) if line.startswith("╭"))]
    for line, after in itertools.pairwise(prose):
        # A line ends where its paragraph does, or where the next word has no room; 2 for the margins.
        assert not after or len(f"{line} {after.split()[0]}") > width - 2 or not line
    help_text = ALL_COMMANDS[path].help or ""
    assert help_text
    assert "".join(" ".join(prose).split()).endswith("".join(help_text.split()))


def test_an_extra_that_is_missing_is_named_for_an_index_and_for_a_clone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1PAR1")
    assert (
        main(
            [
                "mean",
                str(tmp_path / "t.parquet"),
                *["--columns", "a", "--lower", "0", "--upper", "1", "--epsilon", "1"],
            ]
        )
        == 3
    )
    said = capsys.readouterr().err
    assert "`pip install 'tacit[parquet]'`, or in a clone `pip install '.[parquet]'` installs it" in said


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tacit {version('tacit')}\n"


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], {"numpy", "scipy", "pandas", "sklearn", "matplotlib"}),
        (["data", "list"], {"scipy", "pandas", "sklearn", "matplotlib"}),
        (
            ["account", "noise", "--epsilon", "1", "--delta", "1e-5"],
            {"scipy.stats", "scipy.signal", "pandas", "sklearn", "matplotlib"},
        ),
    ],
    ids=["help", "data list", "account noise"],
)
def test_a_command_loads_no_more_than_it_uses(arguments: list[str], heavy: set[str]) -> None:
    code = (
        f"import sys; from tacit.cli import main; assert main({arguments}) == 0; "
        f"sys.exit(' '.join({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert done.stderr.strip() == ""


def test_threads_that_wait_sleep_unless_a_person_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert main(["--version"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    monkeypatch.delenv("OMP_WAIT_POLICY")
    assert main(["--version"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    code = "import sys; from tacit.cli import main; sys.exit(main(['--help']))"
    done = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, check=False)  # noqa: S603 - our own code
    os.close(write)
    assert done.returncode == 1
    assert done.stderr == b""


def test_json_holds_what_numpy_and_the_house_hold(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({
        "infinite": np.inf, "nan": np.float64("nan"), "whole": np.int64(3), "half": np.float32(0.5),
        "yes": np.bool_(True), "vector": np.array([1.0, -np.inf]), "path": Path("a"), "struct": Neighbours(),
    })  # fmt: skip
    assert json.loads(capsys.readouterr().out) == {
        "version": 1, "infinite": None, "nan": None, "whole": 3, "half": 0.5, "yes": True,
        "vector": [1.0, None], "path": "a",
        "struct": {"relation": "replace-one", "unit": "record", "part": "all"},
    }  # fmt: skip
    with pytest.raises(TypeError, match="a object has no form in JSON"):
        output.print_json({"what": object()})


def test_tables_show_cells_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("name", "n"), [("[red]ward[/red]", 3), ("b\x1b[2J", 1000)], right=("n",))
    output.print_facts({"label": "[b]x[/b]"}, title="[i]t[/i]")
    output.print_text("[u]paragraph[/u]")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1].split() == ["name", "n"]
    assert lines[3].split() == ["[red]ward[/red]", "3"]
    assert lines[4].split() == [r"b\x1b[2J", "1000"]
    assert lines[3].index("3") == lines[4].index("1000") + 3
    assert lines[5:] == ["[i]t[/i]", "label   [b]x[/b]", "[u]paragraph[/u]"]


def test_tables_break_no_number_and_no_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ("figure", "design", "standard error", "reference")
    row = ("B.7: K = 11, approximate", "monotone optimal", "8.034e-05", "0.1234567890123456")

    def printed(width: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        output.print_table(columns, [row], right=columns[2:])
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()[1:]]

    # At every width down to that of the longest words: whole words only, and no line beyond the terminal.
    words = sorted(" ".join((*columns, *row)).split())
    for width in range(90, 12 + 8 + 9 + 18 + 3 - 1, -1):
        lines = printed(width)
        assert sorted(word for line in lines for word in line.split() if "─" not in word) == words
        assert max(map(len, lines)) <= width
    assert row[0] in "".join(printed(62))  # the first column stays whole longest
    assert printed(62)[0].count("standard") == 1
    # Narrower still, a row is a paragraph; long words of text are broken, never a number.
    for width in (48, 40, 36, 24, 20):
        lines = printed(width)
        assert sorted(word for line in lines for word in line.split()) == words
        assert max(map(len, lines)) <= max(width, 2 + 18)
    assert printed(40)[2:4] == ["standard error  8.034e-05", "reference       0.1234567890123456"]
    assert {"8.034e-05", "0.1234567890123456"} <= {word for line in printed(10) for word in line.split()}


@pytest.mark.parametrize(
    "arguments",
    [
        "train --algorithm list",
        "plan mean --n 1000 --dim 10 --epsilon 1",
        "data list",
        "reproduce",
        "data describe adult",
    ],
)
def test_at_fifty_columns_tables_break_no_word_and_stay_in_the_terminal(
    arguments: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for columns in ("50", "300"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(arguments.split()) == 0
        found[columns] = capsys.readouterr().out
    assert max(map(len, found["50"].splitlines())) <= 50
    whole = {word for word in found["300"].split() if len(word) < 48 and "─" not in word}
    assert whole <= set(found["50"].split())


def test_a_file_has_the_table_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    words = [letter * 60 for letter in "abc"]
    output.print_table(("one", "two", "three"), [words])
    assert capsys.readouterr().out.splitlines()[-1].split() == words


def test_an_empty_table_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("name", "n"), [], right=("n",))
    assert capsys.readouterr().out.split()[:2] == ["name", "n"]


def test_progress_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("training", total=2) as update:
        update(1, note="loss 0.7")
        update(2, 2)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("in_bytes", [False, True])
def test_progress_is_shown_on_a_terminal(
    in_bytes: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with output.progress("training", in_bytes=in_bytes) as update:
        update(5, 20, note="loss [0.7]")
    assert capsys.readouterr().err == "", "a notebook forces colours, and has no cursor to move"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with output.progress("training", in_bytes=in_bytes) as update:
        update(5, 20, note="loss [0.7]")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "training" in captured.err
    assert "loss [0.7]" in captured.err
    assert "5/20" in captured.err
    assert typer.unstyle(captured.err) != captured.err


def test_the_page_of_commands_lists_every_one_of_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    listed = {
        tuple(words.split()) for words in re.findall(r"^\| `tacit ([a-z ]+?)(?= [A-Z\[]|`)", page, re.M)
    }
    groups = {(name, inner) for name, group in GROUPS.items() for inner in commands_of(group)}
    known = {(name,) for name in COMMANDS} | groups
    assert known <= listed | {("reproduce",)}, "a command has a row in docs/reference/cli.md"


def commands_of(group: typer.Typer) -> list[str]:
    """The names of a group's commands."""
    return list(typer.main.get_command(group).commands)  # type: ignore[attr-defined]
