"""What a server shows of its run over HTTP: a page for people, JSON for programs, counts for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tacit.federation.network.progress import Progress

__all__ = ["status_routes"]

_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_STYLE: Final = """
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:64em;padding:0 1em;color:#222}
h1{font-size:1.35em} h2{font-size:1.1em;margin-top:1.6em} progress{width:100%;height:1.1em}
table{border-collapse:collapse;width:100%} th,td{padding:.25em .6em;text-align:left}
th,td{border-bottom:1px solid #ccc} td{font-variant-numeric:tabular-nums}
.away{color:#a00} .here{color:#070} small{color:#666}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818} th,td{border-color:#444}
.away{color:#f77} .here{color:#7c7} small{color:#999}}
"""
_SILO_HEAD: Final = ("silo", "", "units", "answered", "thrown away", "refused", "agreed on")
_ROUND_HEAD: Final = ("round", "silos", "bytes up", "bytes down", "seconds", "epsilon", "")
_ROWS: Final = 50


def status_routes(progress: Progress) -> tuple[BaseRoute, ...]:
    """Return the pages about a run: /health, /status, /status.json and /metrics."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Counts(progress))

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"}, headers=_HEADERS)

    async def page(_: Request) -> Response:
        return HTMLResponse(_page(await run_in_threadpool(progress.facts)), headers=_HEADERS)

    async def facts(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(progress.facts), headers=_HEADERS)

    async def metrics(_: Request) -> Response:
        text = await run_in_threadpool(generate_latest, registry)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8", headers=_HEADERS)

    return (
        Route("/health", health, methods=["GET"]),
        Route("/status", page, methods=["GET"]),
        Route("/status.json", facts, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    )


class _Counts(Collector):
    """The counts of a run."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def collect(self) -> Iterable[Metric]:
        """Yield what Prometheus reads."""
        facts = self._progress.facts()
        for name, what, value in (
            ("rounds_planned", "Rounds of the plan.", facts["rounds"]),
            ("silos_present", "Silos that can be reached.", sum(one["present"] for one in facts["silos"])),
            ("epsilon_so_far", "Price of the rounds so far.", facts["epsilon_so_far"]),
            ("running", "Whether rounds are being run.", facts["state"] == "running"),
        ):
            if value is not None:
                yield GaugeMetricFamily(f"tacit_server_{name}", what, value=float(value))
        for name, what, value in (
            ("rounds", "Rounds that are over.", facts["done"]),
            ("rounds_skipped", "Rounds that nobody, or too few, answered.", facts["skipped"]),
            ("round_seconds", "Time that rounds took.", facts["seconds"]),
            ("bytes_up", "Bytes from silos.", facts["bytes_up"]),
            ("bytes_down", "Bytes to silos.", facts["bytes_down"]),
        ):
            yield CounterMetricFamily(f"tacit_server_{name}", what, value=value)
        for name, what in (
            ("answered", "Rounds that a silo answered."),
            ("dropped", "Messages of a silo that were thrown away."),
            ("refused", "Rounds that a silo refused."),
        ):
            family = CounterMetricFamily(f"tacit_server_silo_{name}", what, labels=["silo"])
            for silo in facts["silos"]:
                family.add_metric([silo["name"]], silo[name])
            yield family


def _page(facts: dict[str, Any]) -> str:
    """Return the page: no script, nothing from elsewhere, all text escaped."""
    silos = "".join(
        _row(
            escape(one["name"]),
            '<span class="here">here</span>' if one["present"] else '<span class="away">away</span>',
            _number(one["size"]),
            _number(one["answered"]),
            _number(one["dropped"]),
            _number(one["refused"]),
            _budget(one),
        )
        for one in facts["silos"]
    )
    rounds = "".join(
        _row(
            _number(one["step"] + 1),
            f"{len(one['answered'])} of {one['asked']}",
            _number(one["bytes_up"]),
            _number(one["bytes_down"]),
            f"{one['seconds']:.3f}",
            _epsilon(one["epsilon"]),
            escape(_notes(one)),
        )
        for one in reversed(facts["table"][-_ROWS:])
    )
    title = f"{escape(facts['federation'])}: {escape(facts['run'])}"
    server = "".join(f"<p>The server agreed on {_budget(one)}.</p>" for one in facts["guarantees"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{escape(facts['state'])}, {facts['done']} of {facts['rounds']} rounds; "
        f"{escape(facts['trust'])} trust; epsilon so far {_epsilon(facts['epsilon_so_far'])}; "
        f"{facts['bytes_up']:,} bytes up, {facts['bytes_down']:,} down.</p>"
        f'<progress max="{facts["rounds"]}" value="{facts["done"]}"></progress>{server}'
        f"<h2>Silos</h2><table>{_head(*_SILO_HEAD)}{silos}</table>"
        f"<h2>Last rounds</h2><table>{_head(*_ROUND_HEAD)}{rounds}</table>"
        f"<p><small>Public facts only. Plan {facts['plan'][:16]}…</small></p></body></html>"
    )


def _head(*names: str) -> str:
    return "<tr>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _number(value: int) -> str:
    return f"{value:,}"


def _epsilon(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _budget(one: dict[str, Any]) -> str:
    """Say what was agreed on."""
    if "delta" not in one:
        return "-"
    seeded = ", simulated" if one["simulated"] else ""
    return f"epsilon {_epsilon(one['epsilon'])}, delta {one['delta']:.3g}{seeded}"


def _notes(one: dict[str, Any]) -> str:
    """Say what went otherwise than planned."""
    said = [f"{name} refused: {code}" for name, code in one["refused"].items()]
    said += [f"{name}: {many} thrown away" for name, many in one["dropped"].items()]
    if one["skipped"]:
        said.append(f"skipped{': ' if one['why'] else ''}{one['why']}")
    return "; ".join(said)
