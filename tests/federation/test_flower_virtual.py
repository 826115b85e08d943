"""Virtual silos as Flower's workers call them: what they remember is with the node, not with the worker."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from ray import cloudpickle

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation import Disjoint, Fixed, Plan, Query, Silo
from tacit.federation.flower import FlowerFederation
from tacit.federation.flower import virtual as module
from tacit.federation.flower.messages import bytes_of, content_of
from tacit.federation.flower.virtual import (
    Answering,
    Considering,
    Greeting,
    Introduction,
    MakeSilo,
    Refusing,
    VirtualAnswer,
    VirtualPrice,
    VirtualReply,
    VirtualRequest,
    VirtualSilos,
)
from tacit.federation.network.queries import encode_query
from tacit.learning import NoisyMinibatchSGD, Settings
from tacit.learning.preparation import prepare
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.federation import aggregates
from tests.federation.deployed.partitions import OBJECTIVE, D, failing, trusting

SEED = 4
BUDGET = PrivacyBudget(4.0, 1e-5)
SIZE = 40


@pytest.fixture(autouse=True)
def _a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has loaded nothing yet."""
    for name, number in (("_task_id", 1), ("_run_id", 7), ("_node_id", 5)):
        monkeypatch.setattr(TaskIdentity, name, number)
    module._READY.clear()


def node(partition: int = 0) -> Context:
    config: dict[str, Any] = {"partition-id": partition, "num-partitions": 3}
    return Context(run_id=7, node_id=5, node_config=config, state=RecordDict(), run_config={})


def said(
    context: Context,
    request: VirtualRequest,
    *,
    make: MakeSilo = trusting,
    seed: int | None = SEED,
) -> VirtualReply:
    message = Message(content_of(msgspec.msgpack.encode(request)), dst_node_id=5, message_type="query.tacit")
    message.metadata.__dict__["_message_id"] = "1"
    maker: bytes = cloudpickle.dumps(make)  # type: ignore[no-untyped-call]
    reply = VirtualSilos(maker, seed, b"token")(message, context)
    found: VirtualReply = msgspec.msgpack.decode(bytes_of(reply.content) or b"", type=VirtualReply)
    return found


def plan(batch: Any = None) -> Plan:
    algorithm = NoisyMinibatchSGD(rounds=4, batch=batch or Fixed(rate=0.5))
    settings = Settings(objective=OBJECTIVE, algorithm=algorithm, trust=TrustModel.LOCAL, budget=BUDGET)
    return prepare(settings, [SIZE]).plan


PLAN = plan()
TEXT = PLAN.to_toml()
RADIUS = tuple(measure.max_radius for measure in PLAN.kinds[0][0].measures)


def asking(step: int, *, opening: bytes = b"first", w: float = 0.0, secret: bytes | None = None) -> Answering:
    query = encode_query(Query(step, {"w": np.full(D, w)}, RADIUS))
    return Answering(TEXT, "run", 0, BUDGET, opening, query, None, secret)


def answer(context: Context, request: Answering, **options: Any) -> bytes:
    found = said(context, request, **options)
    assert isinstance(found, VirtualAnswer), found
    return found.answer


def silo() -> Silo:
    """The same silo as an object of this process."""
    made = trusting(0, simulated(SEED, "silo", 0))
    made.accept(PLAN, party=0, run="run", budget=BUDGET)
    return made


def wanted(steps: int) -> list[bytes]:
    one = silo()
    return [one.answer(Query(step, {"w": np.zeros(D)}, RADIUS)) for step in range(steps)]


def test_it_says_who_it_is() -> None:
    assert said(node(2), Greeting()) == Introduction(2, "silo 2", 42, None, simulated=True)
    module._READY.clear()
    assert said(node(2), Greeting(), seed=None) == Introduction(2, "silo 2", 42, None, simulated=False)


def test_answers_are_those_of_a_silo_whichever_worker_gives_them() -> None:
    context = node()
    found = []
    for step in range(4):
        if step != 2:
            module._READY.clear()  # another worker
        found.append(answer(context, asking(step)))
    assert found == wanted(4)


def test_an_answer_that_got_lost_is_given_again() -> None:
    """A worker that dies returns no context; whoever computes it again starts from the same state."""
    context = node()
    answer(context, asking(0))
    lost = Context(
        run_id=7,
        node_id=5,
        node_config=dict(context.node_config),
        state=context.state.copy(),
        run_config={},
    )
    assert answer(lost, asking(1)) == wanted(2)[1]
    assert answer(context, asking(1)) == wanted(2)[1]  # the worker's own silo has gone on meanwhile
    assert answer(context, asking(1)) == wanted(2)[1]  # and what is stored is repeated


def test_an_answer_that_got_lost_before_anything_was_noted_is_given_again() -> None:
    assert answer(node(), asking(0)) == answer(node(), asking(0)) == wanted(1)[0]


def test_a_step_at_another_point_is_refused() -> None:
    context = node()
    answer(context, asking(0))
    found = said(context, asking(0, w=1.0))
    assert isinstance(found, Refusing)
    with pytest.raises(RefusalError, match="has been answered at another point"):
        raise found.to_error()


def test_another_opening_starts_afresh_with_fresh_noise() -> None:
    context = node()
    first = answer(context, asking(0))
    second = answer(context, asking(0, opening=b"second", w=1.0))
    assert first != second
    one = silo()
    one.answer(Query(0, {"w": np.zeros(D)}, RADIUS))
    one.accept(PLAN, party=0, run="run", budget=BUDGET)
    assert second == one.answer(Query(0, {"w": np.ones(D)}, RADIUS))


def test_secret_randomness_is_not_noted_down() -> None:
    a, b = node(), node()
    assert answer(a, asking(0), seed=None) != answer(b, asking(0), seed=None)
    record = a.state["tacit"]
    assert sorted(record) == ["opening", "store"]
    assert answer(a, asking(0), seed=None) == answer(a, asking(0), seed=None)


def test_the_order_of_disjoint_batches_is_kept_where_the_server_wants_it() -> None:
    disjoint = plan(Disjoint(rate=0.25))
    radius = tuple(measure.max_radius for measure in disjoint.kinds[0][0].measures)

    def ask(context: Context, step: int, secret: bytes | None) -> VirtualAnswer:
        query = encode_query(Query(step, {"w": np.zeros(D)}, radius))
        request = Answering(disjoint.to_toml(), "run", 0, BUDGET, b"o", query, None, secret)
        found = said(context, request)
        assert isinstance(found, VirtualAnswer), found
        return found

    drawn = ask(node(), 0, b"").secret
    assert drawn is not None
    assert sorted(np.frombuffer(drawn, dtype="<i8")) == list(range(SIZE))
    assert ask(node(), 1, drawn).secret == drawn  # another simulation goes on
    assert ask(node(), 0, None).secret is None


def test_it_prices_a_plan_and_refuses_what_is_too_dear() -> None:
    found = said(node(), Considering(TEXT, "run", 0, BUDGET, reserve=False))
    assert isinstance(found, VirtualPrice)
    assert Guarantee.from_json(found.price) == trusting(0, simulated(1)).consider(PLAN)
    assert found.alone == b""
    refused = said(node(), Considering(TEXT, "run", 0, PrivacyBudget(0.1, 1e-5), reserve=False))
    assert isinstance(refused, Refusing)
    assert isinstance(refused.to_error(), BudgetError)


def test_a_silo_that_is_added_up_states_two_prices() -> None:
    def summed(partition: int, rng: np.random.Generator | None) -> Silo:
        return aggregates.silos()[partition]

    made, one = aggregates.plan_of(), aggregates.silos()[0]
    found = said(node(), Considering(made.to_toml(), "run", 0, None, reserve=True), make=summed)
    assert isinstance(found, VirtualPrice)
    assert [Guarantee.from_json(data) for data in (found.price, found.alone)] == [
        one.consider(made),
        one.alone(made),
    ]


def test_what_a_maker_raises_does_not_travel() -> None:
    found = said(node(1), Greeting(), make=failing)
    assert isinstance(found, Refusing)
    assert "raised KeyError" in found.why
    assert "4711" not in found.why
    strange = said(node(), Greeting(), make=lambda *_: "no silo")  # type: ignore[arg-type]
    assert isinstance(strange, Refusing)
    assert isinstance(strange.to_error(), ParameterError)


def test_bytes_that_are_no_request_are_refused() -> None:
    message = Message(content_of(b"\xff nonsense"), dst_node_id=5, message_type="query.tacit")
    message.metadata.__dict__["_message_id"] = "1"
    reply = VirtualSilos(pickle.dumps(trusting), SEED, b"token")(message, node())
    assert isinstance(msgspec.msgpack.decode(bytes_of(reply.content) or b"", type=VirtualReply), Refusing)


def test_a_maker_that_holds_data_is_refused_before_anything_is_started() -> None:
    with (
        pytest.raises(ParameterError, match="must load its data by the number of the partition"),
        FlowerFederation.simulate(partial(_holding, np.ones(2**20)), 2),
    ):
        pytest.fail("nothing is handed over")


def test_a_ray_of_the_user_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    with (
        pytest.raises(ParameterError, match="Ray is in use in this process"),
        FlowerFederation.simulate(trusting, 2),
    ):
        pytest.fail("nothing is handed over")


def _holding(_data: np.ndarray, partition: int, rng: np.random.Generator | None) -> Silo:
    """Would make a silo of what came with it."""
    return trusting(partition, rng)
