"""Tables with public bounds, named data sets, and the split of records over silos.

What reads tables imports pandas, and is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit.data.columns_spec import (
    FILL_IN,
    Categorical,
    Column,
    ColumnsSpec,
    Date,
    Ignore,
    Label,
    LabelBounds,
    Numeric,
    Unbounded,
    UnboundedLabel,
    Value,
    sidecar_path,
)
from tacit.data.fetch import fetch
from tacit.data.info import DataFile, DatasetInfo, PresetInfo
from tacit.data.registry import DATASETS, PRESETS, data_home, describe, names, prepared_names
from tacit.data.splits import (
    Indices,
    split_by_column,
    split_by_label,
    split_by_pairs,
    split_dirichlet,
    split_iid,
    split_mixture,
    split_noniid_shards,
    split_sorted_target,
    train_test_split_groups,
    train_test_split_indices,
    train_test_split_silos,
)

if TYPE_CHECKING:
    from tacit.data.datasets import Dataset, load
    from tacit.data.descriptions import Task
    from tacit.data.encoding import Features, count_unfit, encode_columns, encode_label, scale, unscale
    from tacit.data.files import read_table
    from tacit.data.presets import Preset, load_prepared, load_preset
    from tacit.data.problems import TableProblem, find_problems
    from tacit.data.scaffold import propose_description
    from tacit.data.synthetic import synthetic_equicorrelated, synthetic_groups
    from tacit.data.table_files import TableFiles, find_tables
    from tacit.data.tables import Table, build_table, load_table, read_silo_names
    from tacit.data.wrong_text import find_wrong_text

_HOMES = {
    "Dataset": "datasets",
    "Features": "encoding",
    "Preset": "presets",
    "Table": "tables",
    "TableFiles": "table_files",
    "TableProblem": "problems",
    "Task": "descriptions",
    "build_table": "tables",
    "count_unfit": "encoding",
    "encode_columns": "encoding",
    "encode_label": "encoding",
    "find_problems": "problems",
    "find_tables": "table_files",
    "find_wrong_text": "wrong_text",
    "load": "datasets",
    "load_prepared": "presets",
    "load_preset": "presets",
    "load_table": "tables",
    "propose_description": "scaffold",
    "read_silo_names": "tables",
    "read_table": "files",
    "scale": "encoding",
    "synthetic_equicorrelated": "synthetic",
    "synthetic_groups": "synthetic",
    "unscale": "encoding",
}

__all__ = [
    "DATASETS",
    "FILL_IN",
    "PRESETS",
    "Categorical",
    "Column",
    "ColumnsSpec",
    "DataFile",
    "Dataset",
    "DatasetInfo",
    "Date",
    "Features",
    "Ignore",
    "Indices",
    "Label",
    "LabelBounds",
    "Numeric",
    "Preset",
    "PresetInfo",
    "Table",
    "TableFiles",
    "TableProblem",
    "Task",
    "Unbounded",
    "UnboundedLabel",
    "Value",
    "build_table",
    "count_unfit",
    "data_home",
    "describe",
    "encode_columns",
    "encode_label",
    "fetch",
    "find_problems",
    "find_tables",
    "find_wrong_text",
    "load",
    "load_prepared",
    "load_preset",
    "load_table",
    "names",
    "prepared_names",
    "propose_description",
    "read_silo_names",
    "read_table",
    "scale",
    "sidecar_path",
    "split_by_column",
    "split_by_label",
    "split_by_pairs",
    "split_dirichlet",
    "split_iid",
    "split_mixture",
    "split_noniid_shards",
    "split_sorted_target",
    "synthetic_equicorrelated",
    "synthetic_groups",
    "train_test_split_groups",
    "train_test_split_indices",
    "train_test_split_silos",
    "unscale",
]


if not TYPE_CHECKING:  # which knows the names above, and that there are no others

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'tacit.data' has no attribute {name!r}")
        globals()[name] = getattr(importlib.import_module(f"tacit.data.{_HOMES[name]}"), name)
        return globals()[name]
