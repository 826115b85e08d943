"""Bounds on shuffling by Rényi divergences: alone, composed, on samples (Girgis 2023, Figures 5.2 to 5.6).

The figures are pictures without numbers. Every bound is computed anew: those of the thesis as printed, those
it compares with, and what tacit claims. Nothing is simulated, and no data are needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.errors import ParameterError
from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.experiments.shuffle_rdp_statements import statements
from tacit.literature.shuffling.baselines import bbg19_epsilon, clones_epsilon, efm19_epsilon, efm19_renyi
from tacit.literature.shuffling.closed_forms import chernoff_renyi, subgaussian_renyi
from tacit.literature.shuffling.lower import shuffle_epsilon_lower, shuffle_renyi_lower
from tacit.literature.shuffling.rounds import WHOLE_ORDERS, cldp_epsilon_composition
from tacit.literature.shuffling.subsampled import subsampled_renyi
from tacit.literature.shuffling.upper import shuffle_renyi
from tacit.numerics import Array
from tacit.privacy import Relation, Repeat, Sampled, Shuffled, epsilon_of, renyi_to_epsilon
from tacit.privacy.renyi_sampling import fixed_size_renyi, poisson_renyi

__all__ = ["PANELS", "CurveSetting", "Panel", "compute", "run"]

_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of delta, that the rounds of a composition may spend: the best is taken
_FEW_ORDERS: Array = np.unique(np.geomspace(2, 1e5, 64).round())  # enough for curves that cost a sum over n
_DENSE_ORDERS: Array = np.arange(2.0, 769.0)  # sampling theorems need all whole orders from 2 on
Values = tuple[float, ...]

_FIELDS = {"order": "order", "n": "clients", "epsilon0": "local_epsilon", "T": "rounds"}
_VALUES: Mapping[str, Values] = {
    "order": (2, 10, 30, 100, 1000, 10_000, 100_000, 1_000_000),
    "n": (1000, 10_000, 100_000, 1_000_000),
    "epsilon0": (0.1, 0.2, 0.5, 1.0, 2.0, 3.0),
    "T": (1, 3, 10, 100, 1000, 10_000, 100_000),
}
_LARGE = (10_000, 30_000, 100_000, 300_000, 1_000_000)
_LARGER = (10_000, 100_000, 1_000_000, 10_000_000)


@dataclass(frozen=True, kw_only=True)
class CurveSetting:
    """One point of a figure.

    Attributes:
        local_epsilon: Pure level epsilon0 of one message.
        clients: n.
        sampled: k, of n, whose messages are shuffled in a round; None for all.
        rounds: T.
        order: Of the divergence; None where an epsilon is asked for.
        delta: For the epsilon.
    """

    local_epsilon: float = 0.0
    clients: int = 0
    sampled: int | None = None
    rounds: int = 1
    order: float | None = None
    delta: float = 1e-8

    @property
    def messages(self) -> int:
        """Messages in one shuffle."""
        return self.clients if self.sampled is None else self.sampled

    @property
    def rate(self) -> float:
        """Chance that a client is sampled."""
        return self.messages / self.clients


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel of a figure: one of the settings varies.

    Attributes:
        name: Figure and letter.
        title: What is kept.
        against: Name of what varies: order, n, epsilon0 or T.
        values: Its values.
        base: The rest.
    """

    name: str
    title: str
    against: str
    values: Values
    base: CurveSetting

    @property
    def figure(self) -> str:
        """The figure, without the letter."""
        return self.name[:-1]

    def settings(self) -> Iterator[tuple[float, CurveSetting]]:
        """Yield the points."""
        field = _FIELDS[self.against]
        for value in self.values:
            changed: dict[str, Any] = {field: value if field == "local_epsilon" else int(value)}
            yield value, replace(self.base, **changed)


def _divergence(bound: Callable[[float, int, Array], Array]) -> Callable[[CurveSetting], float]:
    """Return the divergence at the order of a setting."""
    return lambda at: float(bound(at.local_epsilon, at.messages, np.array([at.order or 2.0]))[0])


_DIVERGENCES: Mapping[str, Callable[[CurveSetting], float]] = {
    "Theorem 5.3.1": _divergence(chernoff_renyi),
    "Theorem 5.3.2": _divergence(subgaussian_renyi),
    "EFM19": _divergence(efm19_renyi),
    "lower (5.9)": _divergence(lambda e, n, a: shuffle_renyi_lower(e, n, a, direction="forward")),
    "lower, both directions": _divergence(shuffle_renyi_lower),
    "tacit": _divergence(shuffle_renyi),
}


@functools.lru_cache(maxsize=64)
def _curve(name: str, local_epsilon: float, messages: int, rate: float) -> tuple[Array, Array]:
    """Return orders and divergences of one round."""
    n, dense, few = messages, _DENSE_ORDERS, _FEW_ORDERS
    match name:
        case "Theorem 5.3.1":
            return WHOLE_ORDERS, chernoff_renyi(local_epsilon, n, WHOLE_ORDERS)
        case "Theorem 5.4.1":
            return WHOLE_ORDERS, subsampled_renyi(local_epsilon, n, rate, WHOLE_ORDERS, variant="printed")
        case "EFM19":
            orders = np.unique(np.concatenate([WHOLE_ORDERS, np.linspace(1.01, 16, 600)]))
            return orders, efm19_renyi(local_epsilon, n, orders)
        case "lower":
            return few, shuffle_renyi_lower(local_epsilon, n, few, rate=rate, direction="forward")
        case "Theorem 5.3.1 + WBK19":
            one = chernoff_renyi(local_epsilon, n, dense)
            return dense, fixed_size_renyi(
                one, rate, dense, relation=Relation.REPLACE_ONE, pure_level=local_epsilon
            )
        case _:  # Theorem 5.3.1 + ZW19, a theorem about other neighbours than those of the divergences
            one = chernoff_renyi(local_epsilon, n, dense)
            return dense, poisson_renyi(one, rate, dense, relation=Relation.ADD_REMOVE)


def _by_curve(name: str) -> Callable[[CurveSetting], float]:
    """Return the epsilon of all rounds by the divergences of one."""

    def epsilon(at: CurveSetting) -> float:
        orders, one = _curve(name, at.local_epsilon, at.messages, at.rate)
        return renyi_to_epsilon(orders, at.rounds * one, at.delta).epsilon

    return epsilon


def _composed(at: CurveSetting) -> float:
    """Return the epsilon by composing the (epsilon, delta) of a round, at the best division of delta."""
    return min(
        cldp_epsilon_composition(
            at.local_epsilon, at.delta, rounds=at.rounds, clients=at.clients, sampled_clients=at.messages,
            share=share,
        )
        for share in _SHARES
    )  # fmt: skip


def _tacit(at: CurveSetting) -> float:
    """Return what tacit claims: the convolved privacy losses of the rounds."""
    batch: Shuffled | Sampled = Shuffled(at.local_epsilon, at.messages)
    if at.rate < 1:
        batch = Sampled(batch, at.rate)
    return epsilon_of(batch if at.rounds == 1 else Repeat(batch, at.rounds), at.delta)


def _efm19_once(at: CurveSetting) -> float | None:
    """Return the epsilon of one shuffle, where the theorem covers it."""
    try:
        return efm19_epsilon(at.local_epsilon, at.clients, at.delta)
    except ParameterError:  # level 1/2 or more
        return None


_EPSILONS: Mapping[str, Callable[[CurveSetting], float | None]] = {
    "Theorem 5.3.1": _by_curve("Theorem 5.3.1"),
    "Theorem 5.4.1": _by_curve("Theorem 5.4.1"),
    "Theorem 5.3.1 + WBK19": _by_curve("Theorem 5.3.1 + WBK19"),
    "Theorem 5.3.1 + ZW19": _by_curve("Theorem 5.3.1 + ZW19"),
    "EFM19": _by_curve("EFM19"),
    "EFM19, one shuffle": _efm19_once,
    "BBG19, one bit": lambda at: bbg19_epsilon(at.local_epsilon, at.clients, at.delta),
    "FMT22": lambda at: clones_epsilon(at.local_epsilon, at.clients, at.delta),
    "FMT22 + KOV15": _composed,
    "FMT22 + sampling + KOV15": _composed,
    "lower (5.9), by orders": _by_curve("lower"),
    "lower, one bit": lambda at: shuffle_epsilon_lower(at.local_epsilon, at.clients, at.delta),
    "tacit": _tacit,
}


_LINES: Mapping[str, tuple[str, ...]] = {
    "5.2": tuple(_DIVERGENCES),
    "5.3": (
        "Theorem 5.3.1", "EFM19, one shuffle", "BBG19, one bit", "FMT22", "lower (5.9), by orders",
        "lower, one bit", "tacit",
    ),
    "5.4": ("Theorem 5.3.1", "EFM19", "FMT22 + KOV15", "lower (5.9), by orders", "tacit"),
    "5.5": ("Theorem 5.3.1 + ZW19", "FMT22 + sampling + KOV15"),
    "5.6": (
        "Theorem 5.4.1", "Theorem 5.3.1 + WBK19", "FMT22 + sampling + KOV15", "lower (5.9), by orders",
        "tacit",
    ),
}  # fmt: skip
"""Figure to its lines."""


_TITLES: Mapping[str, str] = {
    "5.2": "Rényi divergence of one shuffled batch",
    "5.3": "Epsilon of one shuffled batch",
    "5.4": "Epsilon of T shuffled batches together",
    "5.5": "Epsilon of T batches of sampled clients, by composed guarantees and by divergences",
    "5.6": "Epsilon of T batches of sampled clients, every bound",
}
"""Figure to what it shows."""


def _panel(name: str, title: str, against: str, values: Values | None = None, **base: float) -> Panel:
    """Return a panel; without `values` it has the usual ones of what varies."""
    counts = ("clients", "sampled", "rounds")
    whole: dict[str, Any] = {key: int(v) if key in counts else v for key, v in base.items()}
    return Panel(
        name=name, title=title, against=against, values=values or _VALUES[against], base=CurveSetting(**whole)
    )


_ONCE = 1e-6  # the delta of one shuffle
PANELS: tuple[Panel, ...] = (
    _panel("5.2a", "epsilon0 = 0.1, n = 10^4", "order", local_epsilon=0.1, clients=1e4),
    _panel("5.2b", "epsilon0 = 0.1, order 100", "n", local_epsilon=0.1, order=100),
    _panel("5.2c", "n = 10^4, order 100", "epsilon0", clients=1e4, order=100),
    _panel("5.2d", "epsilon0 = 3, n = 10^4", "order", local_epsilon=3, clients=1e4),
    _panel("5.2e", "epsilon0 = 3, order 100", "n", local_epsilon=3, order=100),
    _panel("5.2f", "n = 10^6, order 100", "epsilon0", clients=1e6, order=100),
    _panel("5.3a", "epsilon0 = 0.1", "n", local_epsilon=0.1, delta=_ONCE),
    _panel("5.3b", "n = 10^4", "epsilon0", clients=1e4, delta=_ONCE),
    _panel("5.3c", "epsilon0 = 3", "n", local_epsilon=3, delta=_ONCE),
    _panel("5.3d", "n = 10^5", "epsilon0", clients=1e5, delta=_ONCE),
    _panel("5.4a", "epsilon0 = 0.5, n = 10^6", "T", local_epsilon=0.5, clients=1e6),
    _panel("5.4b", "epsilon0 = 0.5, T = 10^4", "n", _LARGE, local_epsilon=0.5, rounds=1e4),
    _panel("5.4c", "n = 10^5, T = 10^4", "epsilon0", clients=1e5, rounds=1e4),
    _panel("5.4d", "epsilon0 = 2, n = 10^6", "T", local_epsilon=2, clients=1e6),
    _panel("5.4e", "epsilon0 = 2, T = 10^4", "n", _LARGE, local_epsilon=2, rounds=1e4),
    _panel("5.4f", "n = 10^6, T = 10^4", "epsilon0", clients=1e6, rounds=1e4),
    _panel("5.5a", "epsilon0 = 3, n = 10^6, rate 0.001", "T", local_epsilon=3, clients=1e6, sampled=1e3),
    _panel("5.5b", "epsilon0 = 3, n = 10^7, rate 0.001", "T", local_epsilon=3, clients=1e7, sampled=1e4),
    _panel("5.6a", "epsilon0 = 2, n = 10^6, rate 0.001", "T", local_epsilon=2, clients=1e6, sampled=1e3),
    _panel("5.6b", "epsilon0 = 1, n = 10^7, rate 0.001", "T", local_epsilon=1, clients=1e7, sampled=1e4),
    _panel(
        "5.6c", "epsilon0 = 2, k = 1000, T = 10^5", "n", _LARGER, local_epsilon=2, sampled=1e3, rounds=1e5
    ),
)
"""All panels in the order of the figures."""


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figures; `quick` takes every third point of a line, the last among them."""
    return compute([replace(p, values=p.values[::-3][::-1]) for p in PANELS] if quick else PANELS, progress)


def compute(panels: Sequence[Panel], progress: Callable[[int, int], Any]) -> Report:
    """Compute all bounds of some panels, those of the first figure as the table, the others as further ones.

    Args:
        panels: One or more.
        progress: Called with (done, total).
    """
    found: dict[str, list[dict[str, object]]] = {}
    for done, panel in enumerate(panels):
        progress(done, len(panels))
        found.setdefault(panel.figure, []).extend(_rows(panel))
    progress(len(panels), len(panels))
    notes = (
        "Bounds are for one record or client under replace-one and any epsilon0-LDP randomizer, but for "
        "BBG19, which is for one randomized bit, and Theorem 5.3.1 + ZW19, which joins divergences under "
        "replace-one with a theorem about add-remove and proves nothing. delta is 1e-6 in Figure 5.3, else "
        "1e-8.",
        "No bound for every randomizer can be below a lower bound; below `by orders`, which turns (5.9) into "
        "epsilon, only none that goes by Rényi divergences.",
        "FMT22: Feldman, McMillan and Talwar (2022), Theorem 3.1, evaluated exactly; KOV15: Kairouz, Oh and "
        "Viswanath (2015), the exact composition, at the best of five divisions of delta. EFM19: Erlingsson "
        "et al. (2019). BBG19: Balle et al. (2019). WBK19, ZW19: subsampling by Wang, Balle and "
        "Kasiviswanathan and by Zhu and Wang (2019).",
        "tacit: Figure 5.2 its Rényi bound, else its convolved privacy losses, which guarantees are made of.",
        *statements([row for rows in found.values() for row in rows]),
    )
    reports = {
        figure: Report(
            rows=rows,
            x="x",
            y="divergence" if figure == "5.2" else "epsilon",
            error=None,
            line="bound",
            panel="figure",
            axis="against",
            log_x=True,
            log_y=True,
            title=f"{_TITLES[figure]} (Figure {figure})",
            notes=notes if figure == panels[0].figure else (),
        )
        for figure, rows in found.items()
    }  # fmt: skip
    first, *rest = reports
    return replace(reports[first], more={name: reports[name] for name in rest})


def _rows(panel: Panel) -> Iterator[dict[str, object]]:
    """Yield a row for each point and bound that covers it."""
    known = _DIVERGENCES if panel.figure == "5.2" else _EPSILONS
    for bound in _LINES[panel.figure]:
        for x, setting in panel.settings():
            value = known[bound](setting)
            if value is not None:
                yield {
                    "figure": f"{panel.name}: {panel.title}",
                    "against": panel.against,
                    "x": float(x),
                    "bound": bound,
                    "divergence" if panel.figure == "5.2" else "epsilon": value,
                    "reference": reference("shuffle-rdp-curves").get((panel.name, bound, x)),
                }
