"""What an owner says decides which masks a plan gets, on secrets in the silo's ledger."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.federation.masking.complete import CompleteMasks
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.opening import RecoverableSums
from tacit.federation.masking.recoverable import RecoverableMasks, root_name
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.plan import Plan
from tacit.federation.store import LedgerStore, MemorySecrets
from tacit.federation.sums import SiloMasks
from tacit.privacy import PrivacyBudget
from tests.federation.aggregates import mean_of, plan_of, step_of
from tests.federation.masking.recovery_world import DIGEST, context_of, signing_keys, total
from tests.federation.world import ledger_at

ROSTER = context_of(4).roster


def plan(*, recover: bool = True, n_min: int = 3, colluding: int = 0, roster: str = ROSTER.digest) -> Plan:
    n_min = n_min if recover else 4
    return plan_of(
        step_of(mean_of(n_min - colluding)),
        sizes=(20,) * 4,
        n_min=n_min,
        colluding=colluding,
        recover=recover,
        roster=roster,
    )


def sums(party: int = 0, colluding: int = 0) -> MaskedSums:
    return MaskedSums(ROSTER, signing_keys(4)[party], colluding=colluding)


def test_a_plan_that_recovers_gets_recoverable_masks() -> None:
    assert isinstance(sums().masks(plan(), "run", 0, MemorySecrets()), RecoverableMasks)
    assert isinstance(sums().masks(plan(recover=False), "run", 0, MemorySecrets()), CompleteMasks)


def test_a_silo_checks_the_quorum_with_its_owners_number_of_colluders() -> None:
    sums(colluding=1).masks(plan(), "run", 0, MemorySecrets())
    with pytest.raises(RefusalError, match=r"of which 2 may collude, got 3"):
        sums(colluding=2).masks(plan(), "run", 0, MemorySecrets())


def test_rosters_and_places_are_the_owners() -> None:
    with pytest.raises(RefusalError, match="the plan is about the roster"):
        sums().masks(plan(roster="0" * 64), "run", 0, MemorySecrets())
    with pytest.raises(RefusalError, match="the server counts this silo as party 1, the roster as party 0"):
        sums().masks(plan(), "run", 1, MemorySecrets())
    with pytest.raises(ParameterError, match="colluding"):
        sums(colluding=3)


def test_both_halves_agree_on_a_plan(tmp_path: Path) -> None:
    """Widths, rounds and contexts come from the plan on both sides; silos keep ledgers, and start again."""
    made = plan()
    schedule = made.schedule()
    with ExitStack() as open_files:
        ledgers = [open_files.enter_context(ledger_at(tmp_path / f"{k}.ledger")) for k in range(4)]
        for ledger in ledgers:
            ledger.reserve("run", price=PrivacyBudget(1.0), plan_digest=b"p", event=b"")

        def started(k: int) -> SiloMasks:
            return sums(k).masks(made, "run", k, LedgerStore(ledgers[k], "run").secrets)

        def exchange(stage: str, requests: Mapping[int, bytes]) -> dict[int, bytes]:
            return {k: started(k).respond(stage, data) for k, data in requests.items()}

        server = RecoverableSums.of_plan(made, MaskContext(ROSTER, made.digest(), "run"))
        for step in range(schedule.rounds):
            width = schedule.step(step).summed[0].width
            assert server.prepare(step, exchange)
            vectors = [np.full(3, k - 1, dtype=np.int64) for k in range(4)]
            answers = {k: started(k).mask(step, DIGEST, vectors[k], width) for k in range(4) if k != step % 4}
            opened = server.open(step, DIGEST, answers, exchange)
            assert opened is not None
            assert opened[1] == tuple(sorted(answers))
            assert np.array_equal(opened[0], total([vectors[k] for k in answers]))
        roots = [LedgerStore(ledger, "run").secrets.find(root_name(0)) for ledger in ledgers]
        for k, root in enumerate(roots):
            assert root is not None
            assert root in (tmp_path / f"{k}.ledger").read_bytes()
            started(k).wipe()
            with pytest.raises(RefusalError):
                started(k).respond("advertise", bytes(8))
    for k, root in enumerate(roots):
        assert root is not None
        assert root not in (tmp_path / f"{k}.ledger").read_bytes()  # overwritten, not only unlinked
