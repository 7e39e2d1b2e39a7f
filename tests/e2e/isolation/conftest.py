"""Nodes of their own: nothing of the host that other end-to-end tests share."""

import pytest


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced: every test here removes its node."""
