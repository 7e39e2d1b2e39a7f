"""Links go by name and alias: all that are ours, none that are not, and what is gone is no error."""

import errno
from collections.abc import Sequence

import pytest

from cni_contrail.link import remove
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import Request
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


def test_all_interfaces_go_with_their_sandbox_ends(make: Make, node: Netns, sandbox: Netns) -> None:
    plans = [interface_plan(position) for position in range(4)]
    make(*plans)
    assert remove_in(node, *map(host_link, plans)) == []
    assert (node.links(), sandbox.links()) == ([], [])
    assert sandbox.ip("-4", "route") + sandbox.ip("-6", "route") == ""


def test_removing_twice_is_no_error(make: Make, node: Netns) -> None:
    make(interface_plan())
    for _ in range(2):
        assert remove_in(node, host_link(interface_plan())) == []


def test_only_what_is_asked_for_goes(make: Make, node: Netns, sandbox: Netns) -> None:
    make(interface_plan(0), interface_plan(1), interface_plan(2))
    assert remove_in(node, host_link(interface_plan(1))) == []
    assert (node.links(), sandbox.links()) == (["tapplan0", "tapplan2"], ["eth0", "eth2"])


def test_nothing_asked_for_removes_nothing(node: Netns) -> None:
    assert remove_in(node) == []


def test_the_sandbox_need_not_be_there(make: Make, node: Netns, sandbox: Netns) -> None:
    """Its end, and the whole pair, goes some time after the namespace; both orders are fine."""
    make(interface_plan())
    sandbox.delete()
    assert remove_in(node, host_link(interface_plan())) == []
    assert node.links() == []


def test_a_link_that_was_not_marked_yet_is_ours(make: Make, node: Netns) -> None:
    make(interface_plan(alias=""))
    assert remove_in(node, host_link(interface_plan())) == []
    assert node.links() == []


def test_a_link_with_another_alias_stays_and_is_told(make: Make, node: Netns) -> None:
    make(interface_plan(0, alias="contrail fedcba987654 default/other 5"), interface_plan(1))
    assert remove_in(node, host_link(interface_plan(0)), host_link(interface_plan(1))) == ["tapplan0"]
    assert node.links() == ["tapplan0"]


def test_an_alias_may_hold_any_letters(make: Make, node: Netns) -> None:
    plan = interface_plan(alias="contrail 0123456789ab naïve/pød 5")
    make(plan)
    assert remove_in(node, host_link(plan)) == []
    assert node.links() == []


def test_a_link_that_goes_between_looking_and_deleting_is_no_error(
    make: Make, node: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(interface_plan())
    delete_links = remove.delete_links

    def too_late(host: RouteSocket, ends: Sequence[LinkRef]) -> None:
        node.ip("link", "del", "tapplan0")
        delete_links(host, ends)

    monkeypatch.setattr(remove, "delete_links", too_late)
    assert remove_in(node, host_link(interface_plan())) == []


def test_a_link_that_took_the_name_between_looking_and_deleting_stays(
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


def test_a_link_that_the_kernel_keeps_is_told(node: Netns) -> None:
    with node.inside(), pytest.raises(KernelError, match=r"^delete link lo: Operation not supported") as caught:
        remove_links([HostLink("lo", "")])
    assert caught.value.errno == errno.EOPNOTSUPP


def test_a_link_that_cannot_be_looked_at_is_told(node: Netns, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = KernelError("find link tapplan0", errno.EPERM, "Operation not permitted")

    def refuse(self: RouteSocket, requests: Sequence[Request]) -> list[bytes | KernelError]:
        return [refusal for _ in requests]

    monkeypatch.setattr(RouteSocket, "get", refuse)
    with node.inside(), pytest.raises(KernelError, match=r"^find link tapplan0: Operation not permitted$"):
        remove_links([HostLink("tapplan0", "")])
