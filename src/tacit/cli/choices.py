"""Options that take one of several names, and help that says all of them, in groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import click
import typer.core
from click.shell_completion import CompletionItem

from tacit.errors import check_choice

__all__ = ["Helpful", "OneOf"]

_GROUPS: Final = {
    "Data": "data label silo_column person columns task silos test_fraction lower upper on_violation votes",
    "Privacy": "trust epsilon delta neighbours unit noise clip seed ledger delta_teacher target_delta",
    "Method": "algorithm rounds batch sampling local_steps mu option l1 l2 weights participants method prior "
    "mean m design",
    "Output": "name out plot against json dry_run confidence all simulate",
}
_GROUP_OF: Final = {name: group for group, names in _GROUPS.items() for name in names.split()}
_LONG: Final = 9
"""From so many options on, the help of a command shows them in groups; what is in none comes first."""


class OneOf(click.ParamType[str]):
    """One of several names: help, errors and completion list them.

    Args:
        names: All of them.
        told: What a name means, in a few words.
        checked: Whether other names are refused here; else where the option is used, which knows more.
    """

    name = "name"

    def __init__(
        self,
        names: Iterable[str],
        *,
        told: Mapping[str, str] | None = None,
        checked: bool = True,
    ) -> None:
        self.names = list(names)
        self.told = told or {}
        self.checked = checked

    @property
    def words(self) -> str:
        """The names as a list in a sentence."""
        told = [f"{name} ({self.told[name]})" if name in self.told else name for name in self.names]
        return " or ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; refuse any other with the list of all."""
        if not self.checked or ctx is None or ctx.resilient_parsing:
            return str(value)
        option = max(param.opts, key=len) if param is not None else self.name
        return check_choice(option.lstrip("-"), value, self.names)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click calls it so
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names that a word may become."""
        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


class Helpful(typer.core.TyperCommand):
    """A command whose help says what options take and what holds without them, in groups where it is long."""

    defaults: ClassVar[Mapping[str, object]] = {}
    """What holds for options that have no default of their own."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        for one in self.params:
            if not isinstance(one, typer.core.TyperOption):
                continue
            if isinstance(one.type, OneOf) and one.help is not None:
                one.help = one.help.replace("{names}", one.type.words)
            if one.name in self.defaults:
                value = self.defaults[one.name]
                one.show_default = f"{value:g}" if isinstance(value, float) else str(value)
            if len(self.params) > _LONG:
                one.rich_help_panel = _GROUP_OF.get(one.name or "")
