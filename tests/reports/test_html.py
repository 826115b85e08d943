"""Reports: one page that stands alone, escapes what comes from data, and says what a reader must know."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from typing import Any

import matplotlib as mpl
import msgspec
import numpy as np
import pytest

from tacit.jobs import ClassScores, JobResult, SiloScore
from tacit.privacy.paragraphs import paragraphs
from tacit.reports import notes_of, plain_words, released, render
from tacit.reports.plots import (
    draw_calibration,
    draw_loss_per_round,
    draw_score_against_epsilon,
    draw_score_per_round,
)
from tacit.reports.statement import claims, guarantees_about
from tests.reports.runs import NASTY, compared, open_run, persons, private, regression

NOW = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
VOID = {"meta", "br"}
RUNS = [compared, private, persons, regression, open_run]


def page(result: JobResult) -> str:
    return render(result, run=result.job.run, created=NOW)


class Checker(HTMLParser):
    """Follows open elements; keeps tags, attributes and visible text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "title"} & set(self.open):
            self.text += data


def parsed(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


@pytest.mark.parametrize("run", RUNS)
def test_pages_are_well_formed_and_load_nothing(run: Any) -> None:
    html = page(run())
    checker = parsed(html)
    assert html.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(checker.tags)
    assert not re.search(r"https?:|//\w|@import|url\((?!#)|javascript:", html)
    names = {name for name, _ in checker.attributes}
    assert not {name for name in names if name.startswith("on")} | {"src", "href"} & names
    assert all(value.startswith("#") for name, value in checker.attributes if name == "xlink:href")


def test_names_from_data_are_text_and_never_markup() -> None:
    html = page(private())
    text = parsed(html).text
    for name in NASTY:
        assert name in text
        assert escape(name) in html.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")
    assert "<script" not in html
    assert "49" not in re.findall(r'class="name">([^<]*)<', html)


@pytest.mark.parametrize("run", RUNS)
def test_the_first_thing_said_is_the_guarantee(run: Any) -> None:
    result = run()
    text = " ".join(parsed(page(result)).text.split())
    words = plain_words(released(result))
    assert words in text
    assert text.index(words) < text.index("Results")
    for note in notes_of(result):
        assert note in text
    for who, said in paragraphs(*guarantees_about(result)):
        assert f"{who[:1].upper()}{who[1:]}. {said}" in text
    assert all(plain_words(one) in text for one in result.results if not claims(one))
    assert ("tacit account verify" in text) == claims(released(result))


def test_assumptions_are_listed() -> None:
    text = parsed(page(persons())).text
    for clause in persons().results[0].guarantee.assumptions:
        assert clause in text
    assert "persons" in text


def test_simulations_show_curves_and_say_so() -> None:
    html = page(compared())
    assert html.count("<svg") == 4
    assert "simulation on public data" in html
    assert "A rehearsal." in html
    assert "Keep this report inside" not in html
    assert 'class="legend"' in html


@pytest.mark.parametrize("run", [private, persons, regression])
def test_pages_about_private_data_show_no_traces_and_no_labels(run: Any) -> None:
    html = page(run())
    assert html.count("<svg") == (0 if run is regression else 1)
    assert "How the score depends" not in html
    assert "All of this was computed on held-out private records without noise" in html
    assert "Keep this report inside" in html
    assert 'class="legend"' not in html
    assert 'class="stack"' not in html
    assert "A rehearsal" not in html


def cells(html: str, heading: str, *, rows: int) -> list[list[str]]:
    """Return the cells of the first rows of the table after a heading."""
    table = html[html.index(heading) :]
    lines = re.findall(r"<tr[^>]*>(<td.*?)</tr>", table[: table.index("</table>")], re.DOTALL)[:rows]
    return [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", one)] for one in lines
    ]


def test_a_score_comes_with_all_that_it_means() -> None:
    result = compared()
    html = page(result)
    (*_, local) = cells(html, "<h2>What the score means", rows=5)
    scores = result.results[-1].scores
    assert isinstance(scores, ClassScores)
    assert scores.standard_error is not None
    said = f"{100 * scores.score:.1f} ± {100 * scores.standard_error:.1f} %"
    assert local[:2] == ["local", said]
    assert local[2] == f"{100 * scores.baseline:.1f} %"
    assert local[5:] == [f"{v:.3f}" for v in (scores.log_loss, scores.brier, scores.calibration_error)]
    truth = cells(html, "Which class is taken for which", rows=2)
    for row, counts in zip(truth, scores.confusion, strict=True):
        assert row[1:] == [f"{100 * count / sum(counts):.0f}" for count in counts]
    assert cells(html, "<h3>By silo", rows=1)[0][0] == result.data.silo_names[0]
    (*_, baseline) = cells(html, "<h2>Results", rows=6)
    assert baseline == ["baseline", f"{100 * scores.baseline:.1f} %", "most frequent class"]


def test_a_silo_without_a_label_has_no_score_in_the_page() -> None:
    result = private()
    (one,) = result.results
    unknown = SiloScore(name="north", score=None, standard_error=None, baseline=None)
    scores = msgspec.structs.replace(one.scores, silos=(unknown, *one.scores.silos[1:]))
    html = page(replace(result, results=(replace(one, scored=scores),)))
    assert cells(html, "<h3>By silo", rows=1) == [["north", "no record with a label", ""]]


def test_a_regression_has_errors_and_no_classes() -> None:
    html = page(regression())
    ((trust, score, *_, share),) = cells(html, "<h2>What the score means", rows=1)
    assert (trust, "±" in score) == ("central", True)
    assert float(share) == pytest.approx(1 - (regression().results[0].score / _baseline()) ** 2, abs=1e-3)
    assert "Which class" not in html
    assert "Calibration" not in html


def _baseline() -> float:
    return regression().results[0].scores.baseline


def test_pictures_show_the_baseline() -> None:
    assert draw_score_per_round(compared()).count("baseline") == 1
    assert draw_score_against_epsilon(compared()).count("baseline") == 1
    assert "baseline" not in draw_loss_per_round(compared())
    svg = draw_calibration(compared())
    for trust in ("local", "aggregate", "central", "none"):
        assert f"var(--{trust})" in svg
    assert draw_calibration(regression()) == ""


def test_bars_are_two_standard_errors_to_each_side() -> None:
    """Read off the picture: heights of bars, in shares of the distance of two lines of its grid."""
    result = compared()
    svg = draw_score_against_epsilon(result)
    bars = re.findall(r'<g id="LineCollection_\d+">(.*?)</g>', svg, re.DOTALL)
    assert len(bars) == 4
    drawn = [[float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", bar)] for bar in bars]
    heights = [abs(low - high) for ys in drawn for low, high in zip(ys[::2], ys[1::2], strict=True)]
    wanted = [4 * (point.standard_error or 0.0) for point in result.sweep]
    scales = np.divide(heights, wanted)
    assert len(heights) == len(result.sweep) == 18
    np.testing.assert_allclose(scales, scales[0], rtol=1e-3)
    assert "two standard errors to each side" in page(result)


def test_names_of_lines_keep_apart_and_inside_the_picture() -> None:
    for plot in (draw_score_per_round, draw_score_against_epsilon, draw_calibration):
        svg = plot(compared())
        height = float(svg.split('viewBox="0 0 ')[1].split('"')[0].split()[1])
        names = ("local", "shuffle", "central", "no privacy", "baseline")
        found = re.findall(r'<text style="[^"]*" [^>]*?y="([\d.-]+)"[^>]*>([^<]*)</text>', svg)
        places = sorted(float(y) for y, text in found if text in names)
        assert len(places) == 4 + (plot is not draw_calibration)
        assert places[0] > 0
        assert places[-1] < height
        assert min(b - a for a, b in itertools.pairwise(places)) > 8


def test_a_run_without_privacy_says_so_first() -> None:
    text = " ".join(parsed(page(open_run())).text.split())
    assert "No privacy is claimed" in text
    assert "Do not hand this model out" in text
    assert "Each single record" not in text
    assert "Nothing is protected" in text


def test_a_page_is_a_function_of_the_run() -> None:
    assert page(compared()) == page(compared())


def test_plots_follow_the_theme_and_leave_no_settings_behind() -> None:
    before = (mpl.rcParams["svg.fonttype"], mpl.rcParams["svg.hashsalt"])
    for plot in (draw_score_per_round, draw_loss_per_round, draw_score_against_epsilon):
        svg = plot(compared())
        assert {
            "var(--local)",
            "var(--central)",
            "var(--ink)" if plot is draw_score_against_epsilon else "var(--none)",
        } <= set(re.findall(r"var\([^)]*\)", svg))
        assert not re.search(r"#[0-9a-f]{6}\b", svg.replace("#000000", ""))
        assert "no privacy" in svg
        assert "aria-label" in svg
        assert plot(private()) == ""
    assert (mpl.rcParams["svg.fonttype"], mpl.rcParams["svg.hashsalt"]) == before
