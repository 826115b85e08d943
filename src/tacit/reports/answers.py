"""The report of one answer: a page that needs nothing from outside, for people who have to decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version

from markupsafe import Markup

from tacit.privacy import Guarantee
from tacit.reports.html import percent_up, template
from tacit.reports.statement import guess_bound, odds
from tacit.reports.tables import format_delta, format_epsilon

__all__ = ["AnswerPage", "PageFigure", "PagePart", "Tile", "load_answer_page", "price_tiles", "render_answer"]

_TEMPLATE = "answer.html.j2"


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A number that is seen first.

    Attributes:
        label: What it is.
        value: The number, as people read it.
        note: A few words below.
    """

    label: str
    value: str
    note: str


@dataclass(frozen=True, kw_only=True)
class PageFigure:
    """A picture with words around it.

    Attributes:
        title: Above.
        picture: An `<svg>` element, as `tacit.reports.drawing.svg_of` makes it.
        caption: Below.
    """

    title: str
    picture: Markup
    caption: str


@dataclass(frozen=True, kw_only=True)
class PagePart:
    """A section: words, pictures, and a table.

    Attributes:
        title: Its heading.
        text: Below it; may be empty.
        figures: Side by side.
        columns: Names of the columns of the table.
        rows: Of the table; none is no table.
    """

    title: str
    text: str = ""
    figures: Sequence[PageFigure] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()


@dataclass(frozen=True, kw_only=True)
class AnswerPage:
    """What a report says; text is escaped where it is filled in.

    Attributes:
        title: What was asked.
        subtitle: A sentence on it.
        claim: The guarantee, in one sentence without symbols.
        secret: What an attacker wants to know, as in "two versions of one reward".
        guarantees: One for each observer, the first for whoever sees the answer; all of them hold together.
        rehearsal: What it means that the noise was seeded.
        tiles: Numbers that are seen first.
        parts: Sections.
        protects: What is protected.
        limits: What is not.
        check: A command that checks the guarantee; empty where there is no statement.
    """

    title: str
    subtitle: str
    claim: str
    secret: str
    guarantees: Sequence[Guarantee]
    rehearsal: str
    tiles: Sequence[Tile]
    parts: Sequence[PagePart]
    protects: Sequence[str]
    limits: Sequence[str]
    check: str = ""


def render_answer(page: AnswerPage, *, created: datetime) -> str:
    """Write a report as HTML.

    Args:
        page: What it says.
        created: When, in UTC.

    Returns:
        A page without scripts and without anything loaded from elsewhere.
    """
    first = page.guarantees[0]
    private = math.isfinite(first.epsilon)
    return template(_TEMPLATE).render(
        page=page,
        created=f"{created.day} {created:%B %Y, %H:%M} UTC",
        version=version("tacit"),
        private=private,
        simulated=private and first.simulated,
        guess=percent_up(guess_bound(first)) if private else "",
        assumptions=list(dict.fromkeys(clause for one in page.guarantees for clause in one.assumptions)),
        sentences=[str(one) for one in page.guarantees],
    )


def load_answer_page() -> None:
    """Load the page that is filled in, before anything is spent on what it will show."""
    template(_TEMPLATE)


def price_tiles(price: Guarantee) -> tuple[Tile, ...]:
    """Return the tiles of a price."""
    if not math.isfinite(price.epsilon):
        return (Tile(label="epsilon", value="none", note="nothing is claimed"),)
    return (
        Tile(label="epsilon", value=format_epsilon(price.epsilon), note="smaller is more private"),
        Tile(label="delta", value=format_delta(price.delta), note=f"{odds(price.delta)} is left open"),
    )
