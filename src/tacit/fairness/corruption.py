"""Sensitive attributes that are missing or wrong, for experiments on what training makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.errors import ParameterError, check_probability
from tacit.fairness.groups import Groups

__all__ = ["force_attributes", "hide_attributes"]


def hide_attributes(groups: Groups, share: float, rng: np.random.Generator) -> Groups:
    """Return groups of which a share is not known, chosen at random.

    Args:
        groups: Of n records.
        share: In [0, 1); of n records, round(share n) lose their attribute, or keep it lost.
        rng: Chooses records.

    Raises:
        ParameterError: A share out of range.
    """
    return _overwritten(groups, check_probability("share", share, high_open=True), -1, rng)


def force_attributes(groups: Groups, share: float, to: Any, rng: np.random.Generator) -> Groups:
    """Return groups of which a share, chosen at random, is said to be of one group, whatever is true.

    Args:
        groups: Of n records.
        share: In [0, 1]; round(share n) records are overwritten.
        to: Name of the group that they are said to be of.
        rng: Chooses records.

    Raises:
        ParameterError: A share out of range, or no such group.
    """
    if to not in groups.names:
        raise ParameterError(f"to must be one of the {len(groups)} groups, got {to!r}.")
    return _overwritten(groups, check_probability("share", share), groups.names.index(to), rng)


def _overwritten(groups: Groups, share: float, code: int, rng: np.random.Generator) -> Groups:
    """Return groups with one code written over a share of them."""
    codes = groups.codes.copy()
    codes[rng.choice(len(codes), round(share * len(codes)), replace=False)] = code
    return Groups(codes, groups.names)
