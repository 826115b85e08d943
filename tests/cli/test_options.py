"""Every option of every command says what it is, what it takes and what holds without it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import msgspec
import pytest
import typer.core

from tacit import bandits, voting
from tacit.audits import MECHANISMS
from tacit.cli import main, names
from tacit.cli.app import command
from tacit.cli.choices import GROUPS, Helpful, OneOf
from tacit.frequencies import MECHANISMS as FREQUENCIES
from tacit.frequencies import PROJECTIONS, TABLES
from tacit.jobs import JobConfig
from tacit.jobs.config import CHOICES
from tacit.learning import ALGORITHMS
from tacit.means import ESTIMATORS
from tacit.privacy import Order, Part, Relation, Release, Unit
from tacit.privacy.shuffling import RANDOMIZERS

ONE_OF = re.split(
    r"\s+",
    "against algorithm loss mechanism method neighbours norm on_violation order prior randomizer release "
    "role sampling shards task teachers_are ties trust unit weights",
)
"""Names of options that take one of several names, wherever they are."""


def leaves(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Helpful]]:
    """Yield every command that runs, with the words that call it."""
    if isinstance(group, click.Group):
        for name, inner in group.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        assert isinstance(group, Helpful), path
        yield path, group


COMMANDS = dict(leaves(command()))
OPTIONS = [
    pytest.param(path, one, id=" ".join([*path, one.opts[0]]))
    for path, leaf in COMMANDS.items()
    for one in leaf.params
    if isinstance(one, typer.core.TyperOption)
]
NAMED = [given for given in OPTIONS if isinstance(given.values[1].type, OneOf)]  # type: ignore[union-attr]


@pytest.mark.parametrize(("path", "option"), OPTIONS)
def test_help_is_a_sentence_with_the_default(path: tuple[str, ...], option: typer.core.TyperOption) -> None:
    text = option.help or ""
    assert re.fullmatch(r"[A-Z0-9].*[^.]\.", text, re.DOTALL), text
    assert len(text.split()) >= 3, text
    assert "efault" not in text, "a default is shown by itself"
    assert "{" not in text
    if not option.required and not option.is_flag:
        assert option.default is not None or isinstance(option.show_default, str), f"{path} {option.opts}"


@pytest.mark.parametrize(("path", "option"), OPTIONS)
def test_an_option_that_takes_a_name_says_which(
    path: tuple[str, ...], option: typer.core.TyperOption
) -> None:
    if option.name in ONE_OF:
        assert isinstance(option.type, OneOf), f"{path} {option.opts}"
    if isinstance(option.type, OneOf):
        missing = [name for name in option.type.names if name not in (option.help or "")]
        assert not missing
        assert set(option.type.told) <= set(option.type.names)
        if option.default is not None:
            assert option.default in option.type.names


FIRST = {
    ("train",): ["train", "--data", "digits-odd-even"],
    ("mean",): ["mean", "t.csv", "--columns", "x", "--lower", "0", "--upper", "1", "--epsilon", "1"],
    ("account", "compare"): ["account", "compare", "--delta", "1e-6", "--local-epsilon", "1", "--n", "99"],
    ("account", "calibrate"): [
        *["account", "calibrate", "--epsilon", "1", "--delta", "1e-6", "--trust", "shuffle", "--n", "99"]
    ],
    ("account", "shuffle"): ["account", "shuffle", "--local-epsilon", "1", "--n", "99", "--delta", "1e-6"],
}
"""What a command needs before it looks at names that it checks itself."""


@pytest.mark.parametrize(("path", "option"), NAMED)
def test_a_wrong_name_is_refused_with_the_list_of_all(
    path: tuple[str, ...], option: typer.core.TyperOption, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(option.type, OneOf)
    before = list(path) if option.type.checked else FIRST.get(path, list(path))
    assert main([*before, option.opts[-1], "no such name"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tacit: {option.opts[-1].removeprefix('--')} must be one of ")
    missing = [name for name in option.type.names if name.partition(":")[0] not in line]
    assert not missing, line


def test_names_are_those_of_the_registries() -> None:
    iterate = {one.name: one.type for one in COMMANDS["account", "iterate"].params}
    for name, registry in (("release", Release), ("order", Order)):
        kind = iterate[name]
        assert isinstance(kind, OneOf)
        assert sorted(kind.names) == sorted(registry)
    assert list(names.RELATIONS) == [*Relation]
    assert list(names.UNITS) == [*Unit]
    assert list(names.PARTS) == [*Part]
    assert list(names.RANDOMIZERS) == [one.name for one in RANDOMIZERS]
    assert list(names.TIES) == [*voting.Ties]
    assert list(names.VOTED_BY) == [*voting.VotedBy]
    assert list(names.SHARDS) == [*voting.Shards]
    assert list(names.ANONYMITIES) == [*bandits.Anonymity]
    assert list(names.BANDIT_NOISES) == [*bandits.RewardNoise]
    assert list(names.LEVEL_METHODS) == [*bandits.Amplification]
    assert list(names.RADIUS_MODES) == [*bandits.RadiusMode]
    assert list(names.REWARD_MODELS) == [*bandits.RewardModel]
    assert list(names.TAILS) == [*bandits.Tail]
    assert (*voting.DESIGNS, "optimized") == names.DESIGNS
    assert list(names.ALGORITHMS) == list(ALGORITHMS)
    attacked = {**MECHANISMS, **ESTIMATORS}
    numbered = {"krr": "krr:B", "levels": "levels:k"} | {
        name: f"{name}:k" for name in FREQUENCIES if name != "krr"
    }
    assert list(names.ATTACKED) == ["training", *(numbered.get(name, name) for name in attacked)]
    assert sorted(names.FREQUENCY_MECHANISMS) == sorted(FREQUENCIES)
    assert list(names.PROJECTIONS) == list(PROJECTIONS)
    assert list(names.TABLE_KINDS) == list(TABLES)
    assert names.JOB == CHOICES


def test_defaults_are_those_of_a_job() -> None:
    known = {field.name: field.default for field in msgspec.structs.fields(JobConfig)}
    assert known == {**known, **names.JOB_DEFAULTS}
    unsaid = {name for name, value in known.items() if value is not None} - set(names.JOB_DEFAULTS)
    assert unsaid == {"data", "options", "sensitive"}  # which help says in words


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_readable_in_a_narrow_terminal(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main([*path, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    # Every word of every help is there in one piece: a column that is too narrow would break or cut it.
    shown = set(re.findall(r"[\w:^/<>.-]+", " ".join(lines)))
    for one in COMMANDS[path].params:
        words = re.findall(r"[\w:^/<>.-]+", getattr(one, "help", None) or "")
        assert not [word for word in words if word not in shown], (path, one.name)


def test_names_are_completed() -> None:
    (option,) = [one for one in COMMANDS["mean",].params if one.name == "trust"]
    with click.Context(COMMANDS["mean",]) as context:
        assert [item.value for item in option.shell_complete(context, "c")] == ["central"]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_options_are_in_groups_of_one_order(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data, Privacy, Method, Output; where a command has few options, they are in that order in one panel."""
    monkeypatch.setenv("COLUMNS", "100")
    leaf = COMMANDS[path]
    groups = {name: group for group, names in GROUPS.items() for name in names.split()}
    options = [one for one in leaf.params if isinstance(one, typer.core.TyperOption)]
    assert [one.name for one in options if one.name not in groups] == []
    order = [[*GROUPS].index(groups[one.name or ""]) for one in options]
    assert order == sorted(order)
    assert main([*path, "--help"]) == 0
    panels = re.findall(r"^╭─ (\w+) ─", capsys.readouterr().out, re.MULTILINE)
    wanted = list(dict.fromkeys(groups[one.name or ""] for one in options))
    wanted += [] if "Output" in wanted else ["Output"]  # has --help
    arguments = ["Arguments"] if len(options) < len(leaf.params) else []
    assert panels == [*arguments, *(wanted if len(leaf.params) > 9 else ["Options"])]


def test_every_name_in_a_group_is_an_option() -> None:
    used = {one.name for leaf in COMMANDS.values() for one in leaf.params} | {"help"}
    listed = [name for names in GROUPS.values() for name in names.split()]
    assert len(set(listed)) == len(listed)
    assert set(listed) <= used
