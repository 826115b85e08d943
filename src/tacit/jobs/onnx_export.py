"""Trained models as ONNX graphs, for programs in which there is no Python: columns in, predictions out.

What is written is run once by ONNX Runtime before it is handed over, and must agree with the model.
"""

from __future__ import annotations

import importlib
import importlib.util
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit.data import Categorical, Date, Unbounded
from tacit.data.cells import MISSING
from tacit.data.encoding import DAYS_OF_A_YEAR, Feature, used_columns
from tacit.errors import DataError, ParameterError, TacitError, install_extra
from tacit.jobs.model import TrainedModel
from tacit.learning.model import FeatureMap
from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["to_onnx"]

_OPSET: Final = {"": 18, "ai.onnx.ml": 3}
_IR: Final = 9
_PROBES: Final = 64
_AGREE: Final = 1e-9


def to_onnx(model: TrainedModel) -> bytes:
    """Return a model as an ONNX graph in double precision.

    Inputs are the columns of the description, each of shape (n,): numbers as doubles, NaN where missing;
    dates as doubles, in years before their public day; categories as strings, written as in the description,
    and one of the usual texts such as "" or "NA" where missing. A model of numbers has one input "features"
    of shape (n, d). Outputs are "label" and "probabilities" (of the hinge loss "scores", shape (n,)), or
    "prediction" for a regression.

    Raises:
        DataError: The extra `tacit[onnx]` is not installed.
        ParameterError: The model is not linear in its features.
        TacitError: ONNX Runtime does not predict what the model does.
    """
    if model.fitted.why_no_weights:
        raise ParameterError(
            f"a graph needs a linear model, of images 'linear@pixels', got one of model={str(model.model)!r}."
        )
    for name in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(name) is None:
            raise DataError(f"writing ONNX needs {name}; {install_extra('onnx')} installs it.")
    onnx: Any = importlib.import_module("onnx")
    graph = _Graph(onnx)
    scores = _scores(graph, model, _features(graph, model))
    _predictions(graph, model, scores)
    made = graph.model(
        {"run": model.run, "statement": model.statement_digest or "", "privacy": model.privacy}
    )
    onnx.checker.check_model(made)
    data: bytes = made.SerializeToString()
    _check(data, model)
    return data


class _Graph:
    """Nodes and constants of a graph that is being written; every result has a number as its name."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add an array."""
        name = f"c{len(self._constants)}"
        array = np.asarray(value, dtype=dtype)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        name = output or f"r{len(self._nodes)}"
        domain = "ai.onnx.ml" if operator == "LabelEncoder" else ""
        node = self._onnx.helper.make_node(operator, list(inputs), [name], domain=domain, **attributes)
        self._nodes.append(node)
        return name

    def double(self, value: str) -> str:
        """Turn truth values or whole numbers into doubles."""
        return self.add("Cast", value, to=self._onnx.TensorProto.DOUBLE)

    def input(self, name: str, *, text: bool = False, width: int | None = None) -> str:
        """Add an input of shape (n,) or (n, width), and return it with a column for its features."""
        kind = self._onnx.TensorProto.STRING if text else self._onnx.TensorProto.DOUBLE
        shape = ["n"] if width is None else ["n", width]
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, kind, shape))
        return name if width is not None else self.add("Unsqueeze", name, self.constant([1], np.int64))

    def output(self, name: str, *, dtype: Any, width: int | None = None) -> None:
        """Say that a result leaves the graph."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        shape = ["n"] if width is None else ["n", width]
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, kind, shape))

    def model(self, facts: dict[str, str]) -> Any:
        """Return the whole, with facts for people."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "tacit", self._inputs, self._outputs, self._constants)
        domains = [helper.make_opsetid(domain, version) for domain, version in _OPSET.items()]
        made = helper.make_model(graph, opset_imports=domains, ir_version=_IR, producer_name="tacit")
        helper.set_model_props(made, facts)
        return made


def _features(graph: _Graph, model: TrainedModel) -> str:
    """Add the encoding of the columns; the result has shape (n, d)."""
    if model.columns is None:
        return graph.input("features", width=model.n_features_in_)
    blocks = [_column(graph, name, column) for name, column in used_columns(model.columns.columns).items()]
    return graph.add("Concat", *blocks, axis=1)


def _column(graph: _Graph, name: str, column: Feature) -> str:
    """Add the encoding of one column, as `tacit.data.encode_columns` does it."""
    if isinstance(column, Categorical):
        return _categories(graph, name, column)
    cells = graph.input(name)
    if isinstance(column, Unbounded):
        return _as_it_stands(graph, cells, column)
    missing = graph.add("IsNaN", cells)
    middle = (column.lower + column.upper) / 2
    stand_in = middle if isinstance(column.missing, str) else column.missing
    filled = graph.add("Where", missing, graph.constant(stand_in), cells)
    clipped = graph.add(
        "Min", graph.add("Max", filled, graph.constant(column.lower)), graph.constant(column.upper)
    )
    from_lower = graph.add("Sub", clipped, graph.constant(column.lower))
    unit = graph.add("Div", from_lower, graph.constant((column.upper - column.lower) / 2))
    scaled = graph.add("Sub", unit, graph.constant(1.0))
    if column.missing != "indicator":
        return scaled
    return graph.add("Concat", scaled, graph.double(missing), axis=1)


def _as_it_stands(graph: _Graph, cells: str, column: Unbounded) -> str:
    """Add a column without bounds; what is missing or infinite is NaN, or what the description says."""
    missing = graph.add("IsNaN", graph.add("Sub", cells, cells))  # infinity less itself is no number
    indicated = column.missing == "indicator"
    stand_in = column.missing if isinstance(column.missing, float) else 0.0 if indicated else np.nan
    filled = graph.add("Where", missing, graph.constant(stand_in), cells)
    return graph.add("Concat", filled, graph.double(missing), axis=1) if indicated else filled


def _categories(graph: _Graph, name: str, column: Categorical) -> str:
    """Add the encoding of a column of categories: their positions, and what these become."""
    k = len(column.categories)
    places = {str(category).strip(): place for place, category in enumerate(column.categories)}
    places |= {old.strip(): places[str(new).strip()] for old, new in column.merge.items()}
    if column.missing is not None:
        stand_in = k if column.missing == "category" else places[str(column.missing).strip()]
        places = dict.fromkeys(MISSING, stand_in) | places
    codes = graph.add(
        "LabelEncoder",
        graph.input(name, text=True),
        keys_strings=list(places),
        values_int64s=list(places.values()),
        default_int64=-1,
    )
    indicated = [k] if column.missing == "category" else []
    if not column.ordinal:
        return graph.double(graph.add("Equal", codes, graph.constant([[*range(k), *indicated]], np.int64)))
    middle = (k - 1) / 2
    known = graph.add("Equal", codes, graph.constant([list(range(k))], np.int64))
    spread = graph.constant([[place / middle - 1] for place in range(k)])
    value = graph.add("MatMul", graph.double(known), spread)
    if not indicated:
        return value
    missing = graph.double(graph.add("Equal", codes, graph.constant([indicated], np.int64)))
    return graph.add("Concat", value, missing, axis=1)


def _scores(graph: _Graph, model: TrainedModel, features: str) -> str:
    """Add the map of features and the product with the weights; the result has shape (n, outputs)."""
    mapped, weights = model.fitted.features, model.fitted.w.reshape(model.fitted.features.size, -1)
    if not isinstance(mapped, FeatureMap):  # raw ones
        return graph.add(
            "Add", graph.add("MatMul", features, graph.constant(weights[:-1])), graph.constant(weights[-1])
        )
    clipped = graph.add(
        "Min", graph.add("Max", features, graph.constant(mapped.lower)), graph.constant(mapped.upper)
    )
    centred = graph.add("Sub", clipped, graph.constant(mapped.centre))
    rows = graph.add("Mul", centred, graph.constant(mapped.scale))
    product = graph.add("MatMul", rows, graph.constant(weights[:-1]))
    scores = graph.add("Add", product, graph.constant(weights[-1] * mapped.constant))
    if not mapped.unit_rows and mapped.scaling is None:
        return graph.add("Div", scores, graph.constant(mapped.longest))
    squares = graph.add("ReduceSum", graph.add("Mul", rows, rows), graph.constant([1], np.int64), keepdims=1)
    length = graph.add("Sqrt", graph.add("Add", squares, graph.constant(mapped.constant**2)))
    if not mapped.unit_rows:
        length = graph.add("Max", length, graph.constant(mapped.longest))
    return graph.add("Div", scores, length)


def _predictions(graph: _Graph, model: TrainedModel, scores: str) -> None:
    """Add what leaves the graph."""
    flat = graph.constant([-1], np.int64)
    if model.fitted.classes is None:
        graph.add("Reshape", _numbers(graph, model, scores), flat, output="prediction")
        graph.output("prediction", dtype=np.float64)
        return
    classes, margins = model.fitted.classes, bool(model.fitted.why_no_probabilities)
    if len(classes) > 2:
        graph.add("Softmax", scores, axis=1, output="probabilities")
        picked = graph.add("ArgMax", scores, axis=1, keepdims=0)
    else:
        if margins:
            graph.add("Reshape", scores, flat, output="scores")
        else:
            positive = graph.add("Sigmoid", scores)
            negative = graph.add("Sub", graph.constant(1.0), positive)
            graph.add("Concat", negative, positive, axis=1, output="probabilities")
        above = graph.add("Greater", scores, graph.constant(0.0))
        picked = graph.add("Reshape", graph.add("Cast", above, to=7), flat)  # 7: whole numbers of 64 bits
    whole = np.issubdtype(classes.dtype, np.integer)
    kind = np.int64 if whole else object
    names = graph.constant(classes if whole else [str(one) for one in classes], kind)
    graph.add("Gather", names, picked, output="label")
    graph.output("label", dtype=kind)
    if margins:
        graph.output("scores", dtype=np.float64)
    else:
        graph.output("probabilities", dtype=np.float64, width=len(classes))


def _numbers(graph: _Graph, model: TrainedModel, scores: str) -> str:
    """Add what makes predictions of scores, in the units of the target."""
    link = model.fitted.link
    if link is not None:
        least = graph.add("Min", scores, graph.constant(link.largest_score))
        return graph.add("Mul", graph.add("Exp", least), graph.constant(link.unit))
    if model.fitted.target is None:
        return scores
    low, high = model.fitted.target
    moved = graph.add("Add", scores, graph.constant(1.0))
    return graph.add("Add", graph.add("Mul", moved, graph.constant((high - low) / 2)), graph.constant(low))


def _check(data: bytes, model: TrainedModel) -> None:
    """Refuse a graph with which ONNX Runtime does not predict what the model does."""
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # not what it could tidy up
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    given, X = _probes(model)
    found = session.run(None, given)[-1]
    wanted = model.predict(X) if model.task == "regression" else _of_classes(model, X)
    if not np.allclose(found, np.asarray(wanted), rtol=_AGREE, atol=_AGREE, equal_nan=True):
        raise TacitError("the ONNX graph does not predict what the model does; please report this.")


def _of_classes(model: TrainedModel, X: Any) -> Any:
    """Return what leaves the graph of a classifier beside the label."""
    return model.decision_function(X) if model.fitted.why_no_probabilities else model.predict_proba(X)


def _probes(model: TrainedModel) -> tuple[dict[str, Array], Any]:
    """Return made-up records as inputs of the graph, and as the model takes them."""
    rng = simulated(0, "records for an ONNX graph")
    if model.columns is None:
        X = rng.uniform(-2, 2, size=(_PROBES, model.n_features_in_))
        return {"features": X}, X
    given: dict[str, Array] = {}
    read: dict[str, Any] = {}
    for name, column in used_columns(model.columns.columns).items():
        if isinstance(column, Categorical):
            texts = [*map(str, column.categories), *column.merge, "", "NA", "\x00none of them"]
            given[name] = read[name] = rng.choice(np.array(texts, dtype=object), _PROBES)
            continue
        if isinstance(column, Unbounded):
            given[name] = rng.standard_normal(_PROBES)
            given[name][:4] = np.nan, np.inf, -np.inf, 1e9
            read[name] = given[name]
            continue
        width = column.upper - column.lower
        given[name] = rng.uniform(column.lower - width / 4, column.upper + width / 4, _PROBES)
        if isinstance(column, Date):
            days = np.rint(given[name] * DAYS_OF_A_YEAR)
            given[name] = days / DAYS_OF_A_YEAR
            read[name] = [(column.reference - timedelta(day)).strftime(column.format) for day in days]
            continue
        given[name][rng.random(_PROBES) < 0.2] = np.nan
        read[name] = given[name]
    return given, pd.DataFrame(read)
