"""The command line: parses, calls, prints; no algorithm lives here."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; arguments and exit codes are those of `tacit.cli.app.main`."""
    try:
        from tacit.cli.app import main as run
    except KeyboardInterrupt:  # reading all commands takes long enough to be stopped
        sys.stderr.write("tacit: interrupted.\n")
        return 130
    return run(argv)
