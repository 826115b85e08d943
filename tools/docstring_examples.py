"""For the site: read the section `Example:` of a docstring as the examples it holds, not as a note."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_HEADER = re.compile(r"^([ \t]*)Example:[ \t]*$", re.MULTILINE)


class DocstringExamples(Extension):  # type: ignore[misc]
    """Griffe knows `Examples:` only; anything else it would set as prose, `>>>` as nested quotations."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rename the section in one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = _HEADER.sub(r"\1Examples:", obj.docstring.value)
