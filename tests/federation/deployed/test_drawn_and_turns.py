"""Rounds that not all silos are about, between processes: drawn in secret, or one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.privacy import TrustModel, guarantee
from tests.federation.deployed.runs import Found, answered, running

pytestmark = pytest.mark.deployed

BUDGET = ("--epsilon=8", "--delta=1e-3", "--rounds=8")
JOBS = {
    "drawn": 'algorithm = "cldp-sgd"\nbatch = 1\n[options]\nclients = 2\n',
    "turns": 'algorithm = "ce-psgm"\n',
}


@pytest.mark.parametrize("kind", JOBS)
def test_a_run_goes_on_when_its_parties_die(kind: str, found: Found, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOBS[kind])
    fed = running(found, "--trust", "shuffle", *BUDGET, f"--job={tmp_path / 'job.toml'}")
    answered(fed, fed.silos[0], 2)
    fed.kill("shuffler", fed.silos[0])
    fed.start("shuffler", fed.silos[0])
    assert fed.ended("server") == 0, fed.log("server")
    fed.stop(*fed.pids)
    for name in fed.silos:
        own = fed.plan.event([fed.roster.silo(name).size], TrustModel.SHUFFLE)
        price = guarantee(own, fed.plan.delta, observer="the server")
        assert fed.spent(name) == [(fed.run, price.epsilon, price.delta)]
    steps = [list(fed.answers(name)) for name in fed.silos]
    if kind == "drawn":  # all answer every round, and nobody's log says who was drawn
        assert steps == [list(range(8))] * 3
        for name in fed.silos:
            assert len({line.facts["step"] for line in fed.lines(name, "uploaded")}) == 8
    else:  # one in its turn in every second round, as the plan says
        assert all(set(range(0, 8, 2)) <= set(one) for one in steps)
        assert sorted(s for one in steps for s in one if s % 2) == [1, 3, 5, 7]
        for name in fed.silos:
            assert all(int(str(line.facts["step"])) % 2 == 0 for line in fed.lines(name, "uploaded"))
