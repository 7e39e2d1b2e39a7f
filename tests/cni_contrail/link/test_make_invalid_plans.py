"""Plans that cannot be encoded are rejected before anything is created; the error names interface and value."""

from typing import Any

import pytest

from cni_contrail.link.errors import LinkError
from cni_contrail.link.plan import Address, DefaultRoute, Route
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import interface_plan
from tests.support.netns import Netns

INVALID = [
    ({"mac": "02:00:5e:10:00"}, "'02:00:5e:10:00' is not a MAC address"),
    ({"mac": "02:00:5e:10:00:0g"}, "'02:00:5e:10:00:0g' is not a MAC address"),
    ({"mac": "02005e100001"}, "'02005e100001' is not a MAC address"),
    ({"mac": "02 00 5e 10 00 01"}, "'02 00 5e 10 00 01' is not a MAC address"),
    ({"mac": ""}, "'' is not a MAC address"),
    ({"mtu": -1}, "-1 is not an unsigned 32-bit number"),
    ({"mtu": 1 << 32}, "4294967296 is not an unsigned 32-bit number"),
    ({"name": ""}, "'' is not a link name"),
    ({"name": "eth%d"}, "'eth%d' is not a link name"),
    ({"name": "all"}, "'all' is not a link name"),
    ({"name": "eth0\0"}, "'eth0\\x00' is not a link name"),
    ({"host_name": "tap%d"}, "'tap%d' is not a link name"),
    ({"name": "eth\ud800"}, "surrogates not allowed"),
    ({"addresses": (Address("10.0.0.256", 24),)}, "'10.0.0.256' is not an IP address"),
    ({"addresses": (Address("10.0.0.5/24", 24),)}, "'10.0.0.5/24' is not an IP address"),
    ({"addresses": (Address("fd00::5%eth0", 64),)}, "'fd00::5%eth0' is not an IP address"),
    ({"addresses": (Address("10.0.0.5", 33),)}, "33 is not a prefix length of an address of 32 bits"),
    ({"addresses": (Address("fd00::5", -1),)}, "-1 is not a prefix length of an address of 128 bits"),
    ({"routes": (Route("10.0.0.0", None),)}, "'10.0.0.0' is not a network with a prefix length"),
    ({"routes": (Route("10.0.0.0/x", None),)}, "'10.0.0.0/x' is not a network with a prefix length"),
    ({"routes": (Route("10.0.0.0/33", None),)}, "33 is not a prefix length of an address of 32 bits"),
    ({"routes": (Route("somewhere/8", None),)}, "'somewhere' is not an IP address"),
    ({"routes": (Route("10.0.0.0/8", "gateway"),)}, "'gateway' is not an IP address"),
    ({"defaults": (DefaultRoute("", asked=False),)}, "'' is not an IP address"),
]


@pytest.mark.parametrize(("changes", "message"), INVALID, ids=[repr(each[1]) for each in INVALID])
def test_an_invalid_plan_is_rejected_before_anything_is_created(
    make: Make, node: Netns, sandbox: Netns, changes: dict[str, Any], message: str
) -> None:
    plan = interface_plan(1)._replace(**changes)
    with pytest.raises(LinkError) as caught:
        make(interface_plan(0), plan)
    assert str(caught.value).startswith(f"{plan.name}: ")
    assert str(caught.value).endswith(message)
    assert (node.links(), sandbox.links()) == ([], [])
