"""Name conflicts: an existing link of a planned name is unchanged, and the error names it and its side."""

import pytest

from cni_contrail.link.errors import LinkExistsError
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import interface_plan
from tests.support.kernel_state import everything
from tests.support.netns import Netns


def occupy(netns: Netns, name: str) -> None:
    netns.ip("link", "add", name, "address", "02:99:00:00:00:01", "type", "veth", "peer", "name", "occupier")
    netns.ip("link", "set", name, "alias", "foreign")


def test_an_existing_host_name_is_an_error(make: Make, node: Netns, sandbox: Netns) -> None:
    occupy(node, "tapplan1")
    before = everything(node), everything(sandbox)
    with pytest.raises(LinkExistsError, match=r"^eth1: link tapplan1 already exists \(host side\)$") as caught:
        make(interface_plan(0), interface_plan(1), interface_plan(2))
    assert (caught.value.name, caught.value.side) == ("tapplan1", "host")
    assert (everything(node), everything(sandbox)) == before


def test_an_existing_sandbox_name_is_an_error(make: Make, node: Netns, sandbox: Netns) -> None:
    occupy(sandbox, "eth1")
    before = everything(node), everything(sandbox)
    with pytest.raises(LinkExistsError, match=r"^eth1: link eth1 already exists \(sandbox side\)$") as caught:
        make(interface_plan(0), interface_plan(1), interface_plan(2))
    assert (caught.value.name, caught.value.side) == ("eth1", "sandbox")
    assert (everything(node), everything(sandbox)) == before


def test_creating_the_same_interface_twice_keeps_the_first(make: Make, node: Netns, sandbox: Netns) -> None:
    make(interface_plan())
    before = everything(node), everything(sandbox)
    with pytest.raises(LinkExistsError):
        make(interface_plan())
    assert (everything(node), everything(sandbox)) == before


def test_two_plans_with_the_same_name_create_nothing(make: Make, node: Netns, sandbox: Netns) -> None:
    with pytest.raises(LinkExistsError, match="sandbox side"):
        make(interface_plan(0), interface_plan(1, name="eth0"))
    with pytest.raises(LinkExistsError, match="host side"):
        make(interface_plan(0), interface_plan(1, host_name="tapplan0"))
    assert (node.links(), sandbox.links()) == ([], [])


def test_an_alternative_name_of_a_link_conflicts_too(make: Make, node: Netns, sandbox: Netns) -> None:
    occupy(sandbox, "other")
    sandbox.ip("link", "property", "add", "dev", "other", "altname", "eth0")
    with pytest.raises(LinkExistsError, match="sandbox side"):
        make(interface_plan())
    assert node.links() == []
    assert "other" in sandbox.links()
