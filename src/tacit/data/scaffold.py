"""A first column description for somebody to fill in: kinds are proposed, bounds and categories never are.

A proposal is made by looking at the records, which no guarantee covers; it is written for a person, who
checks it against what is publicly known. Nothing here is used by training.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

import numpy as np
import pandas as pd

from tacit.data.cells import MISSING, numbers, texts
from tacit.data.columns_spec import FILL_IN, toml_key, toml_literal

__all__ = ["date_forms", "propose_description", "propose_label", "propose_section"]

_FEW: Final = 20
"""A column with more distinct texts than this is a name, an identifier or free text."""
_MOST: Final = 0.95
"""Such a share of the cells that are not missing decides what a column holds: some are always misspelt."""
_SAMPLE: Final = 10_000
"""So many distinct texts are looked at."""
_DATES: Final = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d")

_IF_MISSING: Final = '# missing = "indicator"     # or a number; without this line, the middle of the bounds'
_HEAD: Final = """\
# What is publicly known of the columns, for {source}.
# Replace every "{fill_in}" by what is known without these records: from the form they were entered in, the
# device, the literature. Bounds that are read off the records are a release that no guarantee covers.
# Kinds are proposals that were made by looking at the records. Check them too.
version = 1
"""


def propose_description(
    frame: pd.DataFrame,
    *,
    source: str,
    label: str | None = None,
    regression: bool = False,
    person: str | None = None,
    ignored: Sequence[str] = (),
    today: date | None = None,
) -> str:
    """Return a description as TOML with comments and gaps; `ColumnsSpec` refuses it while it has gaps.

    Args:
        frame: The records, cells as they stand (`read_table` without `numeric`).
        source: What the comment on top calls the table.
        label: Column to predict.
        regression: Whether the label is a number rather than a class.
        person: Column that identifies the person of each record.
        ignored: Further columns with another role, such as that of the silo.
        today: Public day from which dates are counted; None is the day on which this is called.
    """
    parts = [_HEAD.format(source=" ".join(source.split()), fill_in=FILL_IN)]
    if person is not None:
        parts[0] += (
            f"person = {toml_literal(person)}     # whose record it is: all records of one are protected\n"
        )
    if label is not None:
        parts.append(propose_label(label, regression=regression))
    for name in map(str, frame.columns):
        if name == label:
            continue
        parts.append(
            _section(name, _ignore("says whose record it is"))
            if name in (person, *ignored)
            else propose_section(frame[name], today=today)
        )
    return "\n".join(parts)


def propose_section(values: pd.Series, *, today: date | None = None) -> str:
    """Return the part of a description that one column should have, with gaps for bounds and categories."""
    return _section(str(values.name), _lines(values, date.today() if today is None else today))


def propose_label(name: str, *, regression: bool) -> str:
    """Return the part of a description that the label should have, with gaps."""
    known = ['kind = "classes"', f'classes = ["{FILL_IN}"]     # all; the second of two is the positive one']
    if regression:
        known = ['kind = "numeric"', *_bounds("target")]
    return "\n".join(["[label]", *known, f"column = {toml_literal(name)}", ""])


def _section(name: str, lines: Sequence[str]) -> str:
    """Return one table of TOML."""
    return "\n".join([f"[columns.{toml_key(name)}]", *lines, ""])


def _lines(values: pd.Series, today: date) -> list[str]:
    """Return what to say of a column, by what most of its cells are."""
    found = texts(values)
    distinct = sorted(set(found) - MISSING)
    some = distinct[:: max(len(distinct) // _SAMPLE, 1)]
    if not some:
        return _ignore("no cell holds anything")
    forms = date_forms(some)
    if len(forms) > 1:
        return _ignore(f"dates, as {' and '.join(forms)}: write them in one way, and describe them")
    if forms:
        written = [] if forms[0] == _DATES[0] else [f'format = "{forms[0]}"']
        since = f"reference = {today.isoformat()}     # bounds are years before this day"
        return ['kind = "date"', since, *written, *_bounds("number of years"), _IF_MISSING]
    known = numbers(values)[[text not in MISSING for text in found]]
    numeric = np.isfinite(known).mean() >= _MOST
    if numeric and len(distinct) == len(found) > _FEW and not (known % 1).any():
        return _ignore("another whole number in every record: an id?")
    if numeric and len(distinct) > 2:
        return ['kind = "numeric"', *_bounds("value"), _IF_MISSING]
    if len(distinct) <= _FEW:
        return [
            'kind = "categorical"',
            f'categories = ["{FILL_IN}"]     # all of them; in their order if you add ordinal = true',
            '# missing = "category"     # or one of them; without this line, none of them',
        ]
    if np.mean([" " in text for text in some]) > 0.5:
        return _ignore("free text?")
    if len(distinct) > len(found) / 2:
        return _ignore("another text in most records: an id?")
    return _ignore(f"more than {_FEW} different texts; or describe them as categories")


def _ignore(why: str) -> list[str]:
    """Return what to say of a column that should not be a feature."""
    return [f'kind = "ignore"     # {why}']


def _bounds(what: str) -> list[str]:
    """Return bounds to fill in."""
    lower = f'lower = "{FILL_IN}"     # the smallest {what} to tell apart'
    return [lower, f'upper = "{FILL_IN}"     # the largest']


def date_forms(some: Sequence[str]) -> list[str]:
    """Return how texts write a day: one way that most have, else those that most have together, or none."""
    found = {}
    for form in _DATES:
        heads = [text[:10] for text in some] if form == _DATES[0] else some
        found[form] = np.array([_is_day(text, form) for text in heads])
        if found[form].mean() >= _MOST:
            return [form]
    together = np.any([*found.values()], axis=0).mean() >= _MOST
    return [form for form, days in found.items() if together and days.any()]


def _is_day(text: str, form: str) -> bool:
    """Whether a text is a day."""
    try:
        return bool(datetime.strptime(text, form)) and len(text) >= 6
    except ValueError:
        return False
