"""For the site: files of the repository are pages too, whose links to `docs/` start where the page is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent.parent
_WHOLE = re.compile(r'^--8<-- "([\w.]+)"$', re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put files of the repository in their place; mkdocs calls this for every page of `docs/` itself."""
    return _WHOLE.sub(lambda name: _from_docs((_ROOT / name[1]).read_text(encoding="utf-8")), markdown)


def _from_docs(text: str) -> str:
    """Return a text of the repository whose links start in `docs/`, where its page is."""
    return text.replace("](docs/", "](")
