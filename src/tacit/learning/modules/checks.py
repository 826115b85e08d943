"""What cannot be an objective of records, found before anything is spent, with the reason and the layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from tacit.errors import ParameterError
from tacit.learning.architecture import read_shape
from tacit.learning.modules.flat import FlatModule
from tacit.learning.modules.hooked import HookedModule

__all__ = [
    "check_autocast",
    "check_device",
    "check_factors",
    "check_module",
    "check_record_shape",
    "check_rows",
    "probe_records",
]

_PROBED = 5
"""Records that are tried."""


def check_device(device: str) -> Any:
    """Return a device, or refuse one that this machine has not.

    Raises:
        ParameterError: It has none of that name.
    """
    has = ["cpu"] + [f"cuda:{k}" for k in range(torch.cuda.device_count())]
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = None
    name = "" if found is None else str(found)
    if found is None or name not in (*has, "cuda"[: 4 * (len(has) > 1)]):
        raise ParameterError(
            f"device must be one of those of this machine, {', '.join(has)}; got {device!r:.40}."
        )
    return found


def check_module(module: Any) -> None:
    """Refuse a module that has nothing to train, or whose records meet in a layer.

    Raises:
        ParameterError: It is no module; or one of its layers mixes records, or changes weights as it goes.
    """
    if not isinstance(module, nn.Module):
        raise ParameterError(f"module must be a torch.nn.Module, got {type(module).__name__}.")
    for name, layer in module.named_modules():
        here = f"module: the layer {name or 'itself'!r} ({type(layer).__name__})"
        if isinstance(layer, nn.modules.batchnorm._NormBase) and not isinstance(
            layer, nn.modules.instancenorm._InstanceNorm
        ):
            raise ParameterError(
                f"{here} normalises by means over the records of a batch, so that no record has a gradient "
                "of its own; use GroupNorm, LayerNorm or InstanceNorm."
            )
        if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
            if layer.scale_grad_by_freq:
                raise ParameterError(
                    f"{here} scales gradients by counts over a batch; make it without scale_grad_by_freq."
                )
            if layer.max_norm is not None:
                raise ParameterError(
                    f"{here} changes its weights as it reads them; make it without max_norm."
                )
    parameters = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
    if not parameters:
        raise ParameterError("module must have parameters that need a gradient, got none.")
    for name, one in parameters:
        if nn.parameter.is_lazy(one):
            raise ParameterError(
                f"module: the parameter {name!r} has no shape yet; give the layer its sizes, or run "
                "the module once before."
            )
        if one.is_meta:
            raise ParameterError(
                f"module: the parameter {name!r} has no numbers yet, on the device 'meta'; make the module "
                "on 'cpu'."
            )
    kinds = {one.dtype for _, one in parameters}
    if len(kinds) > 1 or not kinds <= {torch.float32, torch.float64}:
        found = ", ".join(sorted(map(str, kinds)))
        raise ParameterError(
            f"module must have parameters all float32 or all float64, got {found}: call module.float(), and "
            "ask for autocast=True where layers are to compute in bfloat16."
        )


def probe_records(flat: FlatModule, *, tokens: int | None, n: int = _PROBED) -> Any:
    """Return random records of the shape that the module takes: public, and the same at every call."""
    source = torch.Generator().manual_seed(20)
    if tokens is not None:
        found = torch.randint(tokens, (n, *flat.shape), generator=source)
    else:
        found = torch.randn((n, *flat.shape), generator=source).to(flat.dtype)
    return found.to(flat.device)


def check_record_shape(module: Any, shape: Sequence[int] | None) -> tuple[int, ...]:
    """Return the shape of a record: as it is given, or as the first layer takes it.

    Raises:
        ParameterError: None is given, and the first layer is not linear.
    """
    if shape is not None:
        return read_shape(shape)
    first = next(
        (one for one in module.modules() if next(one.parameters(recurse=False), None) is not None), None
    )
    if type(first).__name__ != "Linear":
        raise ParameterError(
            "shape must be given, the shape of one record, unless the first layer is linear."
        )
    return (int(first.in_features),)  # type: ignore[union-attr]


def check_rows(flat: FlatModule, records: Any) -> Any:
    """Return predictions, or refuse a module that does not say something of each record by itself.

    Raises:
        ParameterError: It does not run on records of that shape; it draws; or another record moves what it
            says of one.
    """
    try:
        first = flat.predictions(records.clone())
        again = flat.predictions(records.clone())
    except (Exception, SystemExit) as error:
        raise ParameterError(
            f"module does not run on records of shape {_record_shape(flat)}: {type(error).__name__}: "
            f"{' '.join(str(error).split()):.200}{_whole_numbers(flat)}"
        ) from error
    if first.ndim == 0 or len(first) != len(records):
        raise ParameterError(
            f"module must return one row per record, got shape {tuple(first.shape)} for {len(records)}."
        )
    if not torch.equal(first, again):
        raise ParameterError(
            "module must say the same of the same records each time: it draws random numbers."
        )
    for k, other in ((0, 0.0), (0, 50.0), (0, -50.0), (len(records) - 1, -3.0)):
        moved = records.clone()
        swapped = flat.tokens or not other
        moved[k] = records[(k + 1) % len(records)] if swapped else other * records[k] + 1
        kept = [i for i in range(len(records)) if i != k]
        try:
            again = flat.predictions(moved.clone())
        except (Exception, SystemExit):  # noqa: BLE001, S112 - it may not be defined there
            continue
        if not torch.equal(again[kept], first[kept]):
            raise ParameterError(
                f"module: {_where_mixed(flat, records, moved, kept)} mixes the records of a batch: "
                "another record changes what it says of one, so that none has a gradient of its own."
            )
    few = flat.predictions(records[:2].clone())
    if few.shape[1:] != first.shape[1:] or not torch.allclose(few, first[:2], rtol=1e-3, atol=1e-4):
        raise ParameterError("module must say the same of a record whatever the number of records.")
    return first


def _record_shape(flat: FlatModule) -> tuple[int, ...]:
    """Return the shape of a record as the module of a person takes it."""
    return getattr(flat.module, "record_shape", flat.shape)


def _whole_numbers(flat: FlatModule) -> str:
    """Return what is missing where a module looks up records that are numbers."""
    if not any(isinstance(layer, nn.Embedding | nn.EmbeddingBag) for layer in flat.module.modules()):
        return ""
    if flat.tokens:
        return "; tokens must be how many whole numbers the embedding has, at most"
    if hasattr(flat.module, "record_shape"):
        return (
            "; features of an estimator are numbers about 1, and an embedding takes whole ones: "
            "PrivateOptimizer and torch_objective have tokens= for them"
        )
    return "; records of an embedding are whole numbers: give tokens="


def _where_mixed(flat: FlatModule, records: Any, moved: Any, kept: list[int]) -> str:
    """Return the first layer that another record moves."""
    seen: list[list[tuple[str, Any, str]]] = []

    def watch(name: str) -> Callable[..., None]:
        def note(layer: Any, _inputs: Any, output: Any) -> None:
            said = output[0] if isinstance(output, tuple) and output else output
            kind = type(layer).__name__
            if getattr(layer, "batch_first", True) is False:
                kind += " without batch_first=True"
            if isinstance(said, torch.Tensor):
                seen[-1].append((name, said, kind))

        return note

    hooks = [layer.register_forward_hook(watch(name)) for name, layer in flat.module.named_modules()]
    try:
        for each in (records, moved):
            seen.append([])
            flat.predictions(each.clone())
    finally:
        for hook in hooks:
            hook.remove()
    for (name, first, kind), (_, second, _) in zip(*seen, strict=False):
        whole = first.shape == second.shape and len(first) == len(records) if first.ndim else False
        if not whole or not torch.equal(first[kept], second[kept]):
            return f"the layer {name!r} ({kind})" if name else f"{kind} itself"
    return "it"


def check_factors(network: HookedModule, records: Any, slopes_of: Callable[[Any], Any]) -> int:
    """Compare rows with plain gradients of single records, and leave to `torch.func` what differs.

    A layer that is called in another way than by its own type, or whose records are not in the first
    dimension, is not what it seems to be.

    Returns:
        Numbers that one record takes, about.
    """
    given, n = records.clone(), len(records)
    _, calls = network.called(given)
    network.rewrites = not torch.equal(given, records)
    odd = [layer for layer, inputs, _ in calls if inputs.ndim < 2 or len(inputs) != n]
    network.unknow(name for name, one in network.flat.named.items() if _is_of(one, odd))
    slopes = slopes_of(network.flat.predictions(records.clone()))
    try:
        plain = [network.flat.plain(records[i : i + 1].clone(), slopes[i : i + 1]) for i in range(n)]
    except RuntimeError as error:
        raise ParameterError(
            "module must have a derivative in its parameters: leave detach(), no_grad() and whole numbers "
            f"out of it; {' '.join(str(error).split()):.200}."
        ) from error
    network.unknow(_far(network, records, slopes, plain, few=1.0))
    # Now rows are those of plain differentiation: what is far from them is no gradient of one record. They
    # are looked at as they are added up, a bias with its weight, so that none counts twice.
    for name in _far(network, records, slopes, plain, few=30.0, together=True):
        raise ParameterError(
            f"module: the gradient of one record in {name!r} is another alone than in a batch, so that it "
            "cannot be clipped."
        )
    kept = sum(int(inputs.numel()) for _, inputs, _ in calls) // n
    return 4 * kept + sum(int(network.flat.named[name].numel()) for name in network.others)


def check_autocast(network: HookedModule, records: Any, slopes_of: Callable[[Any], Any]) -> None:
    """Refuse autocast where layers do not go back in it; a loop over records is taken where that does.

    Raises:
        ParameterError: Autocast was asked for, and PyTorch cannot differentiate the module in it.
    """
    if not network.flat.autocast:
        return
    try:
        _rows(network, records, slopes_of(network.flat.predictions(records.clone())), together=True)
    except (RuntimeError, NotImplementedError, ValueError) as error:
        raise ParameterError(
            "autocast must be False for this module: PyTorch does not differentiate it in bfloat16: "
            f"{' '.join(str(error).split()):.120}."
        ) from error


def _is_of(parameter: Any, layers: Sequence[Any]) -> bool:
    """Whether a parameter is one of some layers'."""
    return any(one is parameter for layer in layers for one in layer.parameters())


def _far(
    network: HookedModule,
    records: Any,
    slopes: Any,
    plain: list[dict[str, Any]],
    *,
    few: float,
    together: bool = False,
) -> list[str]:
    """Return the parameters whose rows are further from plain gradients than a few roundings."""
    rounding = few * (1e-12 if network.flat.dtype == torch.float64 else 1e-6)
    largest = max(float(each.abs().max()) for one in plain for each in one.values())
    whole, found = _rows(network, records, slopes, together=together), []
    for name, place in network.flat.places.items():
        expected = torch.stack([one[name].flatten() for one in plain])
        near = rounding * (1e3 * expected.abs().max() + largest)
        if not bool((whole[:, place] - expected).abs().max() <= near):
            found.append(name)
    return found


def _rows(network: HookedModule, records: Any, slopes: Any, *, together: bool) -> Any:
    """Return all rows, shape (n, size), NaN where they have another shape.

    What `torch.func` does not do goes one record at a time.
    """

    def back() -> Any:
        return network.back(records.clone(), lambda _: slopes, together=together)

    try:
        parts = back()
    except (RuntimeError, NotImplementedError, ValueError):
        if not network.others or not network.by_vmap:
            raise
        network.by_vmap = False
        parts = back()
    found = slopes.new_zeros(len(records), network.flat.size)
    for name, part in parts.items():
        rows, own = part.rows(slice(None)), found[:, network.place(name, part)]
        own += rows if rows.shape == own.shape else torch.nan
    return found
