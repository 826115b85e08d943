"""The command line: parses, calls, prints; no algorithm lives here."""

from tacit.cli.app import main

__all__ = ["main"]
