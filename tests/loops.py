"""Grids of tiny cases as one test: what the runner spends on a test is far more than such a case takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every value in turn, as `pytest.mark.parametrize` would; a failure names its case.

    Args:
        names: Of one argument, or of several with commas between them; then every value is a tuple.
        values: Of the arguments.
    """
    split, cases = [name.strip() for name in names.split(",")], list(values)
    assert cases

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**others: Any) -> None:
            for value in cases:
                given = dict(zip(split, value if len(split) > 1 else (value,), strict=True))
                try:
                    test(**given, **others)
                except Exception as error:
                    error.add_note(f"of {given}")
                    raise

        known = inspect.signature(test)
        left = [one for name, one in known.parameters.items() if name not in split]
        run.__signature__ = known.replace(parameters=left)  # type: ignore[attr-defined] # asked for by pytest
        return run

    return decorated
