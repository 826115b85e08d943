"""`tacit bandit`."""

from tacit.cli.bandit.commands import app

__all__ = ["app"]
