"""Reports of frequencies: estimates with the intervals that hold all of them, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from tacit.frequencies import Frequencies, heavy_of, project
from tacit.numerics import IntArray
from tacit.privacy import TrustModel, Unit
from tacit.reports.answers import AnswerPage, PageFigure, PagePart, Tile, price_tiles
from tacit.reports.drawing import svg_of
from tacit.reports.interval_plot import draw_intervals

__all__ = ["draw_frequencies", "frequency_page"]

_MOST_DRAWN = 40
_SEES = {
    TrustModel.CENTRAL: "Whoever holds the table adds noise to every count before it is shown: that limits "
    "what anybody can learn about one {unit}.",
    TrustModel.SHUFFLE: "Every {unit} is randomised a little before anything is sent, and a shuffler hides "
    "whose message is whose: that limits what anybody who sees the messages can learn about one {unit}.",
    TrustModel.LOCAL: "Every {unit} is randomised by itself before anything is sent: that limits what "
    "anybody, the server included, can learn about it.",
    TrustModel.AGGREGATE: "Nobody sees more than the sum of all messages, which holds noise of everybody: "
    "that limits what anybody can learn about one {unit}.",
}


def draw_frequencies(
    names: Sequence[str],
    found: Frequencies,
    order: IntArray,
    *,
    confidence: float,
    threshold: float | None,
    title: str = "",
) -> Figure:
    """Draw estimates with their intervals, the first 40; grey is what may not be held at all.

    Args:
        names: Of all values, printable.
        found: The answer.
        order: Which values are shown, in order.
        confidence: That none of all intervals misses.
        threshold: Of heavy hitters; None where all are shown.
        title: Above a picture that stands alone.
    """
    shown = order[:_MOST_DRAWN]
    return draw_intervals(
        [names[value] for value in shown.tolist()],
        found.estimates[shown],
        found.band.intervals[shown],
        colour=found.query.trust.value,
        label=f"share; all intervals hold at once with probability {100 * confidence:.10g} %",
        percent=True,
        threshold=threshold,
        faded=(found.band.lower[shown] <= 0).tolist(),
        title=title,
    )


def frequency_page(
    names: Sequence[str],
    found: Frequencies,
    order: IntArray,
    *,
    table: str,
    column: str,
    confidence: float,
    projection: str,
    threshold: float | None = None,
) -> AnswerPage:
    """Return the report of the frequencies of a column.

    Args:
        names: Of all values, printable.
        found: The answer.
        order: Which values are shown, in order.
        table: Where they come from.
        column: Its name.
        confidence: That none of all intervals misses.
        projection: How estimates are made consistent.
        threshold: Of heavy hitters; None where all are shown.
    """
    query, price = found.query, found.guarantee
    unit = price.neighbours.unit
    estimates = project(found.estimates, projection)
    drawn = min(len(order), _MOST_DRAWN)
    figure = draw_frequencies(names, found, order, confidence=confidence, threshold=threshold)
    caption = (
        f"Dots are the unbiased estimates; bars hold the shares of all {query.k:,} values at once, with "
        f"probability {100 * confidence:.10g} % over the noise. Grey: may be held by nobody."
    )
    if threshold is not None:
        caption += f" Only values that are above {100 * threshold:g} % beyond doubt are shown."
    if drawn < len(order):
        caption += f" The {drawn} most frequent of {len(order):,} are drawn."
    rows = [
        (names[k], f"{100 * estimates[k]:.3g} %", _per_cent(found.band.lower[k], found.band.upper[k]))
        for k in order[:_MOST_DRAWN].tolist()
    ]
    made = "as they are, unbiased" if projection == "none" else f"made consistent ({projection})"
    return AnswerPage(
        title=f"How often each {column} is held",
        subtitle=f"{table}: {query.n:,} {unit.plural}.",
        claim=_SEES[query.trust].format(unit=unit.value),
        secret=f"one {unit.value}",
        guarantees=[price] if found.guarantee_alone is None else [price, found.guarantee_alone],
        rehearsal="The noise came from a known seed, so this answer itself protects nobody.",
        tiles=_tiles(found, len(order), threshold),
        parts=(
            PagePart(
                title="Heavy hitters" if threshold is not None else "Frequencies",
                figures=[
                    PageFigure(
                        title=f"Shares of {column}",
                        picture=svg_of(figure, "Estimated shares with their intervals, the largest on top."),
                        caption=caption,
                    )
                ]
                if rows
                else [],
                text="" if rows else "No value is above the threshold beyond doubt.",
            ),
            PagePart(
                title="In numbers",
                text=f"Shares are {made}; intervals are those of the unbiased estimates. The JSON "
                "statement has all values.",
                columns=(column, "share", f"{100 * confidence:.10g} % for all of them"),
                rows=rows,
            ),
        ),
        protects=(
            f"Each single {unit.value}: which value it holds.",
            f"Against {price.observer}.",
        ),
        limits=_limits(unit),
        check="tacit frequencies ... --json > statement.json\ntacit account verify statement.json",
    )


def _tiles(found: Frequencies, shown: int, threshold: float | None) -> list[Tile]:
    """Return what an answer is about, what it costs, and how exact it is.

    Args:
        found: The answer.
        shown: How many values are.
        threshold: Of heavy hitters; None where all are shown.
    """
    query, price = found.query, found.guarantee
    unit, error = price.neighbours.unit, (query.mse / query.k) ** 0.5
    tiles = [
        Tile(label=unit.plural, value=f"{query.n:,}", note=f"{query.k:,} possible values"),
        *price_tiles(price),
        Tile(label="error of one share", value=f"{100 * error:.2g} %", note="root mean square, by the noise"),
        Tile(
            label=f"sent by a {unit.value}",
            value="nothing" if query.trust is TrustModel.CENTRAL else f"{query.message_bits:,} bits",
            note=query.mechanism,
        ),
    ]
    if threshold is not None:
        alarm = heavy_of(found.estimates, found.band, threshold).false_alarm
        tiles.append(
            Tile(label="heavy hitters", value=f"{shown:,}", note=f"all right but for {100 * alarm:.3g} %")
        )
    return tiles


def _limits(unit: Unit) -> tuple[str, ...]:
    """Return what is not protected."""
    several = ("A person with several records, who is protected that many times less.",)
    return (
        f"The number of {unit.plural} and the list of possible values: both are public.",
        "What is true of everybody: the shares are what the answer is about.",
        *(several if unit is Unit.RECORD else ()),
        "Other releases from the same data add to the price.",
        "Sampling error: intervals are about these very records, not about those who were not asked.",
    )


def _per_cent(low: float, high: float) -> str:
    """Return an interval in per cent."""
    return f"{100 * low:.3g} to {100 * high:.3g} %"
