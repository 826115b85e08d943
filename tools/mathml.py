"""For the site: formulas become MathML when it is built, which needs no script and no server."""

from __future__ import annotations

from typing import Any

from latex2mathml.converter import convert


def formula(source: str, *_: Any, **__: Any) -> str:
    """Return a fenced block of TeX as MathML, which browsers set by themselves."""
    return f'<div class="formula">{convert(source, display="block")}</div>'


def on_config(config: Any) -> Any:
    """Give the fences called `math` to `formula`; mkdocs calls this before it reads a page."""
    fences = config["mdx_configs"].setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "math", "class": "math", "format": formula})
    return config
