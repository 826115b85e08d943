"""Options of new federations about who is trusted, and how many hide each other."""

from __future__ import annotations

from typing import Annotated, Final

import typer

__all__ = ["TRUSTS", "CollusionOption", "MinimumOption", "RecoverOption"]

TRUSTS: Final = ("local", "aggregate", "shuffle", "central", "none")

MinimumOption = Annotated[
    int | None,
    typer.Option(
        "--n-min",
        help="Silos below which a round shows nothing, under shuffle trust, and under aggregate trust with "
        "--recover.",
        show_default="all of them",
    ),
]
CollusionOption = Annotated[
    int | None,
    typer.Option(
        help="Silos that may add no noise and tell what they sent, under shuffle and aggregate trust.",
        show_default="0",
    ),
]
RecoverOption = Annotated[
    bool,
    typer.Option(
        "--recover", help="Open sums without silos that drop out of a round, under aggregate trust."
    ),
]
