"""Without a free descriptor, calls raise one of our errors, stay in their namespace and create nothing."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cni_contrail.link.errors import KernelError, NetnsError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.make import make_interfaces
from cni_contrail.link.netns import InNetns, open_netns
from tests.support.interface_plans import interface_plan
from tests.support.netns import Netns


@contextmanager
def no_descriptor_free() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_socket_cannot_be_opened() -> None:
    with no_descriptor_free(), pytest.raises(KernelError, match=r"^open a netlink socket: Too many open files$"):
        RouteSocket()


def test_a_namespace_cannot_be_opened(sandbox: Netns) -> None:
    with no_descriptor_free(), pytest.raises(NetnsError, match=r"cannot open: Too many open files$"):
        open_netns(sandbox.path)


def test_a_namespace_cannot_be_entered(netns_fd: int) -> None:
    home = os.readlink("/proc/thread-self/ns/net")
    message = r"^own network namespace: cannot open: Too many open files$"
    with no_descriptor_free(), pytest.raises(NetnsError, match=message), InNetns(netns_fd):
        pass
    assert os.readlink("/proc/thread-self/ns/net") == home


def test_nothing_is_created(node: Netns, sandbox: Netns, netns_fd: int) -> None:
    with node.inside(), no_descriptor_free(), pytest.raises(KernelError, match="Too many open files"):
        make_interfaces(netns_fd, [interface_plan()])
    assert (node.links(), sandbox.links()) == ([], [])
