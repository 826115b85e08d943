"""Options that take several values after one flag: `--columns age bmi`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tacit.cli.choices import Helpful

__all__ = ["several"]


def several(*options: str, numbers: Sequence[str] = ()) -> type[Helpful]:
    """Make the class of a command in which some options take all values up to the next option.

    The values may also be separated by commas (numbers), or the flag be repeated. What stands before all
    options, or right after another option's value, stays an argument.

    Args:
        options: Flags with several values, such as `--columns`.
        numbers: Those of `options` whose values are numbers; there commas separate, and `-5` is a value.

    Returns:
        A class for `app.command(cls=...)`.
    """

    class Several(Helpful):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            return super().parse_args(ctx, _spelled_out(args, options, numbers))

    return Several


def _spelled_out(args: list[str], options: Sequence[str], numbers: Sequence[str]) -> list[str]:
    """Return arguments in which every value has a flag of its own, as click wants it."""
    found: list[str] = []
    flag = ""
    for index, arg in enumerate(args):
        if arg == "--":
            return found + args[index:]
        name, equals, value = arg.partition("=")
        if name in options:
            flag = name
            # A flag without any value stays as it is, so that click says what is missing.
            last = index + 1 == len(args) or not _is_value(args[index + 1], name, numbers)
            if equals or last:
                found += [f"{flag}={part}" for part in _parts(value, flag, numbers)] if equals else [arg]
        elif flag and _is_value(arg, flag, numbers):
            found += [f"{flag}={part}" for part in _parts(arg, flag, numbers)]
        else:
            flag = ""
            found.append(arg)
    return found


def _parts(value: str, flag: str, numbers: Sequence[str]) -> list[str]:
    """Return the values in one argument."""
    if flag not in numbers or "," not in value:
        return [value]
    return [part.strip() for part in value.split(",") if part.strip()]


def _is_value(arg: str, flag: str, numbers: Sequence[str]) -> bool:
    """Tell a value from the next option: `-5` is a value where numbers are wanted."""
    if not arg.startswith("-") or arg == "-":
        return True
    if flag not in numbers:
        return False
    try:
        float(arg.split(",")[0])
    except ValueError:
        return False
    return True
