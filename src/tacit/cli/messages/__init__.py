"""`tacit messages`."""

from tacit.cli.messages.commands import app

__all__ = ["app"]
