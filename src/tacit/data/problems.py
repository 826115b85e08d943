"""What stands between some files and a training run: all of it at once, by column, with the line to write.

This is for whoever may see the records: it counts cells, which training never does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import pandas as pd

from tacit.data.cells import MISSING, Texts, texts
from tacit.data.columns_spec import (
    Categorical,
    ColumnsSpec,
    Date,
    Label,
    LabelBounds,
    Numeric,
    Unbounded,
    UnboundedLabel,
    toml_literal,
)
from tacit.data.encoding import Feature, count_unfit, used_columns
from tacit.data.scaffold import date_forms, propose_label, propose_section

__all__ = ["TableProblem", "find_problems"]

_NO_NUMBER = "text that is no number, and count as missing: units, or separators of thousands"
_UNBOUNDED = ' A number that nobody can bound is kind = "unbounded", for training with a stated moment.'
_MANY_OUTSIDE = 0.02
"""Bounds clip some of the cells, that is what they are for; a larger share than this may be a mistake."""
_SOME = 10_000
"""So many distinct texts are looked at for the way in which dates are written."""

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class TableProblem:
    """One thing to mend or to know.

    Attributes:
        column: Which column; "" for a whole file.
        what: One sentence.
        write: Lines for the column description that mend it; "" where there are none.
        must: Whether training is refused, its guarantee worth less, or a whole file of no use, until it is
            mended.
    """

    column: str
    what: str
    write: str = ""
    must: bool = False


def find_problems(
    frames: Frames,
    spec: ColumnsSpec,
    *,
    label: str,
    person: str | None = None,
    silo_column: str | None = None,
    regression: bool = False,
) -> list[TableProblem]:
    """Return all problems of a data set, those that must be mended first.

    Args:
        frames: Records by the name of their file, cells as they stand (`read_table` without `numeric`).
        spec: The description; an empty one where there is none yet.
        label: Column to predict.
        person: Column with the person's id.
        silo_column: Column that names the silo; None: each file is one.
        regression: Whether the label is a number.
    """
    taken = [name for name in (label, person, silo_column) if name is not None]
    features = {name: column for name, column in spec.columns.items() if name not in taken}
    found = [
        *_absent(frames, taken, used_columns(features)),
        *_undescribed(frames, {*features, *taken}, regression=regression),
        *_label_problems(frames, spec, label, regression=regression),
        *(one for name, column in used_columns(features).items() for one in _cells(frames, name, column)),
        *_person_problems(frames, person, silo_column),
    ]
    return sorted(found, key=lambda one: not one.must)


def _absent(frames: Frames, taken: Sequence[str], used: Mapping[str, Feature]) -> Iterator[TableProblem]:
    """Look for columns that files lack."""
    for name in [*taken, *used]:
        without = [file for file, frame in frames.items() if name not in frame.columns]
        if not without:
            continue
        present = dict.fromkeys(str(other) for file in without for other in frames[file].columns)
        near = get_close_matches(name, [other for other in present if other not in used], n=1)
        what = f"{', '.join(without)} {'has' if len(without) == 1 else 'have'} no such column"
        if near:
            what += f"; rename {near[0]!r} if it is the same"
        write = "" if name in taken or len(without) < len(frames) else 'kind = "ignore"'
        yield TableProblem(column=name, what=f"{what}.", write=write, must=True)


def _undescribed(frames: Frames, known: set[str], *, regression: bool) -> Iterator[TableProblem]:
    """Look for columns that nothing is said of; only a regression takes numbers without bounds."""
    columns = dict.fromkeys(str(name) for frame in frames.values() for name in frame.columns)
    for name in columns:
        if name in known:
            continue
        cells = [frame[name].astype(object) for frame in frames.values() if name in frame.columns]
        yield TableProblem(
            column=name,
            what="it is not described, so its bounds or categories would be read off the records, which no "
            f"guarantee covers.{_UNBOUNDED if regression else ''}",
            write=propose_section(pd.concat(cells, ignore_index=True).rename(name)).rstrip(),
            must=True,
        )


def _label_problems(
    frames: Frames, spec: ColumnsSpec, name: str, *, regression: bool
) -> Iterator[TableProblem]:
    """Look at the label: is it described, does that fit the task, and do the cells fit it."""
    known = _known_label(spec, name)
    if known is None or isinstance(known, Label) == regression:
        what = "the label is not described, so its classes or bounds would be read off the records."
        what += _UNBOUNDED if regression else ""
        if known is not None:
            described, other = ("classes", "classification") if regression else ("bounds", "regression")
            what = f"the label is described by {described}: it is for `--task {other}`."
        write = propose_label(name, regression=regression).rstrip()
        yield TableProblem(column=name, what=what, write=write, must=True)
        return
    column: Feature
    match known:
        case Label():
            column = Categorical(categories=known.classes)
        case LabelBounds():
            column = Numeric(lower=known.lower, upper=known.upper)
        case UnboundedLabel():
            column = Unbounded()
    counts = _counts(frames, name, column)
    total = sum(len(frame) for frame in frames.values() if name in frame.columns)
    lost = counts["missing"] + counts["unknown"]
    if lost.sum():
        kind = "no class of the description" if isinstance(known, Label) else "missing or no number"
        without = [file for file, count in lost.items() if count == len(frames[str(file)])]
        all_of = (
            f"; of {', '.join(map(str, without))} no label is known, so it teaches nothing" if without else ""
        )
        yield TableProblem(
            column=name,
            what=f"{_share(lost, total)} labels are {kind}: these records count as zero in training, and as "
            f"wrong in the score{all_of}.",
            must=bool(without),
        )


def _known_label(spec: ColumnsSpec, name: str) -> Label | LabelBounds | UnboundedLabel | None:
    """Return what is said of the label."""
    if spec.label is not None and spec.label.column in (None, name):
        return spec.label
    column = spec.columns.get(name)
    if isinstance(column, Categorical) and len(column.categories) > 1:
        return Label(classes=column.categories)
    if isinstance(column, Unbounded):
        return UnboundedLabel()
    return LabelBounds(lower=column.lower, upper=column.upper) if isinstance(column, Numeric) else None


def _cells(frames: Frames, name: str, column: Feature) -> Iterator[TableProblem]:
    """Look at the cells of a feature."""
    counts = _counts(frames, name, column)
    total = sum(len(frame) for frame in frames.values() if name in frame.columns)
    if not total:
        return
    if counts["unknown"].sum():
        text, write = _unknown(frames, name, column)
        what = f"{_share(counts['unknown'], total)} cells are {text}."
        yield TableProblem(column=name, what=what, write=write)
    if counts["missing"].sum() == total:
        yield TableProblem(column=name, what="no cell holds anything.", write='kind = "ignore"')
    elif counts["missing"].sum() and column.missing in (None, "middle"):
        categories = isinstance(column, Categorical)
        counted = "no category" if categories else "the middle of the bounds"
        if isinstance(column, Unbounded):
            counted = "zero, with all of their record"
        yield TableProblem(
            column=name,
            what=f"{_share(counts['missing'], total)} cells are missing and count as {counted}.",
            write='missing = "category"' if categories else 'missing = "indicator"',
        )
    if counts["outside"].sum() > _MANY_OUTSIDE * total:
        what = f"{_share(counts['outside'], total)} cells lie outside the bounds and are clipped."
        yield TableProblem(column=name, what=what)


def _unknown(frames: Frames, name: str, column: Feature) -> tuple[str, str]:
    """Return what cells are that fit no description and are not missing, and a line that mends it."""
    if isinstance(column, Categorical):
        one = f"`merge = {{ OTHER = {toml_literal(column.categories[0])} }}`"
        return (
            f"none of the categories, and count as none; add them to `categories`, or merge them: {one}",
            "",
        )
    if not isinstance(column, Date):
        return _NO_NUMBER, ""
    cells = {text for frame in frames.values() if name in frame.columns for text in texts(frame[name])}
    forms = date_forms(sorted(cells - MISSING)[:_SOME])
    text = f"no date as {column.format}, and count as missing"
    if len(forms) > 1:
        return (
            f"{text}: there are {' and '.join(forms)}, and a description has one; write them in one way",
            "",
        )
    return text, f"format = {toml_literal(forms[0])}" if forms and forms[0] != column.format else ""


def _counts(frames: Frames, name: str, column: Feature) -> pd.DataFrame:
    """Return `count_unfit` of one column by file; text that is no number is "unknown" here."""
    rows = {}
    for file, frame in frames.items():
        if name in frame.columns:
            row = count_unfit(frame[[name]], {name: column}).iloc[0]
            if not isinstance(column, Categorical):
                empty = sum(text in MISSING for text in texts(frame[name]))
                row["unknown"], row["missing"] = row["missing"] - empty, empty
            rows[file] = row
    return pd.DataFrame.from_dict(rows, orient="index", columns=["missing", "unknown", "outside"])


def _person_problems(frames: Frames, person: str | None, silo_column: str | None) -> Iterator[TableProblem]:
    """Look at ids: missing ones, and those of several silos."""
    ids = {file: texts(frame[person]) for file, frame in frames.items() if person in frame.columns}
    if person is None or not ids:
        return
    without = pd.Series({file: int((found == "").sum()) for file, found in ids.items()})
    if without.sum():
        share = _share(without, sum(map(len, ids.values())))
        yield TableProblem(column=person, what=f"{share} records have no id; those of a silo are one person.")
    pairs = [
        pd.DataFrame({"id": found, "silo": _silos(frames[file], file, silo_column)})
        for file, found in ids.items()
    ]
    silos = pd.concat(pairs).query("id != ''").groupby("id").silo.nunique()
    if (silos > 1).any():
        yield TableProblem(
            column=person,
            what=f"{int((silos > 1).sum()):,} of {len(silos):,} persons have records in more than one silo; "
            "guarantees of silos are about each of these shares alone.",
        )


def _silos(frame: pd.DataFrame, file: str, silo_column: str | None) -> Texts | str:
    """Return who holds the records of a file."""
    return texts(frame[silo_column]) if silo_column in frame.columns else file


def _share(counts: pd.Series[int], total: int) -> str:
    """Return how many of all, and in which files where there are several."""
    where = [f"{file} {count:,}" for file, count in counts.items() if count]
    places = f" ({', '.join(where)})" if len(counts) > 1 else ""
    return f"{int(counts.sum()):,} of {total:,}{places}"
