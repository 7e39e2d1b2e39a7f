"""Nodes of their own: nothing of the host that other end-to-end tests share."""

import pytest

from tests.e2e.polling import wait_until
from tests.support.datapath_node import DatapathNode


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced: each node is asked by `end_of` when its pods are gone, and then removed."""


def end_of(node: DatapathNode) -> None:
    """Ends all pods of a node, and waits until nothing of them and their networks is left; fails if something is."""
    node.detach_all()
    wait_until(lambda: node.leftovers() == [], what="without leftovers", otherwise=lambda: str(node.leftovers()))
