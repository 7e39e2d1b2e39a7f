"""Several links are deleted as a group, with one RCU wait; foreign links are never deleted with them."""

import errno
import threading
from collections.abc import Callable, Sequence

import pytest

from cni_contrail.link import links
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.remove import HostLink, remove_links
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan
from tests.support.kernel_state import link
from tests.support.netns import Netns

DELETE = 17  # RTM_DELLINK
BASE = 0x40000000

PLANS = [bare_plan(position) for position in range(4)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[NetlinkRequest]:
    """All requests to the kernel."""
    requests: list[NetlinkRequest] = []
    execute = RouteSocket.execute

    def note(self: RouteSocket, these: Sequence[NetlinkRequest]) -> dict[int, KernelError]:
        requests.extend(these)
        return execute(self, these)

    monkeypatch.setattr(RouteSocket, "execute", note)
    return requests


def remove_in(node: Netns, plans: Sequence[InterfacePlan] = PLANS) -> list[str]:
    with node.inside():
        return remove_links([HostLink(plan.host_name, plan.alias) for plan in plans])


def deletions(asked: Sequence[NetlinkRequest]) -> list[str]:
    return [request.what for request in asked if request.kind == DELETE]


def their_group(node: Netns) -> int:
    """The group number that our links will get."""
    return BASE | int(link(node, PLANS[0].host_name)["ifindex"])


def add_foreign(node: Netns, group: int) -> None:
    node.ip("link", "add", "theirs", "type", "veth", "peer", "name", "theirs-peer")
    node.ip("link", "set", "theirs", "group", str(group))


@pytest.mark.parametrize("number", [2, 4])
def test_one_deletion_removes_all_links(make: Make, node: Netns, asked: list[NetlinkRequest], number: int) -> None:
    make(*PLANS)
    group = their_group(node)
    remove_in(node, PLANS[:number])
    assert deletions(asked) == [f"delete link group {group}"]
    assert node.links() == [plan.host_name for plan in PLANS[number:]]


def test_a_single_link_is_deleted_without_a_group(make: Make, node: Netns, asked: list[NetlinkRequest]) -> None:
    make(*PLANS)
    asked.clear()
    remove_in(node, PLANS[:1])
    assert [request.what for request in asked] == ["delete link tapplan0"]


@pytest.mark.parametrize("group", [0, 1, 7, 255, BASE, 0x7FFFFFFF])
def test_links_of_other_groups_are_kept(make: Make, node: Netns, group: int) -> None:
    make(*PLANS)
    add_foreign(node, group)
    remove_in(node)
    assert sorted(node.links()) == ["theirs", "theirs-peer"]


def test_a_foreign_link_of_the_same_group_is_kept_and_ours_are_deleted_one_by_one(
    make: Make, node: Netns, asked: list[NetlinkRequest]
) -> None:
    make(*PLANS)
    add_foreign(node, their_group(node))
    asked.clear()
    remove_in(node)
    assert sorted(node.links()) == ["theirs", "theirs-peer"]
    assert deletions(asked) == [f"delete link {plan.host_name}" for plan in PLANS]


def test_a_foreign_link_that_joins_the_group_later_is_kept(
    make: Make, node: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(*PLANS)
    group = their_group(node)
    set_group = links.set_group

    def too(end: links.LinkRef, number: int) -> NetlinkRequest:
        if end.name == PLANS[-1].host_name:
            add_foreign(node, group)
        return set_group(end, number)

    monkeypatch.setattr(links, "set_group", too)
    remove_in(node)
    assert sorted(node.links()) == ["theirs", "theirs-peer"]


def test_links_left_in_a_group_by_a_killed_deletion_are_deleted_by_the_next(make: Make, node: Netns) -> None:
    make(*PLANS)
    for plan in PLANS:
        node.ip("link", "set", plan.host_name, "group", str(BASE | 5))
    remove_in(node)
    assert node.links() == []


def test_a_link_deleted_meanwhile_is_no_error(make: Make, node: Netns, monkeypatch: pytest.MonkeyPatch) -> None:
    make(*PLANS)
    set_group = links.set_group

    def without_the_first(end: links.LinkRef, number: int) -> NetlinkRequest:
        if end.name == PLANS[0].host_name:
            node.ip("link", "delete", end.name)
        return set_group(end, number)

    monkeypatch.setattr(links, "set_group", without_the_first)
    assert remove_in(node) == []
    assert node.links() == []


def reject_dump(self: RouteSocket, request: NetlinkRequest) -> list[bytes]:
    raise KernelError(request.what, errno.EINTR, "changed during each of 10 attempts to read them")


def nothing_found(self: RouteSocket, request: NetlinkRequest) -> list[bytes]:
    return []


@pytest.mark.parametrize("dump", [reject_dump, nothing_found])
def test_links_are_deleted_one_by_one_if_they_cannot_be_listed(
    make: Make,
    node: Netns,
    asked: list[NetlinkRequest],
    monkeypatch: pytest.MonkeyPatch,
    dump: Callable[[RouteSocket, NetlinkRequest], list[bytes]],
) -> None:
    make(*PLANS)
    asked.clear()
    monkeypatch.setattr(RouteSocket, "dump", dump)
    remove_in(node)
    assert node.links() == []
    assert len(deletions(asked)) == len(PLANS)


def test_links_are_deleted_one_by_one_if_the_kernel_rejects_groups(
    make: Make, node: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(*PLANS)
    monkeypatch.setattr(links, "delete_group", lambda group: links.delete(links.LinkRef("none", 0x7FFFFFF)))
    remove_in(node)
    assert node.links() == []


@pytest.fixture
def crowd(node: Netns, make: Make) -> list[list[InterfacePlan]]:
    """Eight attachments of three interfaces each, and foreign links."""
    plans = [
        [bare_plan(0, name=f"e{n}-{i}", host_name=f"tapc{n}-{i}", mac=f"02:00:00:00:{n:02x}:{i:02x}") for i in range(3)]
        for n in range(8)
    ]
    for each in plans:
        make(*each)
    add_foreign(node, 7)
    return plans


def test_concurrent_deletions_remove_only_their_own_links(node: Netns, crowd: list[list[InterfacePlan]]) -> None:
    spared = crowd.pop()
    threads = [threading.Thread(target=remove_in, args=(node, plans)) for plans in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(node.links()) == sorted([*(plan.host_name for plan in spared), "theirs", "theirs-peer"])
