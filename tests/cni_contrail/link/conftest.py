"""Fixtures: a node and a sandbox; functions run as in the plugin, by a thread in the node's namespace."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cni_contrail.link.make import make_interfaces
from cni_contrail.link.netns import open_netns
from cni_contrail.link.plan import InterfacePlan
from tests.support.netns import Netns

Make = Callable[..., None]


@pytest.fixture
def netns_fd(sandbox: Netns) -> Iterator[int]:
    fd = open_netns(sandbox.path)
    yield fd
    os.close(fd)


@pytest.fixture
def make(node: Netns, netns_fd: int) -> Make:
    """Creates interfaces between the node and the sandbox: `make(plan, ...)`."""

    def make_all(*plans: InterfacePlan, **options: Any) -> None:
        with node.inside():
            make_interfaces(netns_fd, plans, **options)

    return make_all
