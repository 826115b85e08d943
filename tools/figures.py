"""For the site: a picture is a link to itself, as many panels are small beside text and large in a window."""

from __future__ import annotations

import re
from typing import Any

_PICTURE = re.compile(r'(?<!">)<img alt="[^"]*" src="([^":]*)" />')


def on_page_content(html: str, **_: Any) -> str:
    """Make every picture that is a file of the site a link to it; mkdocs calls this for every page."""
    return _PICTURE.sub(r'<a href="\1" title="in full size">\g<0></a>', html)
