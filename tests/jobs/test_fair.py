"""Fair jobs on public data: what stands beside a private run, and the model that is saved."""

from __future__ import annotations

import numpy as np

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


def test_the_saved_model_cuts_where_the_trained_one_does() -> None:
    needs("german")
    found = FairJob(JobConfig(data="german", sensitive="gender", max_violation=0.02)).run()
    held_out = found.data.test
    said = found.model.fitted.predict(found.data.X[held_out])
    truth = np.array(found.data.classes)[found.data.y[held_out].astype(int)]
    assert found.fair is not None
    assert np.mean(said == truth) == found.fair.accuracy
    (table,) = found.tables
    assert np.mean(said == found.data.classes[-1]) == table.overall["selection_rate"]
