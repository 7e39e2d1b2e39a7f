"""Fixtures for every folder of tests."""

import logging
from collections.abc import Callable, Iterator

import pytest

from tests.support.netns import Netns


@pytest.fixture
def make_netns() -> Iterator[Callable[[str], Netns]]:
    """Makes throw-away network namespaces (`make_netns("node")`), all removed after the test."""
    made: list[Netns] = []

    def make(kind: str) -> Netns:
        made.append(Netns(kind))
        return made[-1]

    yield make
    for namespace in made:
        namespace.delete()


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Undoes what a command does to the log: later tests would write to the standard error of this one."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
