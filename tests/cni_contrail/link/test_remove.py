"""Removal by name and alias: all links that are ours, no others; a missing link is not an error."""

import errno
from collections.abc import Sequence

import pytest

from cni_contrail.link import remove
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.remove import HostLink, remove_links
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import interface_plan
from tests.support.netns import Netns


def host_link(plan: InterfacePlan) -> HostLink:
    return HostLink(plan.host_name, plan.alias)


def remove_in(node: Netns, *links: HostLink) -> list[str]:
    with node.inside():
        return remove_links(links)


def test_all_interfaces_are_removed_with_their_sandbox_ends(make: Make, node: Netns, sandbox: Netns) -> None:
    plans = [interface_plan(position) for position in range(4)]
    make(*plans)
    assert remove_in(node, *map(host_link, plans)) == []
    assert (node.links(), sandbox.links()) == ([], [])
    assert sandbox.ip("-4", "route") + sandbox.ip("-6", "route") == ""


def test_removing_twice_is_no_error(make: Make, node: Netns) -> None:
    make(interface_plan())
    for _ in range(2):
        assert remove_in(node, host_link(interface_plan())) == []


def test_only_requested_links_are_removed(make: Make, node: Netns, sandbox: Netns) -> None:
    make(interface_plan(0), interface_plan(1), interface_plan(2))
    assert remove_in(node, host_link(interface_plan(1))) == []
    assert (node.links(), sandbox.links()) == (["tapplan0", "tapplan2"], ["eth0", "eth2"])


def test_an_empty_request_removes_nothing(node: Netns) -> None:
    assert remove_in(node) == []


def test_the_sandbox_may_be_gone(make: Make, node: Netns, sandbox: Netns) -> None:
    """The kernel deletes the pair some time after the namespace; removal works before and after that."""
    make(interface_plan())
    sandbox.delete()
    assert remove_in(node, host_link(interface_plan())) == []
    assert node.links() == []


def test_a_link_without_alias_is_ours(make: Make, node: Netns) -> None:
    make(interface_plan(alias=""))
    assert remove_in(node, host_link(interface_plan())) == []
    assert node.links() == []


def test_a_link_with_another_alias_is_kept_and_reported(make: Make, node: Netns) -> None:
    make(interface_plan(0, alias="contrail fedcba987654 default/other 5"), interface_plan(1))
    assert remove_in(node, host_link(interface_plan(0)), host_link(interface_plan(1))) == ["tapplan0"]
    assert node.links() == ["tapplan0"]


def test_an_alias_may_contain_any_characters(make: Make, node: Netns) -> None:
    plan = interface_plan(alias="contrail 0123456789ab naïve/pød 5")
    make(plan)
    assert remove_in(node, host_link(plan)) == []
    assert node.links() == []


def test_a_link_deleted_between_lookup_and_deletion_is_no_error(
    make: Make, node: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(interface_plan())
    delete_links = remove.delete_links

    def too_late(host: RouteSocket, ends: Sequence[LinkRef]) -> None:
        node.ip("link", "del", "tapplan0")
        delete_links(host, ends)

    monkeypatch.setattr(remove, "delete_links", too_late)
    assert remove_in(node, host_link(interface_plan())) == []


def test_a_link_that_took_over_the_name_between_lookup_and_deletion_is_kept(
    make: Make, node: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(interface_plan())
    delete_links = remove.delete_links

    def replaced(host: RouteSocket, ends: Sequence[LinkRef]) -> None:
        node.ip("link", "del", "tapplan0")
        node.ip("link", "add", "tapplan0", "type", "veth", "peer", "name", "newer")
        delete_links(host, ends)

    monkeypatch.setattr(remove, "delete_links", replaced)
    assert remove_in(node, host_link(interface_plan())) == []
    assert sorted(node.links()) == ["newer", "tapplan0"]


def test_a_link_that_the_kernel_does_not_delete_is_an_error(node: Netns) -> None:
    with node.inside(), pytest.raises(KernelError, match=r"^delete link lo: Operation not supported") as caught:
        remove_links([HostLink("lo", "")])
    assert caught.value.errno == errno.EOPNOTSUPP


def test_a_link_that_cannot_be_read_is_an_error(node: Netns, monkeypatch: pytest.MonkeyPatch) -> None:
    error = KernelError("find link tapplan0", errno.EPERM, "Operation not permitted")

    def reject(self: RouteSocket, requests: Sequence[NetlinkRequest]) -> list[bytes | KernelError]:
        return [error for _ in requests]

    monkeypatch.setattr(RouteSocket, "get", reject)
    with node.inside(), pytest.raises(KernelError, match=r"^find link tapplan0: Operation not permitted$"):
        remove_links([HostLink("tapplan0", "")])
