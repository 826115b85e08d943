"""Every test is a process of its own: fits of other tests are not counted."""

from __future__ import annotations

import pytest

from tacit.learning.spending import Fits


@pytest.fixture(autouse=True)
def _nothing_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.learning.fitting.fits_of_this_process", Fits())
