"""A bandit that runs for real: batches out, answers in, and a file that is never behind what was seen."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tacit.bandits.answers import answer_pairs, answer_places, decode_high, noisy_high, round_rewards
from tacit.bandits.elimination import Batch, Decision, Elimination, begin, decide, next_batch
from tacit.bandits.paying import check_payers, drawn_once, is_kept
from tacit.bandits.plan import BanditPlan
from tacit.bandits.record import AnsweredBatch, IssuedBatch, RunRecord, read_record
from tacit.bandits.reward_privacy import RewardNoise
from tacit.errors import DataError, ParameterError, RefusalError, check_count
from tacit.ledger import Ledger
from tacit.ledger.private_files import replace_private, unfinished_file
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, TrustModel
from tacit.privacy.strict_json import MOST_BYTES
from tacit.randomness import secure, simulated

__all__ = ["LiveBandit"]

_DIGITS = 1e-6


class LiveBandit:
    """A batched elimination with real clients, kept in a file.

    `next_batch` says what to play; `observe` takes the answers of that batch, all at once and once only. What
    is decided is on disk before it is returned, so that a process may be killed at any time: an answered
    batch is never answered again, and no noise is drawn twice for what anybody may have seen.

    The file holds the plan, the noisy sums and who is left: what the guarantee covers, and no reward. Without
    a ledger it must not be put back to an older copy, which would draw fresh noise for the same rewards.

    Args:
        path: The file; made by `start`, read by `resume`.

    Example:
        >>> import tempfile
        >>> plan = BanditPlan(actions=np.eye(2), horizon=100)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     bandit = LiveBandit.start(plan, Path(folder) / "run.json")
        ...     batch = bandit.next_batch()
        ...     found = bandit.observe(batch.number, batch.in_order(), [0.5, -0.5, 0.5, -0.5][: batch.rounds])
        ...     again = LiveBandit.resume(Path(folder) / "run.json")
        >>> again.answered
        1

    Reference:
        Girgis (2023), Algorithms 6.3.1, 6.3.2 and 6.4.1.
    """

    def __init__(self, path: Path, record: RunRecord) -> None:
        self._path = path
        self._record = record
        self._plan = record.to_plan()
        self._accounts: tuple[Ledger, ...] = ()

    @classmethod
    def start(
        cls,
        plan: BanditPlan,
        path: str | Path,
        *,
        seed: int | None = None,
        accounts: Sequence[Ledger] = (),
    ) -> LiveBandit:
        """Start a run.

        Args:
            plan: What is played. Private plans need discrete noise.
            path: File to keep it in, which must not exist.
            seed: Of a simulation, which protects nobody; None draws noise from secret randomness.
            accounts: Open ledgers that pay, see `pay_from`.

        Raises:
            ParameterError: The file exists, the horizon is too short, or the noise is not exact.
            BudgetError: The run costs more than what is left in a ledger.
            LedgerError: A ledger is about other neighbours.
        """
        where = Path(path)
        if seed is not None:
            check_count("seed", seed, low=0, high=2**62)
        if plan.privacy.private and plan.privacy.noise is not RewardNoise.DISCRETE:
            raise ParameterError(
                "noise must be discrete for real clients: continuous noise is for simulations."
            )
        if plan.privacy.summed:
            raise ParameterError(
                "trust must be central, shuffle, local or None for a run that is kept in a file, got "
                "aggregate: there silos answer the steps of a plan (federated_bandit)."
            )
        state = begin(plan)
        next_batch(plan, state)  # what has no first batch is refused before there is a file
        record = RunRecord.of(plan, state, seed=seed)
        # Each batch adds its core set; without one, all actions that are left.
        later = 0 if plan.core else 60 * plan.schedule.batches * len(plan.actions)
        if 2 * len(record.to_json()) + later > MOST_BYTES:
            raise ParameterError(
                f"actions must fit into a file of {MOST_BYTES:,} bytes, got {len(plan.actions):,}: thin them."
            )
        check_payers(accounts, record, plan)
        with _locked(where):
            if where.exists():
                raise ParameterError(
                    f"path must not exist yet, got {str(where)!r}: resume it, or name another."
                )
            replace_private(where, record.to_json())
        found = cls(where, record)
        found.pay_from(accounts)
        return found

    @classmethod
    def resume(
        cls, path: str | Path, *, plan: BanditPlan | None = None, seed: int | None = None
    ) -> LiveBandit:
        """Go on with a run.

        Args:
            path: The file.
            plan: If given, what the run must be of.
            seed: That of the run.

        Raises:
            ParameterError: The file is missing or no record, or of another plan or seed; nothing is changed.
        """
        where = Path(path)
        record = read_record(where)
        found = cls(where, record)
        if seed != record.seed:
            ours = "secret randomness" if record.seed is None else f"the seed {record.seed}"
            asked = "none" if seed is None else repr(seed)
            raise ParameterError(f"seed must be that of the run, which draws from {ours}; got {asked}.")
        if plan is not None:
            _check_same(plan.facts(), found.plan.facts())
        _check_levels(record, found.plan, where)
        with _locked(where):
            # Of a process that was killed: sums of rewards under noise that nobody was told, and that will be
            # drawn afresh.
            unfinished_file(where).unlink(missing_ok=True)
        return found

    def pay_from(self, accounts: Sequence[Ledger]) -> None:
        """Have ledgers pay from now on, where the server adds the noise.

        The whole run is paid for once, with its first answered batch. The last ledger keeps the noisy sums,
        so that they are drawn once even if the file of the run is put back to an older copy.

        Args:
            accounts: Open ledgers about the rewards, which stay open while answers come in.

        Raises:
            BudgetError: The run costs more than what is left in one of them.
            LedgerError: One of them is about other neighbours.
            ParameterError: Nothing is to be paid under this trust model, or in a simulation.
        """
        check_payers(accounts, self._record, self._plan)
        self._accounts = tuple(accounts)

    @property
    def plan(self) -> BanditPlan:
        """What is played."""
        return self._plan

    @property
    def answered(self) -> int:
        """How many batches are answered."""
        return len(self._record.answered)

    @property
    def best(self) -> int:
        """Row of the action that is best by all that was seen so far; public."""
        return self._record.best

    @property
    def alive(self) -> IntArray:
        """Rows of the actions that are left, ascending; public."""
        return np.array(self._record.alive, dtype=np.int64)

    @property
    def finished(self) -> bool:
        """Whether nothing is to be learned any more; the final batch may still have to be played."""
        return self._record.issued is not None and self._record.issued.final

    @property
    def draws_noise(self) -> bool:
        """Whether `observe` draws secret noise, so that the same rewards twice would be two releases."""
        privacy = self._plan.privacy
        return privacy.private and not privacy.by_message and self._record.seed is None

    @property
    def is_kept(self) -> bool:
        """Whether a ledger holds the noisy sums of the batch that is out: the file is an older copy."""
        issued = self._record.issued
        return issued is not None and not issued.final and is_kept(self._accounts, self._record, issued.batch)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What the batches so far cost, the one that is out included, for each observer."""
        batches: list[AnsweredBatch | IssuedBatch] = list(self._record.answered)
        if self._record.issued is not None and not self._record.issued.final:
            batches.append(self._record.issued)
        return self._plan.privacy.guarantees(
            [(b.batch.counts, b.batch.level) for b in batches], simulated=self._record.seed is not None
        )

    def decisions(self) -> tuple[tuple[IntArray, Decision], ...]:
        """Return what followed from each answered batch, and the actions that were left before it; public.

        Computed again from the noisy sums in the file.
        """
        state, found = begin(self._plan), []
        for one in self._record.answered:
            decision = decide(self._plan, state, one.batch, np.array(one.sums))
            found.append((state.alive, decision))
            state = decision.state
        return tuple(found)

    def next_batch(self) -> Batch:
        """Return what is to be played now: the same batch until it is answered.

        Returns:
            A batch. Under shuffle trust its actions are dealt by the shuffler (`Batch.deal`), and `level` is
            what clients randomize at. The last one is `final`: play it, and collect nothing.
        """
        if self._record.issued is None:
            batch = next_batch(self._plan, self._state())
            if batch is None:
                raise RefusalError("the run is over: all rounds of the horizon are played.")
            self._commit(self._record.with_issued(batch))
            return batch
        return self._record.issued.batch

    def observe(self, number: int, actions: npt.ArrayLike, answers: npt.ArrayLike) -> Decision:
        """Take the answers of the batch that is out, and decide.

        Args:
            number: Of the batch.
            actions: Shape (n,): row of the action of each answer, in any order.
            answers: Shape (n,): rewards under central trust or none, which are clipped to the range of the
                plan; under local and shuffle trust the messages, 0 and 1, as `reward_message` makes them.

        Returns:
            The decision, which is on disk already.

        Raises:
            BudgetError: The run costs more than what is left in a ledger; nothing was used.
            LedgerError: A ledger is about other neighbours, or cannot be used.
            RefusalError: The batch was answered, or is not out: rewards are used once.
            DataError: Not exactly as many answers for each action as were asked for. A batch with fewer would
                be less private than was said under shuffle trust, and is never decoded: have other clients
                play what is missing.
        """
        batch = self._waiting(number)
        rows, values = answer_pairs(actions, answers)
        place = answer_places(batch, rows)
        if self._plan.privacy.by_message and not bool(np.all((values == 0) | (values == 1))):
            raise DataError("answers must be messages 0 and 1 under local and shuffle trust.")
        sums = self._sums(batch, place, values)
        return self._decided(batch, sums)

    def observe_counts(self, number: int, high: Mapping[int, int]) -> Decision:
        """Take the numbers of messages that are 1, for each action: what an aggregator of messages passes on.

        Args:
            number: Of the batch.
            high: By row of the action.

        Raises:
            RefusalError: As `observe`; or the trust model has no messages.
            DataError: Other actions than those of the batch, or more ones than messages.
        """
        batch = self._waiting(number)
        if not self._plan.privacy.by_message:
            raise RefusalError("counts of messages are for local and shuffle trust; give rewards to observe.")
        given = np.array([high.get(int(a), -1) for a in batch.actions])
        ones = given.astype(np.int64) if given.dtype.kind in "iu" else np.full(len(given), -1)
        if len(high) != len(ones) or np.any(ones < 0) or np.any(ones > batch.counts):
            raise DataError(
                f"high must hold a number of messages for each of the actions {batch.actions.tolist()}, from "
                f"0 to {batch.counts.tolist()}."
            )
        return self._decided(batch, decode_high(self._plan, batch, ones))

    def _waiting(self, number: int) -> Batch:
        """Return the batch that is out, if that is the one."""
        number = check_count("number", number)
        if number <= self.answered:
            raise RefusalError(f"batch {number} is answered: rewards are used once, and noise is drawn once.")
        issued = self._record.issued
        if issued is None or issued.batch.number != number:
            raise RefusalError(f"batch {number} is not out; next_batch says which one is.")
        if issued.final:
            raise RefusalError("the final batch takes no answers: nothing is learned from it.")
        return issued.batch

    def _sums(self, batch: Batch, place: IntArray, values: Array) -> Array:
        """Return unbiased sums of rewards, with what noise the server adds."""
        plan = self._plan
        low, high = plan.reward_range
        if plan.privacy.by_message:
            ones = np.bincount(place, weights=values, minlength=len(batch.actions)).astype(np.int64)
            return decode_high(plan, batch, ones)
        if not plan.privacy.private:
            clipped = np.clip(np.nan_to_num(values, nan=low), low, high)
            return np.bincount(place, weights=clipped, minlength=len(batch.actions))
        seed = self._record.seed
        # A stream of its own for each batch: a seeded run that is repeated draws the same noise.
        rng = secure() if seed is None else simulated(seed, "bandit", batch.number)

        def draw() -> IntArray:
            bits = round_rewards(values, plan.reward_range, rng)
            ones = np.bincount(place, weights=bits, minlength=len(batch.actions)).astype(np.int64)
            return noisy_high(ones, batch.level, rng)

        paid = self._accounts
        return decode_high(plan, batch, drawn_once(paid, self._record, plan, batch, draw) if paid else draw())

    def _decided(self, batch: Batch, sums: Array) -> Decision:
        """Decide, and return it once it is on disk."""
        decision = decide(self._plan, self._state(), batch, sums)
        self._commit(self._record.with_answer(batch, sums, decision))
        return decision

    def _state(self) -> Elimination:
        """Return where the run stands."""
        record = self._record
        return Elimination(
            alive=self.alive, number=len(record.answered) + 1, played=record.played, best=record.best
        )

    def _commit(self, record: RunRecord) -> None:
        """Put a record on disk, unless another process was there since this one read it."""
        with _locked(self._path):
            if read_record(self._path).to_json() != self._record.to_json():
                raise RefusalError(
                    f"{str(self._path)!r} was changed by another process since it was read: resume it again."
                )
            replace_private(self._path, record.to_json())
        self._record = record


def _check_same(asked: dict[str, object], found: dict[str, object]) -> None:
    """Refuse a plan that differs from that of a run, by the name of the first difference."""
    for name, value in found.items():
        if asked[name] != value:
            raise ParameterError(
                f"{name.replace('_digest', '')} must be that of the run, {value!r}, got {asked[name]!r}."
            )


def _check_levels(record: RunRecord, plan: BanditPlan, path: Path) -> None:
    """Refuse levels that no batch of the plan has: the file was changed by hand."""
    privacy = plan.privacy
    issued = [] if record.issued is None or record.issued.final else [record.issued.batch]
    for batch in (*(found.batch for found in record.answered), *issued):
        # Another machine may differ in the last digits of a calibration.
        right = batch.level >= privacy.epsilon * (1 - _DIGITS)
        if privacy.trust is not TrustModel.SHUFFLE:
            right = right and batch.level <= privacy.epsilon * (1 + _DIGITS)
        elif batch in issued:
            right = right and batch.level <= privacy.level(batch.counts) * (1 + _DIGITS)
        if not right:
            raise ParameterError(
                f"{str(path)!r} is no record of a bandit: batch {batch.number} has a level of "
                f"{batch.level!r}, which is not that of the plan's budget."
            )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a run while it is read and replaced."""
    with path.with_name(f"{path.name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
