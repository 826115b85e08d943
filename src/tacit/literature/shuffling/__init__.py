"""Bounds on shuffled messages from the literature."""
