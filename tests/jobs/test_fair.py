"""Fair jobs on public data: the curve is drawn beside a private run, whose noise it does not need."""

from __future__ import annotations

from tacit.jobs import FairJob, JobConfig
from tacit.jobs.fair import CURVE_WEIGHTS
from tests.data.test_datasets import needs


def test_a_private_run_on_public_data_stands_beside_models_without_privacy() -> None:
    needs("german")
    job = JobConfig(
        data="german", sensitive="gender", protect="sensitive", trust="central", epsilon=1.0, rounds=3, seed=0
    )
    found = FairJob(job).run()
    assert [point.weight for point in found.curve] == list(CURVE_WEIGHTS)
    assert found.unconstrained is not None
    assert found.unconstrained.accuracy == found.curve[0].accuracy
    assert 0 < found.guarantee.epsilon <= 1
    (table,) = found.tables
    assert found.fair is not None
    assert table.overall["accuracy"] == found.fair.accuracy
    assert table.overall["count"] == 200
