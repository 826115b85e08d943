"""`tacit account`: what does this cost, which noise does a budget need, is this statement true?"""

from __future__ import annotations

import typer

from tacit.cli.account.central import epsilon, noise
from tacit.cli.account.comparison import compare
from tacit.cli.account.drawn_reports import reports
from tacit.cli.account.hidden import iterate
from tacit.cli.account.mix import calibrate, compose
from tacit.cli.account.sampled import subsample
from tacit.cli.account.shuffled import shuffle
from tacit.cli.account.statements import verify
from tacit.cli.account.summed import aggregate
from tacit.cli.account.tuned import halving

__all__ = ["app"]

app = typer.Typer(help="Price a release, or find the noise that a budget allows.", no_args_is_help=True)
_ALL = (noise, epsilon, shuffle, aggregate, reports, subsample, iterate, compose, halving, calibrate, compare)
for _command in (*_ALL, verify):
    app.command()(_command)
