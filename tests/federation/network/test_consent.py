from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import ParameterError
from tacit.federation.network.consent import Consents
from tacit.privacy import PrivacyBudget

PLAN, OTHER = b"p" * 32, b"o" * 32


def test_consent_is_to_one_plan_of_one_run_in_one_federation(tmp_path: Path) -> None:
    consents = Consents(tmp_path / "consent.toml")
    assert consents.find("lab", PLAN, "trial") is None
    given = consents.give("lab", PLAN, "trial", limit=PrivacyBudget(1.5, 1e-6))
    assert consents.path.stat().st_mode & 0o777 == 0o600
    again = Consents(consents.path)
    assert again.find("lab", PLAN, "trial") == given
    assert given.limit == PrivacyBudget(1.5, 1e-6)
    for other in (("lab", OTHER, "trial"), ("lab", PLAN, "trial-2"), ("ward", PLAN, "trial")):
        assert again.find(*other) is None


def test_the_last_word_counts_and_one_that_is_taken_out_does_not(tmp_path: Path) -> None:
    consents = Consents(tmp_path / "consent.toml")
    consents.give("lab", PLAN, "trial", limit=PrivacyBudget(2.0))
    consents.give("lab", OTHER, "trial", limit=None)
    last = consents.give("lab", PLAN, "trial", limit=PrivacyBudget(1.0))
    assert consents.find("lab", PLAN, "trial") == last
    other = consents.find("lab", OTHER, "trial")
    assert other is not None
    assert other.limit is None
    consents.path.unlink()
    assert consents.find("lab", PLAN, "trial") is None


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("version = 2", "has version 2"),
        ("consent = 3", "Expected `array`"),
        ("[[consent]]\nrun = 'a'", "missing required field"),
        (
            "[[consent]]\nfederation = 'f'\nplan = 'xy'\nrun = 'a'\ngiven = 'now'",
            "plan must be a digest of 64",
        ),
        (
            f"[[consent]]\nfederation = 'f'\nplan = '{'0' * 64}'\nrun = 'a'\ngiven = 'now'\nepsilon = -1.0",
            "epsilon must be a finite number > 0",
        ),
        (
            f"[[consent]]\nfederation = 'f'\nplan = '{'0' * 64}'\nrun = 'a'\ngiven = 'now'\nmore = 1",
            "unknown field",
        ),
        ("\x00", "cannot be read"),
    ],
)
def test_a_file_that_is_wrong_says_so(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "consent.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ParameterError, match=match) as caught:
        Consents(path).all()
    assert "consent.toml" in str(caught.value)


def test_a_file_that_others_can_write_counts_for_nothing(tmp_path: Path) -> None:
    consents = Consents(tmp_path / "consent.toml")
    consents.give("lab", PLAN, "trial", limit=None)
    consents.path.chmod(0o620)
    with pytest.raises(ParameterError, match="others can write"):
        consents.find("lab", PLAN, "trial")
