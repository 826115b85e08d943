"""`tacit bandit`: a private linear bandit, simulated, planned, or run with real clients."""

from __future__ import annotations

import typer

from tacit.cli.bandit.plan import plan
from tacit.cli.bandit.run import run
from tacit.cli.bandit.simulate import simulate

__all__ = ["app"]

app = typer.Typer(
    help="Learn which action is best without seeing a reward: simulate, plan or run it.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Learn which action is best without seeing a reward: simulate, plan or run it."""


for _command in (simulate, plan, run):
    app.command()(_command)
