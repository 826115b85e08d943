"""A shuffler that has forgotten all, and kept old answers, mixes what was made for one another or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.federation import Circle, InProcess, Plan, Query, Shuffler, Silo, open_answer
from tacit.federation.answers import Answer, answer_bytes, encode_answer
from tests.federation.test_shuffle_rounds import DATA, SIZES, plan_of, row
from tests.federation.world import AT, DIM, Rows, ask_at, ledger_at

RADII = (1.0,)
PLAN = plan_of(2)
REFUSED = "made for another query, circle or run"


def shuffler(made: Plan = PLAN, run: str = "run") -> Shuffler:
    return Shuffler(made, run=run, rng=np.random.default_rng(3))


def silo(k: int, ledger: Any = None) -> Silo:
    return Silo(Rows(DATA[k]), {"row": row}, name=f"s{k}", ledger=ledger, trusts_shuffler=True)


def circle_of(parties: tuple[int, ...], ledgers: Any = None, session: bytes = b"") -> Circle:
    accounts = tuple(None if ledgers is None else ledgers[k].fingerprint for k in parties)
    return Circle(parties, tuple(SIZES[k] for k in parties), accounts, session)


def sent(
    query: Query, circle: Circle, *, made: Plan = PLAN, run: str = "run", ledgers: Any = None
) -> dict[int, bytes]:
    """What silos send, each in a process of its own that has just begun."""
    found = {}
    for k in circle.parties:
        one = silo(k, None if ledgers is None else ledgers[k])
        one.accept(made, party=k, run=run)
        found[k] = one.answer(query, circle)
    return found


def ones(answers: Mapping[int, bytes]) -> Any:
    """How many ones there are in answers, by coordinate, whatever they are bound to."""
    return sum(open_answer(data, party=k)[0][0].payload for k, data in answers.items())


def test_old_answers_make_the_batch_that_they_made_before(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ledgers = [stack.enter_context(ledger_at(tmp_path / f"{k}", epsilon=1000.0)) for k in range(3)]
        circle = circle_of((0, 1, 2), ledgers)
        first, again = (sent(ask_at(0), circle, ledgers=ledgers) for _ in range(2))
    assert first == again
    batches = [shuffler().release(ask_at(0), circle, first).messages[0] for _ in range(2)]
    assert [m.payload.tolist() for m in batches[0]] == [m.payload.tolist() for m in batches[1]]


def _fewer(old: dict[int, bytes]) -> dict[int, bytes]:
    return {k: old[k] for k in (0, 1)}


MIXED: dict[str, tuple[Callable[[dict[int, bytes]], tuple[Query, Circle, dict[int, bytes]]], Plan, str]] = {
    "a smaller circle": (lambda old: (ask_at(0), circle_of((0, 1)), _fewer(old)), PLAN, "run"),
    "another circle": (
        lambda old: (
            ask_at(0),
            circle_of((0, 2)),
            {0: old[0], 2: sent(ask_at(0), circle_of((0, 2)))[2]},
        ),
        PLAN,
        "run",
    ),
    "one that comes from a smaller circle": (
        lambda old: (ask_at(0), circle_of((0, 1, 2)), {**old, 0: sent(ask_at(0), circle_of((0, 1)))[0]}),
        PLAN,
        "run",
    ),
    "another process": (
        lambda old: (
            ask_at(0),
            circle_of((0, 1, 2), session=b"now"),
            {**sent(ask_at(0), circle_of((0, 1, 2), session=b"now")), 2: old[2]},
        ),
        PLAN,
        "run",
    ),
    "another round": (lambda old: (ask_at(1), circle_of((0, 1, 2)), old), PLAN, "run"),
    "another point": (lambda old: (ask_at(0, np.ones(DIM)), circle_of((0, 1, 2)), old), PLAN, "run"),
    "another radius": (lambda old: (ask_at(0, radius=(0.5,)), circle_of((0, 1, 2)), old), PLAN, "run"),
    "another run": (lambda old: (ask_at(0), circle_of((0, 1, 2)), old), PLAN, "run-2"),
    "another plan": (lambda old: (ask_at(0), circle_of((0, 1, 2)), old), plan_of(2, rounds=5), "run"),
    "bound to nothing": (
        lambda old: (ask_at(0), circle_of((0, 1, 2)), {**old, 1: _unbound(old[1])}),
        PLAN,
        "run",
    ),
}


def _unbound(data: bytes) -> bytes:
    """An answer of the same length without what it is bound to."""
    answer = msgspec.msgpack.decode(data, type=Answer)
    return encode_answer(answer.messages, bytes(16))


@pytest.mark.parametrize("case", MIXED)
def test_answers_that_were_not_made_for_one_another_are_not_mixed(case: str) -> None:
    change, made, run = MIXED[case]
    old = sent(ask_at(0), circle_of((0, 1, 2)))
    assert shuffler().release(ask_at(0), circle_of((0, 1, 2)), old).parties == 3
    query, circle, answers = change(old)
    one = shuffler(made, run)
    with pytest.raises(RefusalError, match=REFUSED):
        one.release(query, circle, answers)
    # The refusal has left nothing behind: what belongs together is released.
    whole = sent(query, circle, made=made, run=run)
    assert one.release(query, circle, whole).parties == len(circle.parties)


def test_what_a_smaller_batch_would_have_told() -> None:
    """The control: from a batch and a smaller one of the same answers follows what one silo has sent."""
    old = sent(ask_at(0), circle_of((0, 1, 2)))
    assert (ones(old) - ones(_fewer(old))).tolist() == ones({2: old[2]}).tolist()


def test_no_process_mixes_answers_of_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ledgers, silos draw their noise anew, and the circle of a new process is another one."""
    kept: list[tuple[Circle, dict[int, bytes]]] = []
    release = Shuffler.release

    def keeping(self: Shuffler, query: Query, circle: Circle, answers: Mapping[int, bytes]) -> Any:
        kept.append((circle, dict(answers)))
        return release(self, query, circle, answers)

    monkeypatch.setattr(Shuffler, "release", keeping)
    for _ in range(2):
        InProcess([silo(k) for k in range(3)]).open(PLAN)(0, AT, RADII)
    (before, old), (now, new) = kept
    assert (before.parties, before.sizes) == (now.parties, now.sizes)
    assert before.digest != now.digest
    for mixed in ({**new, 0: old[0]}, old):
        with pytest.raises(RefusalError, match=REFUSED):
            shuffler().release(ask_at(0), now, mixed)


# --- the form on the wire


def test_only_answers_to_a_shuffler_carry_what_they_are_bound_to() -> None:
    messages = ((b"one", b"two"),)
    assert msgspec.msgpack.decode(encode_answer(messages)) == {"messages": [[b"one", b"two"]]}
    told = msgspec.msgpack.decode(encode_answer(messages, b"x" * 16))
    assert told == {"messages": [[b"one", b"two"]], "bound": b"x" * 16, "version": 2}
    answer = sent(ask_at(0), circle_of((0, 1, 2)))[0]
    assert len(answer) == answer_bytes(PLAN.kinds[0][0], SIZES[0])


@pytest.mark.parametrize(
    "changed",
    [{"version": 1}, {"version": 3}, {"version": "2"}, {"bound": b""}, {"bound": "x"}, {"more": 1}],
    ids=str,
)
def test_unknown_forms_are_refused(changed: dict[str, Any]) -> None:
    answer = sent(ask_at(0), circle_of((0, 1, 2)))[0]
    told = {**msgspec.msgpack.decode(answer), **changed}
    with pytest.raises(ParameterError, match="party 0 sent something that is not an answer"):
        open_answer(msgspec.msgpack.encode(told), party=0)
