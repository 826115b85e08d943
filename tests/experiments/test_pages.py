"""The pages say what their own tables say: every verdict follows from the rows that a page shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tacit.experiments import (
    EXPERIMENTS,
    cldp_sgd_statements,
    defaults,
    dme_statements,
    fermi_adult,
    fermi_batch,
    fermi_color_mnist,
    fermi_communities,
    fermi_corrupted,
    fermi_small,
    frequencies_randomness_statements,
    heavy_tails_statements,
    isrl_convex_statements,
    isrl_statements,
    nonconvex_shuffled_statements,
    nonconvex_statements,
    optimisers_statements,
    personal_models,
    private_bandits_statements,
    private_fairness_statements,
    sco_statements,
    semi_dp_statements,
    shuffled_statements,
    successive_refinement_statements,
    trust_models_statements,
)
from tacit.experiments.dme_synthetic_statements import error_statements, rank_statements, time_statements
from tacit.experiments.private_dme import orderings
from tacit.experiments.reference import reference
from tacit.experiments.shuffle_rdp_curves import PANELS
from tacit.experiments.shuffle_rdp_statements import statements as shuffle_statements
from tacit.learning import ALGORITHMS
from tests.loops import each

DOCS = Path(__file__).parents[2] / "docs" / "experiments"
Row = dict[str, object]


def text(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def words(page: str) -> str:
    """Return a page with all white space as one blank, so that lines may break anywhere."""
    return " ".join(text(page).split())


def tables(page: str) -> Iterator[list[Row]]:
    """Yield the tables of a page; empty cells are None, numbers are numbers."""
    for block in re.findall(r"(?:^\|.*\|\n)+", text(page), re.MULTILINE):
        head, _, *lines = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        ]
        yield [dict(zip(head, map(cell, line), strict=True)) for line in lines]


def cell(shown: str) -> object:
    """Return what a cell shows."""
    if shown in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[shown]
    return float(shown) if re.fullmatch(r"-?\d[\d.]*(e[+-]?\d+)?", shown) else shown


def whole(rows: Iterable[Row], *keys: str) -> list[Row]:
    """Return rows with whole numbers under these keys, as runs have them."""
    return [row | {key: int(float(str(row[key]))) for key in keys} for row in rows]


def tasks(page: str) -> Iterator[str]:
    (rows,) = tables(page)
    return dme_statements.statements(whole(rows, "k"))


def silos(page: str) -> Iterator[str]:
    (rows,) = tables(page)
    return isrl_statements.statements(whole(rows, "silos per round"))


def bills(page: str) -> Iterator[str]:
    rows, _ = tables(page)
    return isrl_convex_statements.insurance_statements(rows)


def levels(page: str) -> Iterator[str]:
    rows, _ = tables(page)
    return isrl_convex_statements.obesity_statements(whole(rows, "silos per round"))


def networks(page: str) -> Iterator[str]:
    rows, gained = tables(page)
    return nonconvex_statements.statements(rows, gained)


def carried(page: str) -> Iterator[str]:
    rows, walks, levels = tables(page)
    yield from nonconvex_shuffled_statements.statements([*rows, *walks])
    yield from nonconvex_shuffled_statements.level_statements(levels)


def synthetic(page: str) -> Iterator[str]:
    identical, known, small, short, times = tables(page)
    for figure, part in (("2.2", identical), ("2.3", known), ("A.1", small)):
        yield from error_statements(figure, part)
    yield from rank_statements(whole(short, "d", "n k", "draws"))
    yield from time_statements(whole(times, "n", "k"))


def shuffling(page: str) -> Iterator[str]:
    rows: list[Row] = []
    for part in tables(page):
        for line in part:
            name, x, *_ = line.values()
            key = "divergence" if str(name).startswith("5.2") else "epsilon"
            rows += [
                {"figure": f"{name}: ", "x": x, "bound": bound, key: value}
                | {"reference": reference("shuffle-rdp-curves").get((str(name), bound, float(str(x))))}
                for bound, value in list(line.items())[2:]
                if value is not None
            ]
    assert len({row["figure"] for row in rows}) == len(PANELS)
    return shuffle_statements(rows)


def private(page: str) -> Iterator[str]:
    _, rows = tables(page)
    return orderings(rows)


def searched(page: str) -> Iterator[str]:
    (rows,) = tables(page)
    return defaults.statements(rows)


def shuffled(page: str) -> Iterator[str]:
    _, rows, slopes = tables(page)
    yield from sco_statements.statements(rows)
    yield from sco_statements.slope_statements(whole(slopes, "n"))


def beside_public(page: str) -> Iterator[str]:
    _, rows, own, digits = tables(page)
    yield from semi_dp_statements.statements(rows)
    yield from semi_dp_statements.local_statements(own)
    yield from semi_dp_statements.digit_statements(digits)


def compared(page: str) -> Iterator[str]:
    conditioned, rows = tables(page)
    yield from optimisers_statements.statements(rows)
    yield from optimisers_statements.conditioning_statements(conditioned)


def reports(page: str) -> Iterator[str]:
    rows, prices = tables(page)
    return cldp_sgd_statements.statements(rows, prices)


def trusted(page: str) -> Iterator[str]:
    rows, plain = tables(page)
    yield from trust_models_statements.statements(rows)
    yield from trust_models_statements.plain_statements(plain)


def hidden(page: str) -> Iterator[str]:
    _, rows, *orders = tables(page)
    assert len(orders) == 2
    yield from shuffled_statements.statements(rows)
    for found in orders:
        yield from shuffled_statements.order_statements(found)


def tails(page: str) -> Iterator[str]:
    _, rows, *_ = tables(page)
    return heavy_tails_statements.statements(rows)


def own_models(page: str) -> Iterator[str]:
    rows, others = tables(page)
    return personal_models.statements([*rows, *others])


def bandits(page: str) -> Iterator[str]:
    _, rows = tables(page)
    return private_bandits_statements.statements(rows)


def fair(page: str) -> Iterator[str]:
    (rows,) = tables(page)
    return private_fairness_statements.statements(rows)


def randomness(page: str) -> Iterator[str]:
    curves, thresholds, many = tables(page)
    yield from frequencies_randomness_statements.curve_statements(curves)
    yield from frequencies_randomness_statements.threshold_statements(thresholds)
    yield from frequencies_randomness_statements.table_statements(many)


def refinement(page: str) -> Iterator[str]:
    pairs, many, keys, saved = tables(page)
    yield from successive_refinement_statements.pair_statements(pairs)
    yield from successive_refinement_statements.many_statements(many)
    yield from successive_refinement_statements.key_statements(keys)
    yield from successive_refinement_statements.saved_statements(saved)


def fair_notions(page: str) -> Iterator[str]:
    return iter(fermi_adult.statements(*tables(page)))


def fair_batches(page: str) -> Iterator[str]:
    return fermi_batch.statements(*tables(page))


def fair_damaged(page: str) -> Iterator[str]:
    return fermi_corrupted.statements(*tables(page))


def fair_small(page: str) -> Iterator[str]:
    return fermi_small.statements(*tables(page))


def fair_attributes(page: str) -> Iterator[str]:
    return fermi_communities.statements(*tables(page))


def fair_colours(page: str) -> Iterator[str]:
    return fermi_color_mnist.statements(*tables(page))


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("fermi-adult", fair_notions),
        ("fermi-batch", fair_batches),
        ("fermi-missing", fair_damaged),
        ("fermi-noisy", fair_damaged),
        ("fermi-compas", fair_small),
        ("fermi-german", fair_small),
        ("fermi-communities", fair_attributes),
        ("fermi-color-mnist", fair_colours),
        ("frequencies-randomness", randomness),
        ("successive-refinement", refinement),
        ("private-bandits", bandits),
        ("dp-fermi-credit", fair),
        ("dp-fermi-adult", fair),
        ("dp-fermi-parkinsons", fair),
        ("dp-fermi-record", fair),
        ("heavy-tails", tails),
        ("shuffled-gradient", hidden),
        ("cldp-sgd", reports),
        ("trust-models", trusted),
        ("defaults", searched),
        ("optimisers", compared),
        ("private-dme", private),
        ("shuffled-sco", shuffled),
        ("semi-dp-regression", beside_public),
        ("dme-kmeans", tasks),
        ("dme-power-iteration", tasks),
        ("dme-linear-regression", tasks),
        ("dme-synthetic", synthetic),
        ("shuffle-rdp-curves", shuffling),
        ("isrl-mnist-logistic", silos),
        ("isrl-nonconvex", networks),
        ("isrl-mnist-network", networks),
        ("nonconvex-shuffled", carried),
        ("personal-models", own_models),
        ("isrl-insurance", bills),
        ("isrl-obesity", levels),
    ],
)
def test_every_verdict_on_a_page_follows_from_its_tables(
    page: str, said: Callable[[str], Iterator[str]]
) -> None:
    shown = words(page)
    verdicts = list(said(page))
    assert verdicts
    missing = [verdict for verdict in verdicts if verdict not in shown]
    assert not missing


def test_the_page_of_all_optimisers_names_only_algorithms_that_there_are() -> None:
    _, rows = tables("optimisers")
    found = {str(row["method"]).removesuffix(", one pass") for row in rows}
    assert found <= ALGORITHMS.keys()
    assert f"of the {len(found)} algorithms that there were then" in words("optimisers")


@each("name", EXPERIMENTS)
def test_every_experiment_has_a_page_that_cites_its_source(name: str) -> None:
    page = words(name)
    assert f"tacit reproduce {name}" in page
    assert "full run" in page
    assert not re.search(r"\bspec(ification)? \d|the specification", page)
    author, year = re.match(r"([^(]+) \((\d+)\)", EXPERIMENTS[name].source).groups()  # type: ignore[union-attr]
    assert f"{author} ({year})" in page
