"""What a server shows of its run: public facts, escaped, with the prices of the plan's beginning."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tacit.federation import Fixed, Plan
from tacit.federation.network.hub import Hub
from tacit.federation.network.journal import RoundFacts
from tacit.federation.network.progress import Progress, first_rounds
from tacit.federation.network.status_page import status_routes
from tacit.federation.steps import Group
from tacit.privacy import epsilon_of
from tests.federation.network.deployed_world import channel_of, consent, parties_of, server, service
from tests.federation.network.parties import Parties
from tests.federation.world import AT, GAUSSIAN, RADIUS, mean_of, plan_of, rows, silo_of, step_of

SIZES = (8, 20)
PLAN = plan_of(mean_of(GAUSSIAN), parties=2, rounds=3)


def read(known: Parties, progress: Progress, path: str) -> httpx.Response:
    hub = Hub(known.roster, routes=status_routes(progress))

    async def go() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(hub.app), base_url="http://hub") as client:
            return await client.get(path)

    return asyncio.run(go())


@pytest.fixture
def ran(tmp_path: Path) -> tuple[Parties, Progress]:
    """Two rounds of three."""
    known = parties_of(SIZES)
    services = []
    for k, n in enumerate(SIZES):
        silo, _ = silo_of(rows(k, n), name=f"silo-{k + 1}", seed=k)
        consent(known, PLAN, "run", tmp_path / silo.name)
        services.append(service(known, silo, tmp_path / silo.name))
    channel = channel_of(services)
    progress = Progress(known.roster, PLAN, "run", present=lambda: {"silo-1"})
    ask = server(known, channel, follow=progress.follow).open(PLAN)
    progress.begin(ask)
    for step in range(2):
        ask(step, AT, (RADIUS,))
    channel.close()
    for one in services:
        one.close()
    return known, progress


def test_json_tells_what_the_rounds_were(ran: tuple[Parties, Progress]) -> None:
    known, progress = ran
    found = read(known, progress, "/status.json").json()
    assert (found["rounds"], found["done"], found["skipped"], found["state"]) == (3, 2, 0, "running")
    assert [one["present"] for one in found["silos"]] == [True, False]
    assert [one["answered"] for one in found["silos"]] == [2, 2]
    assert found["bytes_up"] == sum(row["bytes_up"] for row in found["table"]) > 0
    assert [row["answered"] for row in found["table"]] == [["silo-1", "silo-2"]] * 2
    for rounds, row in enumerate(found["table"], 1):
        alone = [epsilon_of(first_rounds(PLAN, rounds).event([n], PLAN.trust), PLAN.delta) for n in SIZES]
        assert row["epsilon"] == pytest.approx(max(alone), rel=2e-6)
    assert found["epsilon_so_far"] < found["silos"][0]["epsilon"]
    assert found["silos"][0]["simulated"]


def test_the_page_is_whole_in_itself_and_escapes_all_names(ran: tuple[Parties, Progress]) -> None:
    known, progress = ran
    page = read(known, progress, "/status")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert "2 of 3 rounds" in page.text
    assert not any(word in page.text for word in ("<script", "http:", "https:", "src=", "@import", "url("))
    hostile = Progress(known.roster, PLAN, "<img src=x>")
    facts = RoundFacts(
        step=0, asked=(0, 1), answered=(0,), refused={"silo-2": "budget"}, dropped={"silo-2": 3},
        bits_up=(8,), bytes_up=(1, 2), bytes_down=(3, 4), seconds=0.1, skipped=True, why="<b>",
    )  # fmt: skip
    hostile.follow(facts)
    text = read(known, hostile, "/status").text
    assert "<img" not in text
    assert "<b>" not in text
    assert "silo-2 refused: budget; silo-2: 3 thrown away; skipped: &lt;b&gt;" in text


def test_metrics_and_health(ran: tuple[Parties, Progress]) -> None:
    known, progress = ran
    text = read(known, progress, "/metrics").text
    assert "tacit_server_rounds_total 2.0" in text
    assert "tacit_server_silos_present 1.0" in text
    assert 'tacit_server_silo_answered_total{silo="silo-2"} 2.0' in text
    assert read(known, progress, "/health").json() == {"status": "ok"}


def kinds(plan: Plan, rounds: int) -> list[Any]:
    """Which kind of round each of the first rounds is."""
    schedule = plan.schedule()
    return [schedule.step(number) for number in range(rounds)]


def test_the_beginning_of_a_plan_asks_the_same_rounds_and_costs_no_more() -> None:
    mean = mean_of(GAUSSIAN)
    a, b, c = (step_of(mean, batch=Fixed(size=k)) for k in (3, 4, 5))
    plan = plan_of(mean)
    plan = Plan(
        steps=((a, 3), (Group(steps=((b, 2), (c, 1))), 2), (a, 1)),
        parties=1,
        trust=plan.trust,
        delta=plan.delta,
    )
    epsilons = []
    for rounds in range(1, plan.rounds + 1):
        begun = first_rounds(plan, rounds)
        assert begun.rounds == rounds
        assert kinds(begun, rounds) == kinds(plan, rounds)
        epsilons.append(epsilon_of(begun.event([20], plan.trust), plan.delta))
    assert np.all(np.diff(epsilons) > 0)
    assert first_rounds(plan, plan.rounds) == plan


def test_without_noise_no_number_is_claimed(tmp_path: Path) -> None:
    known, plan = parties_of(SIZES), plan_of(mean_of(), parties=2, rounds=3)
    progress = Progress(known.roster, plan, "run")
    assert progress.facts()["epsilon_so_far"] == 0.0
    facts = RoundFacts(
        step=0, asked=(0,), answered=(0,), refused={}, dropped={}, bits_up=(8,), bytes_up=(1,),
        bytes_down=(1,), seconds=0.1, skipped=False,
    )  # fmt: skip
    progress.follow(facts)
    assert progress.facts()["epsilon_so_far"] is None
    assert not math.isnan(progress.facts()["seconds"])
    assert "epsilon so far -" in read(known, progress, "/status").text
