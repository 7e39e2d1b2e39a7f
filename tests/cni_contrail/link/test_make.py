"""One interface: its whole plan is in the kernel when the call returns."""

from cni_contrail.link.plan import Route
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.kernel_state import address_texts, defaults, link, link_local, routes
from tests.support.netns import Netns


def test_the_sandbox_end_has_the_planned_name_mac_and_mtu(make: Make, sandbox: Netns) -> None:
    make(interface_plan(name="net1", mac="02:AA:bb:cc:dd:ee", mtu=1400))
    end = link(sandbox, "net1")
    assert (end["address"], end["mtu"]) == ("02:aa:bb:cc:dd:ee", 1400)
    assert end["linkinfo"]["info_kind"] == "veth"


def test_the_host_end_has_the_planned_name_alias_and_mtu_and_a_local_mac(make: Make, node: Netns) -> None:
    make(interface_plan(host_name="tapabcdefghijkl", alias="contrail 0123 default/web 5", mtu=9000))
    end = link(node, "tapabcdefghijkl")
    assert (end["ifalias"], end["mtu"]) == ("contrail 0123 default/web 5", 9000)
    assert int(end["address"][:2], 16) & 0b11 == 0b10, "locally administered, unicast"


def test_the_mac_of_the_host_end_counts_as_set_so_that_udev_keeps_it(make: Make, node: Netns) -> None:
    make(interface_plan())
    command = "mount -t sysfs none /sys && cat /sys/class/net/tapplan0/addr_assign_type"
    assert node.run("unshare", "--mount", "sh", "-c", command).stdout == "3\n", "NET_ADDR_SET"


def test_both_ends_are_up_and_running_when_the_call_returns(make: Make, node: Netns, sandbox: Netns) -> None:
    make(interface_plan())
    assert link(node, "tapplan0")["operstate"] == "UP"
    assert link(sandbox, "eth0")["operstate"] == "UP"


def test_addresses_routes_and_defaults_are_those_of_the_plan(make: Make, sandbox: Netns) -> None:
    make(
        interface_plan(
            routes=(Route("10.100.0.0/16", "10.0.0.1"), Route("192.0.2.0/24", None), Route("2001:db8::/32", "fd00::1"))
        )
    )
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24", "fd00::5/64"]
    assert {(route["dst"], route.get("gateway")) for route in routes(sandbox, version=4)} == {
        ("10.100.0.0/16", "10.0.0.1"),
        ("192.0.2.0/24", None),
        ("default", "10.0.0.1"),
    }
    assert {(route["dst"], route.get("gateway")) for route in routes(sandbox, version=6)} == {
        ("2001:db8::/32", "fd00::1"),
        ("default", "fd00::1"),
    }
    assert [route["dev"] for version in (4, 6) for route in defaults(sandbox, version=version)] == ["eth0", "eth0"]


def test_an_on_link_ipv4_route_has_link_scope(make: Make, sandbox: Netns) -> None:
    make(interface_plan(routes=(Route("192.0.2.0/24", None),)))
    (route,) = [route for route in routes(sandbox, version=4) if route["dst"] == "192.0.2.0/24"]
    assert route["scope"] == "link"


def test_the_link_local_address_is_usable_at_once(make: Make, sandbox: Netns) -> None:
    make(interface_plan())
    (own,) = link_local(sandbox, "eth0")
    assert own["local"] == "fe80::5eff:fe10:0"
    assert "tentative" not in own


def test_an_interface_may_have_no_address(make: Make, sandbox: Netns) -> None:
    make(bare_plan())
    assert address_texts(sandbox, "eth0") == []
    assert link(sandbox, "eth0")["operstate"] == "UP"


def test_no_plans_create_nothing(make: Make, node: Netns, sandbox: Netns) -> None:
    make()
    assert (node.links(), sandbox.links()) == ([], [])


def test_a_name_with_a_dot_sets_the_sysctls_of_its_own_link(make: Make, sandbox: Netns) -> None:
    make(interface_plan(name="eth0.100"))
    assert address_texts(sandbox, "eth0.100") == ["10.0.0.5/24", "fd00::5/64"]
