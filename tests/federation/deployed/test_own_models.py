"""Personal models of silos that are processes: each stays with its silo, and outlives the process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.federation import Query
from tacit.jobs import load_model
from tacit.jobs.deployed.silo_config import read_silo_config
from tacit.jobs.deployed.silo_job import SiloJob
from tacit.learning import AdaPeD
from tests.federation.deployed.runs import Found, answered
from tests.federation.deployed.world import Federated, impostor

pytestmark = pytest.mark.deployed

OTHER = "silo-2"
"""The silo whose labels are upside down: no common model is right for it."""


def own_table(fed: Federated, name: str) -> pd.DataFrame:
    return pd.read_csv(fed.folder.parent / "tables" / f"{name}.csv")


def own_model(fed: Federated, name: str) -> Path:
    return fed.state(name) / "personal" / f"{fed.run}.json"


def right(fed: Federated, name: str, model: Path) -> float:
    table = own_table(fed, name)
    return float(np.mean(load_model(model).predict(table) == table["y"]))


WORDS = ("--trust=local", "--algorithm=adaped", "--rounds=8", "--epsilon=1e5", "--delta=1e-5")


def test_every_silo_ends_with_a_model_of_its_own_though_one_died(found: Found) -> None:
    fed = found(*WORDS)
    flipped = own_table(fed, OTHER)
    flipped["y"] = np.where(flipped["y"] == "yes", "no", "yes")
    flipped.to_csv(fed.folder.parent / "tables" / f"{OTHER}.csv", index=False)
    fed.agree()
    fed.start("server", *fed.silos)
    answered(fed, OTHER, 4)
    fed.kill(OTHER)
    fed.start(OTHER)
    assert fed.ended("server") == 0, fed.log("server")
    fed.stop(*fed.pids)
    common = fed.folder / "runs" / "lab"
    for name in fed.silos:
        assert fed.spent(name) == [(fed.run, *fed.price(name))]
        assert list(fed.answers(name)) == list(range(fed.plan.rounds))
        assert right(fed, name, own_model(fed, name)) > 0.85
    assert right(fed, OTHER, common) < 0.5
    own = [path for path in fed.folder.rglob("*.json") if path.parent.name == "personal"]
    assert {path.relative_to(fed.folder).parts[0] for path in own} == set(fed.silos)


def test_a_personal_model_goes_on_to_the_last_bit_in_another_process(found: Found) -> None:
    """It has no noise: what a silo that was never killed has after the same questions, it has."""
    fed = found(*WORDS)
    fed.agree()
    name, plan = OTHER, fed.plan
    here = SiloJob.of(read_silo_config(fed.folder / f"{name}.toml"))
    steady = here.silo(None)
    steady.accept(plan, party=1, run=fed.run)
    settings, prepared = here.job.settings, here.job.prepared()
    assert isinstance(settings.algorithm, AdaPeD)
    (measure,) = plan.kinds[0][0].measures
    rng, dim = np.random.default_rng(5), measure.estimator.dim - 1
    facts = settings.algorithm._facts(prepared.problem, 1.0).array()
    queries = [
        Query(step, {"w": rng.normal(size=dim), "round": facts}, (measure.max_radius,)) for step in range(3)
    ]
    with impostor(fed) as server:
        fed.start(name)
        server.propose(name, "accept", plan)
        for query in queries:
            server.answer(name, query)
            steady.answer(query)
            if query.step == 1:
                fed.kill(name)
                fed.start(name)
        (kept,) = steady.kept("personal-round")
        found_there = load_model(own_model(fed, name)).fitted
        np.testing.assert_array_equal(found_there.w, here.job.terms.model(kept[:-1]).w)
