"""A figure is a picture that shows every line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.legend import Legend

from tacit.reports import draw_lines
from tacit.reports.drawing import ticks
from tacit.reports.figures import _apart


def test_names_of_points_of_a_logarithmic_axis_are_short() -> None:
    assert _apart([0.073837, 0.157645, 1.06505, 13.16]) == ["0.0738", "0.158", "1.065", "13.16"]
    assert _apart([1e-5, 1.3e-5, 12_800]) == ["1e-05", "", "12800"]


def test_ticks_tell_close_shares_apart() -> None:
    beside = ticks(percent=True)
    assert [beside(share, 0) for share in (0.8512, 0.8514, 0.07, 0.1 + 0.2)] == [
        "85.12 %", "85.14 %", "7 %", "30 %",
    ]  # fmt: skip


def test_every_line_is_drawn(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"m": name, "eps": eps, "err": 0.1 * k + (eps or 0) / 100, "se": 0.01}
        for k, name in enumerate(("a", "b"))
        for eps in (None, 1.0, 10.0)
    ]
    for count in (3, 6):
        draw_lines(
            rows[:count],
            tmp_path / f"{count}.png",
            x="eps",
            y="err",
            error="se",
            line="m",
            log_x=True,
            title="t",
        )
    one, two = (imread(tmp_path / f"{count}.png")[..., :3] for count in (3, 6))
    # The second colour (vermilion) is in the second picture only.
    vermilion = [abs(p - [0.835, 0.369, 0.0]).max(axis=-1).min() for p in (one, two)]
    assert vermilion[1] < 0.02 < vermilion[0]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved while a test runs."""
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(self: Figure, *args: object, **options: object) -> None:
        figures.append(self)
        save(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures


def _draw(
    panels: Mapping[str, Sequence[str]], path: Path, *, xs: Sequence[float] = (1.0, 10.0), log_x: bool = False
) -> None:
    """Draw lines of these names in these panels."""
    rows: list[dict[str, object]] = [
        {"m": name, "eps": eps, "err": eps, "panel": panel}
        for panel, names in panels.items()
        for name in names
        for eps in xs
    ]
    draw_lines(rows, path, x="eps", y="err", line="m", panel="panel", log_x=log_x, title="t")


def _looks(axes: Axes) -> dict[str, tuple[object, ...]]:
    """Return colour, marker and dash of the lines of a panel, by their names."""
    found: dict[str, tuple[object, ...]] = {}
    for bars in axes.containers:
        assert isinstance(bars, ErrorbarContainer)
        line = bars.lines[0]
        found[str(bars.get_label())] = (line.get_color(), line.get_marker(), line.get_linestyle())
    return found


def _names(legend: Legend | None) -> list[str]:
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_a_line_looks_the_same_in_every_panel_and_one_legend_names_it(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    # The second panel begins with a line that the first does not have.
    _draw({"1": "abd", "2": "cbd", "3": "db"}, tmp_path / "f.png")
    first, second, third = map(_looks, drawn[0].axes)
    assert list(second) == ["c", "b", "d"]
    assert len({*first.values(), *second.values()}) == 4
    for other in (second, third):
        assert all(other[name] == first[name] for name in "bd")
    (legend,) = drawn[0].legends
    assert _names(legend) == ["a", "b", "d", "c"]
    assert [axes.get_legend() for axes in drawn[0].axes] == [None] * 3
    # The legend stands beside the panels.
    assert legend.get_window_extent().x0 > max(axes.get_window_extent().x1 for axes in drawn[0].axes)


def test_panels_without_a_line_in_common_have_a_legend_each(tmp_path: Path, drawn: list[Figure]) -> None:
    _draw({"1": "ab", "2": "cd"}, tmp_path / "f.png")
    assert not drawn[0].legends
    assert [_names(axes.get_legend()) for axes in drawn[0].axes] == [["a", "b"], ["c", "d"]]


def test_one_panel_has_its_legend_inside(tmp_path: Path, drawn: list[Figure]) -> None:
    _draw({"1": "ab"}, tmp_path / "f.png")
    (axes,) = drawn[0].axes
    legend = axes.get_legend()
    assert not drawn[0].legends
    assert _names(legend) == ["a", "b"]
    assert legend is not None
    assert axes.get_window_extent().x0 < legend.get_window_extent().x0
    assert legend.get_window_extent().x1 < axes.get_window_extent().x1


def test_a_reference_line_does_not_cross_the_legend(tmp_path: Path, drawn: list[Figure]) -> None:
    rows: list[dict[str, object]] = [{"x": x, "y": 1.0, "m": "a"} for x in (1, 2)]
    rows += [{"x": None, "y": 0.5, "m": "baseline"}]
    draw_lines(rows, tmp_path / "f.png", x="x", y="y", line="m", log_x=False, title="t")
    (legend,) = drawn[0].legends
    assert _names(legend) == ["a", "baseline"]
    assert legend.get_window_extent().x0 > drawn[0].axes[0].get_window_extent().x1


def test_nine_lines_and_more_look_different(tmp_path: Path, drawn: list[Figure]) -> None:
    _draw({"1": "abcdefghijklmnopqrstuvwxyz"}, tmp_path / "f.png")
    looks = list(_looks(drawn[0].axes[0]).values())
    assert len({colour for colour, _, _ in looks[:8]}) == 8
    assert len({marker for _, marker, _ in looks[:9]}) == 9
    assert len(set(looks)) == 26
    # The ninth shares its colour with the first, and nothing else.
    assert [mine == other for mine, other in zip(looks[8], looks[0], strict=True)] == [True, False, False]


@pytest.mark.parametrize(
    ("xs", "exact"), [((1, 3, 5, 7), True), ((1, 3, 5.5), False), (range(9), False), ((10, 20, 60, 80), True)]
)
def test_a_few_whole_numbers_are_the_ticks(
    xs: Sequence[float], exact: bool, tmp_path: Path, drawn: list[Figure]
) -> None:
    _draw({"1": "a"}, tmp_path / "f.png", xs=xs)
    axes = drawn[0].axes[0]
    assert (axes.get_xticks().tolist() == list(xs)) == exact
    if exact:
        assert [text.get_text() for text in axes.get_xticklabels()] == [str(x) for x in xs]


def test_names_of_points_do_not_run_into_each_other(tmp_path: Path, drawn: list[Figure]) -> None:
    xs = (0.03, 0.04, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    _draw({"1": "a"}, tmp_path / "f.png", xs=xs, log_x=True)
    axes = drawn[0].axes[0]
    assert axes.get_xticks().tolist() == list(xs)
    drawn[0].draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.get_xticklabels() if text.get_text()]
    assert len(boxes) == 5
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_many_panels_and_points_stay_a_small_file(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"m": f"line {k}", "eps": float(x), "err": math.sin(x / 9 + k + p), "panel": p}
        for p in range(7)
        for k in range(6)
        for x in range(60)
    ]
    path = tmp_path / "f.png"
    draw_lines(rows, path, x="eps", y="err", line="m", panel="panel", log_x=False, title="t")
    assert path.stat().st_size < 400_000
    assert imread(path).shape[1] > 1_200


def test_a_line_under_others_is_wider_than_they_are(tmp_path: Path, drawn: list[Figure]) -> None:
    heights = {"a": (0, 0, 0), "b": (0, 0, 1), "c": (0, 0, 2), "alone": (0, 3, 4)}
    rows = [{"x": x, "y": y, "l": name} for name, ys in heights.items() for x, y in enumerate(ys)]
    draw_lines(rows, tmp_path / "f.png", x="x", y="y", line="l", log_x=False, title="t", labels={"y": "why"})
    (axes,) = drawn[-1].axes
    lines = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
    widths = [one.lines[0].get_linewidth() for one in lines]
    assert widths[0] > widths[1] > widths[2] == widths[3]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "why")


def test_panels_may_differ_in_their_horizontal_axis(tmp_path: Path, drawn: list[Figure]) -> None:
    rows: list[dict[str, object]] = [
        {"m": "a", "at": x, "err": x, "panel": panel, "axis": f"axis of {panel}"}
        for panel in "abcdef"
        for x in (1.0, 2.0)
    ]
    options = {"x": "at", "y": "err", "line": "m", "panel": "panel", "log_x": False, "title": "t"}
    draw_lines(rows, tmp_path / "a.png", axis="axis", **options)  # type: ignore[arg-type]
    draw_lines(rows, tmp_path / "b.png", **options)  # type: ignore[arg-type]
    own, one = ([axes.get_xlabel() for axes in figure.axes] for figure in drawn)
    assert own == [f"axis of {panel}" for panel in "abcdef"]
    assert one == ["at"] * 6
    # Six panels are three above three.
    columns = {round(axes.get_position().x0, 3) for axes in drawn[0].axes}
    assert len(columns) == 3


def test_names_stand_side_by_side_and_nothing_joins_them(tmp_path: Path, drawn: list[Figure]) -> None:
    rows: list[dict[str, object]] = [
        {"method": method, "y": 1.0 + k, "trust": trust, "task": task}
        for task, names in (("a", "uv"), ("b", "vw"))
        for trust in ("local", "central")
        for k, method in enumerate(names)
    ]
    draw_lines(
        rows, tmp_path / "f.png", x="method", y="y", line="trust", panel="task", log_x=False, log_y=True,
        title="t",
    )  # fmt: skip
    for axes, names in zip(drawn[0].axes, ("uv", "vw"), strict=True):
        assert axes.yaxis.get_minor_formatter()(0.6, 0) == "0.6"
        assert [text.get_text() for text in axes.get_xticklabels()] == list(names)
        assert [look[2] for look in _looks(axes).values()] == ["None", "None"]
        for bars in axes.containers:
            assert isinstance(bars, ErrorbarContainer)
            assert np.asarray(bars.lines[0].get_xdata()).tolist() == [0, 1]
        # All that is drawn lies inside of the panel: a single number on a logarithmic axis did not.
        box = axes.get_window_extent()
        assert box.x0 < box.x1
        assert axes.get_xlim() == (-0.5, 1.5)
