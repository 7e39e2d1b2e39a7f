"""Fixtures for every folder of tests."""

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
