"""Numbers that a shuffler says of a batch: the server believes those only that the circle could have made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.errors import ParameterError
from tacit.federation import Batch, Fixed, Full, Poisson
from tacit.federation.network.mixing import MixedRun
from tests.federation.network.shuffled import plan_of as plan_of_all
from tests.federation.network.shuffled import world
from tests.federation.network.test_drawn_rounds import BITS, ONE, REPORT, SIZES, TWO, VECTORS, plan_of

ROUNDS: list[tuple[Fixed | Poisson | None, Any, Batch]] = [
    (None, None, ONE),
    (Fixed(size=2), REPORT, ONE),
    (Fixed(size=3), BITS, Full()),
    (Poisson(rate=0.5), VECTORS, TWO),
]


def plus(batch: Any, name: str, by: int) -> Any:
    """Return a batch with another number, or another first number."""
    value = getattr(batch, name)
    return msgspec.structs.replace(
        batch, **{name: (value[0] + by, *value[1:]) if isinstance(value, tuple) else value + by}
    )


@pytest.mark.parametrize(("parties", "mean", "batch"), ROUNDS)
def test_what_the_shuffler_says_is_checked(
    parties: Fixed | Poisson | None, mean: Any, batch: Batch, tmp_path: Path
) -> None:
    plan = plan_of_all() if parties is None else plan_of(parties, mean=mean, batch=batch)
    made = (
        world(plan, tmp_path / "shuffler", SIZES)
        if parties is not None
        else world(plan, tmp_path / "shuffler")
    )
    signed = made.open()
    for k in range(len(made.silos)):
        made.send(k, signed)
    found, run = made.batch(signed), MixedRun(plan, made.who.roster)
    run.check_batch(found, signed.descriptor)
    far = 10**6
    # More than all of the circle together have; fewer than those that are said to be in it.
    wrong = [plus(found, name, by) for name in ("rows", "sealed") for by in (far, -far)]
    wrong += [plus(found, "came", by) for by in (1, -len(made.silos))]
    wrong += [plus(found, "parties", by) for by in (far, -far)]
    if parties is None:  # all of the circle are in it, of whom everything is public
        wrong += [plus(found, name, by) for name in ("rows", "sealed", "parties") for by in (1, -1)]
    elif batch != Full():  # as many rows of each
        wrong += [plus(found, "rows", by) for by in (1, -1)]
    if isinstance(parties, Fixed):
        wrong += [plus(found, "parties", by) for by in (1, -1)]
    for one in wrong:
        with pytest.raises(ParameterError, match="batch of"):
            run.check_batch(one, signed.descriptor)
    with pytest.raises(ParameterError, match="numbers of rows and messages"):
        run.check_batch(msgspec.structs.replace(found, sealed=(*found.sealed, 1)), signed.descriptor)


def test_of_unlike_sizes_a_batch_is_between_the_smallest_and_the_largest(tmp_path: Path) -> None:
    plan = plan_of(Fixed(size=2), mean=BITS, batch=Full())
    made = world(plan, tmp_path / "shuffler", SIZES)  # of 5, 6, 7, 8 and 9 rows
    signed = made.open()
    for k in range(5):
        made.send(k, signed)
    found, run = made.batch(signed), MixedRun(plan, made.who.roster)
    for rows, fits in ((10, False), (11, True), (17, True), (18, False)):
        one = msgspec.structs.replace(found, rows=rows)
        if fits:
            run.check_batch(one, signed.descriptor)
        else:
            with pytest.raises(ParameterError, match="numbers of rows"):
                run.check_batch(one, signed.descriptor)
