"""Options that take one of several names, and help that says all of them, in groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import click
import typer.core
from click.shell_completion import CompletionItem

from tacit.errors import check_choice

__all__ = ["GROUPS", "Helpful", "OneOf"]

GROUPS: Final = {
    "Data": "data column values label silo_column person columns task silos silos_from test_fraction lower "
    "upper on_violation votes teachers teachers_are shards affected n k parties records dim norm radius "
    "lipschitz smoothness non_smooth diameter convexity strong_convexity correlation public private variance "
    "base_url names sizes test job record actions horizon rewards server shuffler keys config since role "
    "collection size url cards folder roster revoke expire days signing features classes clients",
    "Fairness": "sensitive prediction advantaged missing fairness fairness_weight max_violation at",
    "Privacy": "protect trust n_min colluding recover epsilon levels delta neighbours unit part noise clip "
    "seed ledger local_epsilon delta_teacher target_delta anonymity alone worst_case_order",
    "Method": "model module algorithm mechanism method rounds one_pass batch sampling sample_rate "
    "local_steps mu option l1 l2 group_lasso domain moment weights participants epochs release order "
    "placement step_times_smoothness loss quantile threshold smoothing messages steps bits max_bits points "
    "runs noise_factor prior mean m ties queries projection heavy_hitters max_random_bits max_message_bits "
    "independent tables items hash_seed dictionary miss radius_mode all_actions tail randomizer drawn "
    "join_rate sampled check check_every most_runs",
    "Output": "min_count "
    "name log close out plot report against quiet logs json_logs accept verify dry_run confidence "
    "all_of_them simulate exact quick top json help",
}
"""Options by group; help lists the groups in this order, and within each what a command declares."""
_GROUP_OF: Final = {name: group for group, names in GROUPS.items() for name in names.split()}
_ORDER: Final = {name: k for k, group in enumerate(GROUPS) for name in GROUPS[group].split()}
_LONG: Final = 9
"""With more options and arguments, the help of a command has a panel for each group."""


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
        options = [one for one in self.params if isinstance(one, typer.core.TyperOption)]
        others = [one for one in self.params if one not in options]
        self.params = [*others, *sorted(options, key=lambda one: _ORDER.get(one.name or "", 0))]
        for one in options:
            if isinstance(one.type, OneOf) and one.help is not None:
                one.help = one.help.replace("{names}", one.type.words)
            if one.name in self.defaults:
                value = self.defaults[one.name]
                one.show_default = f"{value:g}" if isinstance(value, float) else str(value)
            one.rich_help_panel = self._panel_of(one.name or "")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a mistake in them leads to the help of this command."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click leaves it out where an option has no value, or one too many
            raise

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option `--help`, in its group."""
        names = self.get_help_option_names(ctx)
        return typer.core.TyperOption(
            param_decls=["help", *names],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_help,
            help="Show this message and exit.",
            rich_help_panel=self._panel_of("help"),
        )

    def _panel_of(self, name: str) -> str | None:
        """Return the panel that an option is shown in; None is that of all of them."""
        return _GROUP_OF.get(name) if len(self.params) > _LONG else None


def _show_help(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the help and stop, where it was asked for."""
    if wanted and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
