"""Which group each record of a fair training is of, as its sensitive columns and their description say."""

from __future__ import annotations

import itertools
from typing import Any, Final

import pandas as pd

from tacit.data import Categorical, Ignore
from tacit.errors import DataError
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData

__all__ = ["check_named", "known_groups", "sensitive_frame"]

_MOST_VALUES: Final = 100
"""A column that nothing describes, with more different cells than this, is an id or a measure."""


def sensitive_frame(data: JobData) -> pd.DataFrame:
    """Return the sensitive columns as text, None where a cell says nothing."""
    return pd.DataFrame(
        {name: pd.Series(values, dtype=object) for name, values in data.sensitive.items()}
    ).replace("", None)


def known_groups(job: JobConfig, data: JobData) -> list[Any] | None:
    """Return the groups that public knowledge names; None where a column has no description."""
    if data.public:
        known = [sorted(set(values.tolist())) for values in data.sensitive.values()]
    else:
        described = _described(job, data)
        known = []
        for name in data.sensitive:
            column = described.get(name)
            if not isinstance(column, Categorical):
                return None
            known.append([str(one) for one in column.categories])
    return known[0] if len(known) == 1 else list(itertools.product(*known))


def check_named(job: JobConfig, data: JobData) -> None:
    """Refuse sensitive columns that name no groups.

    Args:
        job: Which columns they are, and whether they are private.
        data: The records.

    Raises:
        DataError: A column is described by bounds, or by nothing although it is private, or it has a value of
            its own for about every record.
    """
    described = _described(job, data)
    for name, cells in data.sensitive.items():
        column = described.get(name)
        if data.public or isinstance(column, Categorical):
            continue
        if column is not None and not isinstance(column, Ignore):
            raise DataError(
                f"sensitive column {name!r} is described as continuous, and groups have names: describe it "
                'as kind = "categorical", a column of numbers after it was cut into bands.'
            )
        if job.protect is not None:
            raise DataError(
                f"sensitive column {name!r} needs its groups as a public list, which protect={job.protect!r} "
                'does not hide: describe it in a columns.toml file, kind = "categorical".'
            )
        if len(set(cells)) > _MOST_VALUES:
            raise DataError(
                f"sensitive column {name!r} has more than {_MOST_VALUES} different values: cut it into "
                'bands, or describe it as kind = "categorical".'
            )


def _described(job: JobConfig, data: JobData) -> dict[str, Any]:
    """Return the columns that a person has described."""
    return {} if data.tables is None else dict(data.tables.described(job.columns).columns)
