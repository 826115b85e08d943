"""`tacit data list`, `describe` and `fetch`: the named public data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import JsonFlag, print_facts, print_json, print_line, print_table, progress
from tacit.errors import check_choice

if TYPE_CHECKING:
    from tacit.data import Column, DataFile, DatasetInfo, Label, LabelBounds, PresetInfo, UnboundedLabel

__all__ = ["describe", "fetch", "list_all"]

_SHOWN = 6
"""So many categories of a column are shown to people; `--json` gives all."""

_SIZES = ("train", "test", "features")

Name = Annotated[str, typer.Argument(help="Name of a data set, see `tacit data list`.", show_default=False)]


def list_all(json: JsonFlag = False) -> None:
    """List all data sets and where they are, and the presets that fair learning is measured on."""
    from tacit.data import DATASETS, PRESETS, data_home, names

    found = [_summary(DATASETS[name]) for name in names()]
    presets = [_preset(info) for info in PRESETS.values()]
    if json:
        print_json({"data_home": data_home(), "data_sets": found, "presets": presets})
        return
    columns = ("name", "task", "records", "features", "where", "licence")
    rows = [[f"{row[c]:,}" if isinstance(row[c], int) else row[c] for c in columns] for row in found]
    print_facts({"data home": data_home()})
    print_table(columns, rows, right=("records", "features"))
    rows = [
        [one["name"], one["data_set"], *(f"{one[half]:,}" for half in _SIZES), _values(one["sensitive"])]
        for one in presets
    ]
    print_table(("preset", "data set", *_SIZES, "sensitive"), rows, right=_SIZES)


def describe(name: Name, json: JsonFlag = False) -> None:
    """Show what is known about a data set, with the public bounds of its columns."""
    from tacit import data

    if check_choice("data set", name, data.names() + data.prepared_names()) in data.prepared_names():
        _describe_preset(data.PRESETS[name], json=json)
        return
    info = data.describe(name)
    spec = info.columns()
    files = [_file_facts(info, file) for file in info.files]
    if json:
        print_json({
            **_summary(info), "title": info.title, "target": info.target, "sensitive": info.sensitive,
            "source": info.source, "page": info.page, "not_features": info.not_features, "files": files,
            "label": spec.label, "columns": spec.columns,
        })  # fmt: skip
        return
    facts = {
        "name": info.name, "task": info.task, "target": info.target,
        "sensitive": ", ".join(info.sensitive) or "none",
        "records": f"{info.rows:,}", "features": f"{info.n_features:,}",
        "where": _where(info), "licence": info.licence, "source": info.source, "page": info.page,
        "label": _label_bounds(spec.label) if spec.label is not None else "known from the images",
    }  # fmt: skip
    print_facts(facts, title=info.title)
    if files:
        rows = [
            (
                file["name"],
                file["where"] + ("" if file["required"] else ", optional"),
                file["url"] or "placed by hand",
            )
            for file in files
        ]
        print_table(("file", "where", "from"), rows)
    if spec.columns:
        rows = [(column, *_bounds(kind, column, info)) for column, kind in spec.columns.items()]
        print_table(("column", "kind", "public bounds or categories"), rows)


def fetch(
    name: Name,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Mirror that is laid out like the data home: <base-url>/<folder>/<file>.",
            show_default="each file's own address",
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Download the files of a data set that are not there yet, checked against their checksums."""
    from tacit import data

    info = data.describe(data.PRESETS[name].data_set if name in data.prepared_names() else name)
    with progress(f"fetching {info.name}", in_bytes=True) as update:
        paths = data.fetch(info.name, base_url=base_url, progress=update)
    if json:
        print_json({"name": info.name, "embedded": info.embedded, "files": paths})
    elif info.embedded:
        print_line(
            to_error=False, label=info.name, text="embedded, there is nothing to fetch", colour="green"
        )
    else:
        where = paths[0].parent
        text = f"{len(paths)} {'files' if len(paths) > 1 else 'file'} in {where}"
        print_line(to_error=False, label=info.name, text=text, colour="green")


def _describe_preset(info: PresetInfo, *, json: bool) -> None:
    """Show what is known about a preset that `--data` takes."""
    found = _preset(info) | {"held_out": _held_out(info), "columns": info.columns}
    if json:
        print_json(found)
        return
    columns = ", ".join(info.columns) or f"the usual ones, see `tacit data describe {info.data_set}`"
    facts = {
        "name": info.name, "data set": info.data_set, "sensitive": ", ".join(info.sensitive),
        "records": f"{info.train + info.test:,}", "held out": _held_out(info),
        "features": f"{info.n_features:,}", "columns": columns,
    }  # fmt: skip
    print_facts(facts, title=info.title)


def _held_out(info: PresetInfo) -> str:
    """Say which records training holds out."""
    return "the official test half" if info.test_fraction is None else "as --test-fraction says"


def _summary(info: DatasetInfo) -> dict[str, Any]:
    """Return what the list shows of a data set."""
    return {
        "name": info.name,
        "task": info.task,
        "records": info.rows,
        "features": info.n_features,
        "where": _where(info),
        "licence": info.licence,
    }


def _preset(info: PresetInfo) -> dict[str, Any]:
    """Return what the list shows of a preset."""
    return {
        "name": info.name,
        "data_set": info.data_set,
        "title": info.title,
        "train": info.train,
        "test": info.test,
        "features": info.n_features,
        "sensitive": info.sensitive,
    }


def _where(info: DatasetInfo) -> str:
    """Say whether the data set can be loaded as things are; optional files may be absent."""
    if info.embedded:
        return "embedded"
    needed = [_is_there(info, file) for file in info.files if file.required]
    return "present" if all(needed) else "absent"


def _is_there(info: DatasetInfo, file: DataFile) -> bool:
    """Whether a file lies in the data home; its checksum is for `load` to check."""
    from tacit.data import data_home

    return (data_home() / info.folder / file.name).is_file()


def _file_facts(info: DatasetInfo, file: DataFile) -> dict[str, Any]:
    """Return what is known of a file."""
    return {
        "name": file.name,
        "where": "present" if _is_there(info, file) else "absent",
        "required": file.required,
        "url": file.url,
        "sha256": file.sha256,
    }


def _bounds(kind: Column, column: str, info: DatasetInfo) -> tuple[str, str]:
    """Return the kind of a column and its public bounds, in words."""
    from tacit.data import Categorical, Date, Numeric, Unbounded

    optional = ", on request only" if column in info.not_features else ""
    if isinstance(kind, Numeric):
        return "numeric" + optional, f"{kind.lower:,.10g} to {kind.upper:,.10g}"
    if isinstance(kind, Unbounded):
        return "numeric" + optional, "without bounds"
    if isinstance(kind, Date):
        return "date" + optional, f"{kind.lower:,.10g} to {kind.upper:,.10g} years before {kind.reference}"
    if isinstance(kind, Categorical):
        return ("ordinal" if kind.ordinal else "categorical") + optional, _values(kind.categories)
    return "no feature", ""


def _label_bounds(label: Label | LabelBounds | UnboundedLabel) -> str:
    """Return the public classes or bounds of a label, in words."""
    from tacit.data import Label, UnboundedLabel

    if isinstance(label, Label):
        return _values(label.classes)
    if isinstance(label, UnboundedLabel):
        return "without bounds"
    return f"{label.lower:,.10g} to {label.upper:,.10g}"


def _values(values: tuple[str | int, ...]) -> str:
    """Return the first values, and how many there are in all."""
    shown = ", ".join(str(value) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown}, ... ({len(values)} in all)"
