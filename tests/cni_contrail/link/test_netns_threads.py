"""Many pods at once, each in a thread of one process: no thread enters another thread's sandbox."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cni_contrail.link.announce import announce
from cni_contrail.link.defaults import read_default_routes
from cni_contrail.link.make import make_interfaces
from cni_contrail.link.netns import open_netns
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.remove import HostLink, remove_links
from tests.support.interface_plans import interface_plan
from tests.support.kernel_state import address_texts
from tests.support.netns import Netns

PODS = 20


def plans_of(pod: int) -> list[InterfacePlan]:
    return [
        interface_plan(position, host_name=f"tap{pod}x{position}", mac=f"02:00:5e:{pod:02x}:00:{position:02x}")
        for position in range(1, 3)
    ]


def test_twenty_threads_create_interfaces_in_twenty_sandboxes(node: Netns, make_netns: Callable[[str], Netns]) -> None:
    sandboxes = [make_netns("pod") for _ in range(PODS)]
    start = threading.Barrier(PODS)

    def make_pod(pod: int) -> str:
        with node.inside():
            before = os.readlink("/proc/thread-self/ns/net")
            fd = open_netns(sandboxes[pod].path)
            try:
                start.wait(timeout=30)
                make_interfaces(fd, plans_of(pod))
                announce(fd, plans_of(pod))
                assert read_default_routes(fd) == ()
            finally:
                os.close(fd)
            assert os.readlink("/proc/thread-self/ns/net") == before
            return before

    with ThreadPoolExecutor(PODS) as threads:
        assert len(set(threads.map(make_pod, range(PODS)))) == 1
    for sandbox in sandboxes:
        assert sandbox.links() == ["eth1", "eth2"]
        assert address_texts(sandbox, "eth2") == ["10.2.0.5/24", "fd00:2::5/64"]
    assert sorted(node.links()) == sorted(plan.host_name for pod in range(PODS) for plan in plans_of(pod))


def test_twenty_threads_remove_the_interfaces_of_twenty_sandboxes(
    node: Netns, make_netns: Callable[[str], Netns]
) -> None:
    sandbox = make_netns("pod")
    fd = open_netns(sandbox.path)
    plans = [interface_plan(position) for position in range(1, PODS + 1)]

    def come_and_go(plan: InterfacePlan) -> list[str]:
        with node.inside():
            make_interfaces(fd, [plan])
            return remove_links([HostLink(plan.host_name, plan.alias)])

    try:
        with ThreadPoolExecutor(PODS) as threads:
            assert list(threads.map(come_and_go, plans)) == [[]] * PODS
    finally:
        os.close(fd)
    assert (node.links(), sandbox.links()) == ([], [])
