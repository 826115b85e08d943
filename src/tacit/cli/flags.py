"""Commands of one settings object: its fields are the flags, declared once and read by name and type."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["as_typed", "takes"]

Flags = TypeVar("Flags", bound="DataclassInstance")


def takes(kind: type[Flags]) -> Callable[[Callable[[Flags], None]], Callable[..., None]]:
    """Make a command of a function of one dataclass, which typer reads as if every field were a parameter.

    Args:
        kind: Its fields are annotated as parameters of a command are; one without a default is required.
    """
    types = get_type_hints(kind, include_extras=True)
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=types[field.name],
        )
        for field in fields(kind)
    ]

    def decorate(run: Callable[[Flags], None]) -> Callable[..., None]:
        @functools.wraps(run)
        def command(**given: Any) -> None:
            run(kind(**given))

        command.__annotations__ = types
        vars(command)["__signature__"] = inspect.Signature(parameters)
        return command

    return decorate


def as_typed(text: str, names: Collection[str]) -> str:
    """Return a text with options of these names spelled as one types them, not as Python does."""
    # What stands in quotes, or in code, is somebody's value.
    return re.sub(
        r"(?<![\w'\"`.-])[a-z]+(?:_[a-z]+)+(?![\w'\"`(])",
        lambda word: word[0].replace("_", "-") if word[0] in names else word[0],
        text,
    )
