"""Options of an algorithm as a person writes them; each becomes what its field holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Union, get_args, get_type_hints

import msgspec

from tacit.errors import ParameterError, shown
from tacit.federation import Batch, Disjoint, Fixed, Full, Poisson
from tacit.federation.batches import BATCH_WORDS, read_batch

__all__ = ["read_option"]

_hints = lru_cache(maxsize=256)(get_type_hints)  # every look compiles each annotation


def read_option(kind: type[msgspec.Struct], name: str, value: object) -> object:
    """Return a value for a field of a struct, by the type that the field declares.

    Args:
        kind: The struct, such as an algorithm.
        name: One of its fields.
        value: What the field holds, or what TOML says for it: a list for a tuple, a text for a member of an
            enumeration, a table `{batch = "fixed", size = 8}` for a tagged struct, or only its tag where no
            other field is needed. Batches are also numbers, as `read_batch` says.

    Returns:
        The value; where its type has no struct and it does not fit, it is left for the struct to refuse.

    Raises:
        ParameterError: A struct is declared, and the value stands for none that is allowed.
    """
    hint = _hints(kind)[name]
    structs = _structs(hint)
    if value is None or isinstance(value, structs):
        return value
    if not structs:
        try:
            return msgspec.convert(value, hint)
        except msgspec.ValidationError:
            return value
    batches = set(structs) <= set(get_args(Batch))
    if batches and isinstance(value, int | float) and not isinstance(value, bool):
        drawn = next(one for one in (Fixed, Disjoint, Poisson) if one in structs)
        return read_batch(name, value, kind=drawn)
    tag_field = structs[0].__struct_config__.tag_field
    table = {tag_field: value} if isinstance(value, str) and tag_field is not None else value
    reason = ""
    if isinstance(table, Mapping):
        try:
            return msgspec.convert(dict(table), Union[structs])  # noqa: UP007 - known when it runs
        except msgspec.ValidationError as error:
            if isinstance(error.__cause__, ParameterError):
                reason = f": {str(error.__cause__).rstrip('.')}"
    numbers = BATCH_WORDS if Full in structs else BATCH_WORDS.removeprefix("'full', ")
    words = [numbers] if batches else [repr(s.__struct_config__.tag) for s in structs if _bare(s)]
    tables = [_table(struct) for struct in structs if struct.__struct_fields__]
    raise ParameterError(f"{name} must be {', or '.join(words + tables)}, got {shown(value)}{reason}.")


def _structs(hint: Any) -> tuple[type[msgspec.Struct], ...]:
    """Return the structs that an annotation allows."""
    kinds = get_args(hint) or (hint,)
    return tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct))


def _bare(struct: type[msgspec.Struct]) -> bool:
    """Return whether a struct can be made without any field."""
    try:
        struct()
    except (TypeError, ParameterError):
        return False
    return True


def _table(struct: type[msgspec.Struct]) -> str:
    """Return a table of TOML as a template, such as {batch = "poisson", rate}."""
    tag, tag_field = struct.__struct_config__.tag, struct.__struct_config__.tag_field
    head = [] if tag_field is None else [f'{tag_field} = "{tag}"']
    return f"{{{', '.join([*head, *struct.__struct_fields__])}}}"
