"""A ledger of sensitive attributes pays for one choice of them, whoever comes at the same moment."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tacit.errors import LedgerError, ParameterError
from tacit.ledger import Ledger, charge, check_accounts, run_about
from tacit.privacy import Gaussian, Guarantee, Neighbours, Part, PrivacyBudget, guarantee

NEAR = Neighbours(part=Part.SENSITIVE)


def made(path: Path, part: Part = Part.SENSITIVE) -> Path:
    Ledger.create(path, limit=PrivacyBudget(9.0, 1e-2), neighbours=Neighbours(part=part)).close()
    return path


def price() -> Guarantee:
    return guarantee(Gaussian(5.0, NEAR), 1e-6, observer="everybody")


@pytest.mark.parametrize(
    "pair",
    [
        (["sex"], ["race"]),
        (["sex"], []),
        (["sex"], ["race", "sex"]),
        (["a", "b"], ["a+b"]),
        (["x about sex"], ["sex"]),
        (["about sex"], ["sex"]),
        (["?"], []),
        ([""], []),
        (["a" * 100], ["a" * 99]),
    ],
)
def test_other_attributes_have_other_names(pair: tuple[list[str], list[str]]) -> None:
    one, other = (run_about("run", names).rpartition(" about ")[2] for names in pair)
    assert one != other
    assert run_about("june", pair[0]) == run_about("june", pair[0][::-1])
    assert len(run_about("june", pair[0])) <= 200
    with pytest.raises(ParameterError, match="run must be at most"):
        run_about("r" * 199, pair[0])


def test_whoever_has_looked_first_is_refused_where_another_has_paid_meanwhile(tmp_path: Path) -> None:
    """Between the look and the payment of one process, the other one pays."""
    path = made(tmp_path / "owner.ledger")
    sex, race = run_about("one", ["sex"]), run_about("two", ["race"])
    with Ledger.open(path) as a, Ledger.open(path) as b:
        for ledger, run in ((a, sex), (b, race)):
            check_accounts([ledger], price(), run=run, plan=b"plan")
        charge([a], price(), run=sex, plan=b"plan")
        # What `charge` does after its own look: the transaction that reserves refuses it by itself.
        with pytest.raises(LedgerError, match="has paid for 'sex' as what is private"):
            b.reserve(race, price=PrivacyBudget(0.1), plan_digest=b"plan", event=b"")
        with pytest.raises(LedgerError, match="about 'race'"):
            check_accounts([b], price(), run=race, plan=b"plan")
        with pytest.raises(LedgerError, match="attributes without a name"):
            charge([b], price(), run="without", plan=b"plan")
        charge([b], price(), run=run_about("three", ["sex"]), plan=b"plan")
        assert [entry.run for entry in b.entries()] == [sex, run_about("three", ["sex"])]


def test_two_at_once_are_one(tmp_path: Path) -> None:
    path = made(tmp_path / "owner.ledger")
    inside, refused = threading.Event(), []

    def second() -> None:
        with Ledger.open(path) as ledger:
            inside.wait()
            try:
                charge([ledger], price(), run=run_about("two", ["race"]), plan=b"plan")
            except LedgerError as error:
                refused.append(str(error))

    other = threading.Thread(target=second)
    other.start()
    with (
        Ledger.open(path) as ledger,
        ledger.reserving(run_about("one", ["sex"]), price=PrivacyBudget(0.1), plan_digest=b"p", event=b""),
    ):
        inside.set()
        other.join(0.2)
    other.join()
    assert len(refused) == 1
    assert "nothing was spent" in refused[0]


def test_ledgers_of_whole_records_take_any_name(tmp_path: Path) -> None:
    with Ledger.open(made(tmp_path / "owner.ledger", Part.ALL)) as ledger:
        for run in ("june about sex", "june about race", "june"):
            ledger.reserve(run, price=PrivacyBudget(0.1), plan_digest=b"plan", event=b"")
        assert len(ledger.entries()) == 3
