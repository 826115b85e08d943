"""A figure is a picture that shows every line."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

from tacit.reports import draw_lines


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


@pytest.mark.parametrize(("second", "legends"), [(("a", "b"), 1), (("c", "d"), 2)])
def test_panels_with_lines_of_their_own_have_legends_of_their_own(
    second: tuple[str, str], legends: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        Axes, "legend", lambda self, **_: seen.append(tuple(self.get_legend_handles_labels()[1]))
    )
    rows: list[dict[str, object]] = [
        {"m": name, "eps": eps, "err": eps, "panel": panel}
        for panel, names in (("1", ("a", "b")), ("2", second))
        for name in names
        for eps in (1.0, 10.0)
    ]
    draw_lines(rows, tmp_path / "f.png", x="eps", y="err", line="m", panel="panel", log_x=True, title="t")
    assert seen == [("a", "b"), second][-legends:]
