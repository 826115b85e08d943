"""The ledger: what fits, what is charged once, what is kept and sent again."""

from __future__ import annotations

import doctest
import os
import stat
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BudgetError, LedgerError, ParameterError, RefusalError
from tacit.ledger import Cost, Ledger
from tacit.privacy import Neighbours, Part, PrivacyBudget, Relation, Unit

LIMIT = PrivacyBudget(2.0, 1e-5)
PERSONS = Neighbours(relation=Relation.ADD_REMOVE, unit=Unit.PERSON, part=Part.SENSITIVE)
DIGEST = b"d" * 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "silo.ledger"


def create(path: Path, limit: PrivacyBudget = LIMIT) -> Ledger:
    return Ledger.create(path, limit=limit, neighbours=PERSONS, label="ward 3")


def reserve(
    ledger: Ledger, run: str, epsilon: float = 0.5, delta: float = 0.0, *, plan: bytes = DIGEST
) -> None:
    ledger.reserve(
        run, price=PrivacyBudget(epsilon, delta), plan_digest=plan, event=b"event of " + run.encode()
    )


def filled(path: Path) -> Path:
    with create(path) as ledger:
        for run in ("run-1", "run-2"):
            reserve(ledger, run)
            for step in range(2):
                ledger.store_answer(
                    run, step, query_digest=b"q", answer=run.encode() * 100, state=b"s%d" % step
                )
    return path


# What a ledger says


def test_a_reopened_ledger_says_what_was_written(path: Path) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1", 0.5, 1e-6)
        reserve(ledger, "run-2", 0.25)
        ledger.store_answer("run-1", 3, query_digest=b"q", answer=b"a", state=b"s")
    with Ledger.open(str(path)) as ledger:
        assert (ledger.limit, ledger.neighbours, ledger.label, ledger.path) == (
            LIMIT,
            PERSONS,
            "ward 3",
            path,
        )
        first, second = ledger.entries()
        assert (first.run, first.epsilon, first.delta, first.event) == ("run-1", 0.5, 1e-6, b"event of run-1")
        assert (second.run, second.plan_digest) == ("run-2", DIGEST.hex())
        assert first.time.endswith("+00:00")
        assert ledger.spent() == Cost(0.75, 1e-6)
        assert ledger.remaining() == Cost(1.25, 9e-6)
        assert ledger.answer("run-1", 3) == (b"q", b"a")
        assert ledger.answer("run-1", 2) is None
        assert ledger.answer("unknown", 3) is None
        assert ledger.state("run-1") == b"s"


def test_an_integer_price_and_limit_read_back_as_they_were_sealed(path: Path) -> None:
    with create(path, PrivacyBudget(3, 0)) as ledger:
        reserve(ledger, "run-1", 2, 0)
    with Ledger.open(path) as ledger:
        assert ledger.remaining() == Cost(1.0, 0.0)


def test_the_file_is_for_its_owner_only(path: Path) -> None:
    mask = os.umask(0)
    try:
        create(path).close()
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_a_ledger_is_never_overwritten(path: Path) -> None:
    create(path).close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"exists already; a ledger is never overwritten"):
        create(path, PrivacyBudget(1000.0))
    assert path.read_bytes() == before


def test_a_folder_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"cannot be created: No such file or directory"):
        create(tmp_path / "nowhere" / "silo.ledger")


@pytest.mark.parametrize("label", ["x" * 201, "two\nlines"])
def test_a_label_is_one_printable_line(path: Path, label: str) -> None:
    with pytest.raises(ParameterError, match="label must be a printable text of 0 to 200 characters"):
        Ledger.create(path, limit=LIMIT, neighbours=PERSONS, label=label)
    assert not path.exists()


# What fits


EXACT = [(2.0, 0.5, 4), (0.3, 0.1, 3), (0.7, 0.1, 7), (1.1, 1.1, 1), (2.1e-5, 7e-6, 3)]


@pytest.mark.parametrize(("limit", "price", "count"), EXACT)
def test_written_decimals_of_epsilon_add_exactly(path: Path, limit: float, price: float, count: int) -> None:
    with create(path, PrivacyBudget(limit)) as ledger:
        for number in range(count):
            reserve(ledger, f"run-{number}", price)
        assert (ledger.spent(), ledger.remaining()) == (Cost(limit, 0.0), Cost(0.0, 0.0))
        with pytest.raises(BudgetError, match=r"above what is left: 0\.0 at 0\.0"):
            reserve(ledger, "one too many", 5e-324)


@pytest.mark.parametrize(("limit", "price", "count"), [(3e-6, 1e-6, 3), *EXACT[1:3], EXACT[-1]])
def test_written_decimals_of_delta_add_exactly(path: Path, limit: float, price: float, count: int) -> None:
    with create(path, PrivacyBudget(1.0, limit)) as ledger:
        for number in range(count):
            reserve(ledger, f"run-{number}", 1e-9, price)
        assert (ledger.spent().delta, ledger.remaining().delta) == (limit, 0.0)
        with pytest.raises(BudgetError, match=r"above what is left: .* at 0\.0 of"):
            reserve(ledger, "one too many", 1e-9, 5e-324)


@settings(max_examples=40)
@given(
    limit=st.floats(0.1, 10.0),
    prices=st.lists(st.floats(1e-3, 3.0), min_size=1, max_size=8),
)
def test_no_sequence_of_prices_overspends(
    tmp_path_factory: pytest.TempPathFactory, limit: float, prices: list[float]
) -> None:
    with create(tmp_path_factory.mktemp("ledger") / "l", PrivacyBudget(limit)) as ledger:
        ledger._file._connection.execute("PRAGMA synchronous = OFF")  # this is about sums, not power cuts
        total, given, limit = Fraction(0), limit, ledger.limit.epsilon
        assert given <= limit < given + 1.1e-6  # as prices are stated
        for number, price in enumerate(prices):
            fits = total + Fraction(repr(price)) <= Fraction(repr(limit))
            try:
                reserve(ledger, f"run-{number}", price)
            except BudgetError:
                assert not fits
            else:
                assert fits
                total += Fraction(repr(price))
        spent, left = ledger.spent(), ledger.remaining()
        assert total <= Fraction(repr(spent.epsilon)) <= total * (1 + Fraction(1, 2**50))
        assert 0 <= Fraction(repr(left.epsilon)) <= Fraction(repr(limit)) - total
        if left.epsilon > 0:
            reserve(ledger, "the rest", left.epsilon)


def test_a_limit_is_rounded_up_as_stated_prices_are(path: Path) -> None:
    with create(path, PrivacyBudget(1 / 3)) as ledger:
        assert ledger.limit.epsilon == 0.333334
        reserve(ledger, "made for 1/3", 0.333334)
        with pytest.raises(BudgetError):
            reserve(ledger, "one more", 1e-6)


def test_a_refusal_names_what_is_asked_left_and_reserved_and_spends_nothing(path: Path) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1", 1.5, 4e-6)
        message = (
            "run 'run-2' would reserve epsilon 0.75 at delta 1e-06, above what is left: 0.5 at 6e-06 of the "
            "limit 2.0 at 1e-05; 1 runs have reserved 1.5 at 4e-06."
        )
        with pytest.raises(BudgetError, match=message.replace(".", r"\.")):
            reserve(ledger, "run-2", 0.75, 1e-6)
        with pytest.raises(BudgetError, match="above what is left"):
            reserve(ledger, "run-2", 0.1, 7e-6)
        assert [entry.run for entry in ledger.entries()] == ["run-1"]
        reserve(ledger, "run-2", 0.5, 6e-6)
        assert ledger.remaining() == Cost(0.0, 0.0)


# One run, one charge


def test_a_restarted_run_is_charged_once_even_when_nothing_is_left(path: Path) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1", 2.0)
        before = ledger.entries()
        for _ in range(3):
            reserve(ledger, "run-1", 2.0)
        assert ledger.entries() == before


@pytest.mark.parametrize(
    ("epsilon", "delta", "plan"), [(0.4, 0.0, DIGEST), (0.5, 1e-9, DIGEST), (0.5, 0.0, b"other")]
)
def test_a_run_cannot_change_its_plan_or_price(path: Path, epsilon: float, delta: float, plan: bytes) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1", 0.5)
        with pytest.raises(LedgerError, match="run 'run-1' is reserved already, with another plan or price"):
            reserve(ledger, "run-1", epsilon, delta, plan=plan)
        assert ledger.spent() == Cost(0.5, 0.0)


@pytest.mark.parametrize("run", ["", "x" * 201, "two\nlines", "\ud800"])
def test_a_run_has_a_printable_name(path: Path, run: str) -> None:
    with create(path) as ledger, pytest.raises(ParameterError, match="run must be a printable text"):
        ledger.reserve(run, price=PrivacyBudget(0.5), plan_digest=DIGEST, event=b"")


@pytest.mark.parametrize("plan", [b"", b"x" * 65])
def test_a_digest_has_a_sane_length(path: Path, plan: bytes) -> None:
    with (
        create(path) as ledger,
        pytest.raises(ParameterError, match=r"plan_digest must have 1 to 64 bytes, got \d+"),
    ):
        reserve(ledger, "run-1", plan=plan)


# Answers


def test_the_same_query_gets_the_stored_bytes_and_another_is_refused(path: Path) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1")
        store = ledger.store_answer
        assert store("run-1", 0, query_digest=b"here", answer=b"first", state=b"s1") == b"first"
        assert store("run-1", 0, query_digest=b"here", answer=b"fresh noise", state=b"s2") == b"first"
        with pytest.raises(RefusalError, match="step 0 of run 'run-1' has been answered at another point"):
            store("run-1", 0, query_digest=b"there", answer=b"first")
        assert ledger.answer("run-1", 0) == (b"here", b"first")
        assert ledger.state("run-1") == b"s1"


def test_nothing_is_answered_without_a_reservation(path: Path) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1")
        with pytest.raises(LedgerError, match="run 'run-2' has no reservation"):
            ledger.store_answer("run-2", 0, query_digest=b"q", answer=b"a")
        assert ledger.answer("run-2", 0) is None


def test_the_state_is_the_last_one_stored_for_the_run(path: Path) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1")
        reserve(ledger, "run-2")
        assert ledger.state("run-1") is None
        ledger.store_answer("run-1", 5, query_digest=b"q", answer=b"a", state=b"old")
        ledger.store_answer("run-1", 2, query_digest=b"q", answer=b"a", state=b"new")
        ledger.store_answer("run-1", 9, query_digest=b"q", answer=b"a")
        ledger.store_answer("run-2", 1, query_digest=b"q", answer=b"a", state=b"another run's")
        assert ledger.state("run-1") == b"new"


@pytest.mark.parametrize("step", [-1, 2**63, True, 1.0])
def test_a_step_is_a_whole_number(path: Path, step: int) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1")
        with pytest.raises(ParameterError, match="step must be a whole number"):
            ledger.store_answer("run-1", step, query_digest=b"q", answer=b"a")


def test_an_empty_answer_is_an_answer(path: Path) -> None:
    with create(path) as ledger:
        reserve(ledger, "run-1")
        ledger.store_answer("run-1", 0, query_digest=b"q", answer=b"", state=b"")
        assert ledger.answer("run-1", 0) == (b"q", b"")
        assert ledger.state("run-1") == b""


def test_threads_may_share_a_ledger(path: Path) -> None:
    outcomes: list[str] = []

    def spend(name: str) -> None:
        for number in range(4):
            try:
                reserve(ledger, f"{name}-{number}", 0.1)
                outcomes.append("reserved")
            except BudgetError:
                outcomes.append("refused")

    with create(path, PrivacyBudget(0.7)) as ledger:
        threads = [threading.Thread(target=spend, args=(f"thread-{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (outcomes.count("reserved"), outcomes.count("refused")) == (7, 9)
        assert ledger.remaining().epsilon == 0.0


# The page about it


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "how-to" / "ledger.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
