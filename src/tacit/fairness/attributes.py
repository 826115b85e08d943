"""The public names of sensitive attributes, which statements and ledgers tell."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tacit.errors import printable

__all__ = ["attribute_names"]


def attribute_names(sensitive: Any) -> tuple[str, ...]:
    """Return the public names of sensitive columns, as a series or a frame has them; else none.

    Example:
        >>> attribute_names(pd.Series(["f", "m"], name="sex"))
        ('sex',)
    """
    if isinstance(sensitive, pd.DataFrame):
        return tuple(printable(str(name)) for name in sensitive.columns)
    if isinstance(sensitive, pd.Series) and sensitive.name is not None:
        return (printable(str(sensitive.name)),)
    return ()
