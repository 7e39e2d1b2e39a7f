"""Rollback: whichever step fails, namespaces and routes are as before."""

import errno
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cni_contrail.link import defaults
from cni_contrail.link import make as making
from cni_contrail.link.errors import KernelError, LinkError, SysctlError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route
from cni_contrail.link.sysctls import Sysctls
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import interface_plan
from tests.support.kernel_state import everything
from tests.support.netns import Netns

REFUSED = [
    (
        "a multicast MAC",
        {"mac": "01:00:5e:00:00:01"},
        r"eth2: create the link with MAC 01:00:5e:00:00:01 and MTU 1500: Cannot assign requested address",
    ),
    ("an MTU above the maximum", {"mtu": 70000}, r"eth2: create the link with MAC \S+ and MTU 70000: Invalid argument"),
    (
        "an MTU below the minimum",
        {"mtu": 60, "addresses": ()},
        r"eth2: create the link with MAC \S+ and MTU 60: Invalid argument",
    ),
    ("a name that is too long", {"name": "name-of-16-chars"}, r"name-of-16-chars: create the link with .*: "),
    ("a name that is none", {"name": "with space"}, r"with space: create the link with .*: Invalid argument"),
    ("an alias that is too long", {"alias": "x" * 300}, r"eth2: set host link tapplan2 up: "),
    (
        "an address twice",
        {"addresses": (Address("10.2.0.5", 24), Address("10.2.0.5", 24))},
        r"eth2: add address 10\.2\.0\.5/24: File exists",
    ),
    (
        "an address that no host can have",
        {"addresses": (Address("ff02::5", 64),)},
        r"eth2: add address ff02::5/64: .+",
    ),
    (
        "a network with host bits",
        {"routes": (Route("10.1.2.3/16", "10.2.0.1"),)},
        r"eth2: add route 10\.1\.2\.3/16 via 10\.2\.0\.1: Invalid argument \(.*\)",
    ),
    (
        "a route twice",
        {"routes": (Route("10.100.0.0/16", "10.2.0.1"), Route("10.100.0.0/16", "10.2.0.1"))},
        r"eth2: add route 10\.100\.0\.0/16 via 10\.2\.0\.1: File exists",
    ),
    (
        "a gateway that is no host",
        {"routes": (Route("10.100.0.0/16", "224.0.0.1"),)},
        r"eth2: add route 10\.100\.0\.0/16 via 224\.0\.0\.1: .*Nexthop has invalid gateway",
    ),
    (
        "a default gateway that is no host",
        {"defaults": (DefaultRoute("ff02::1", asked=True),)},
        r"eth2: add default route via ff02::1: .+",
    ),
]


def four(**changes_of_third: Any) -> list[InterfacePlan]:
    plans = [interface_plan(position) for position in range(4)]
    return [*plans[:2], plans[2]._replace(**changes_of_third), plans[3]]


@pytest.mark.parametrize(("changes", "message"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_an_error_at_the_third_of_four_interfaces_leaves_nothing(
    make: Make, node: Netns, sandbox: Netns, changes: dict[str, Any], message: str
) -> None:
    before = everything(node), everything(sandbox)
    with pytest.raises(KernelError, match=f"^{message}"):
        make(*four(**changes))
    assert (everything(node), everything(sandbox)) == before


def test_the_same_plans_succeed_after_the_cause_is_fixed(make: Make, sandbox: Netns) -> None:
    with pytest.raises(KernelError):
        make(*four(mac="01:00:5e:00:00:01"))
    make(*four())
    assert sandbox.links() == ["eth0", "eth1", "eth2", "eth3"]


def test_of_several_errors_the_first_is_raised(make: Make) -> None:
    bad = "01:00:5e:00:00:01"
    with pytest.raises(KernelError, match=r"^eth1: "):
        make(interface_plan(0), interface_plan(1, mac=bad), interface_plan(2, mac=bad))


def test_a_setting_that_cannot_be_written_leaves_nothing(
    make: Make, node: Netns, sandbox: Netns, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sys")
    (folder / "net/ipv6").mkdir(parents=True)
    with pytest.raises(SysctlError):
        make(*four(), sysctl_dir=str(folder))
    assert (node.links(), sandbox.links()) == ([], [])


def test_a_setting_of_the_sandbox_that_cannot_be_written_leaves_nothing(
    make: Make, node: Netns, sandbox: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(self: Sysctls, plans: Sequence[InterfacePlan]) -> None:
        raise SysctlError(f"{plans[0].name}: rejected")

    monkeypatch.setattr(Sysctls, "configure_sandbox_ends", reject)
    with pytest.raises(SysctlError, match=r"^eth0: rejected"):
        make(*four())
    assert (node.links(), sandbox.links()) == ([], [])


def test_a_link_deleted_meanwhile_rolls_back_the_others(
    make: Make, node: Netns, sandbox: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_one(self: Sysctls, plans: Sequence[InterfacePlan]) -> None:
        sandbox.ip("link", "del", "eth1")

    monkeypatch.setattr(Sysctls, "configure_sandbox_ends", remove_one)
    with pytest.raises(LinkError, match=r"^eth1: removed from the sandbox by another process"):
        make(*four())
    assert (node.links(), sandbox.links()) == ([], [])


def test_a_network_without_its_bridge_leaves_nothing(
    make: Make, make_netns: Callable[[str], Netns], node: Netns, sandbox: Netns
) -> None:
    network = make_netns("network")
    bridged = interface_plan(1, namespace="contrail-7")
    with open(network.path, "rb") as netns, pytest.raises(LinkError, match=r"contrail-7: bridge br0 not found"):
        make(interface_plan(0), bridged, networks={"contrail-7": netns.fileno()})
    assert (node.links(), network.links(), sandbox.links()) == ([], [], [])


def test_a_sandbox_whose_path_is_removed_meanwhile_still_works(
    make: Make, node: Netns, sandbox: Netns, netns_fd: int
) -> None:
    """The descriptor keeps it alive, and no step uses the path."""
    sandbox.delete()
    make(interface_plan())
    assert node.links() == ["tapplan0"]


def test_an_interrupt_leaves_nothing(make: Make, node: Netns, sandbox: Netns, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(making, "install_defaults", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make(*four())
    assert (node.links(), sandbox.links()) == ([], [])


def test_a_failed_rollback_is_reported_with_the_cause(make: Make, node: Netns, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(host: RouteSocket, ends: object) -> None:
        raise KernelError("delete link tapplan0", errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(making, "delete_links", reject)
    with pytest.raises(LinkError, match=r"^eth1: .*; cleanup failed too: delete link tapplan0: Device or res"):
        make(interface_plan(0), interface_plan(1, mac="01:00:5e:00:00:01"))
    assert node.links() == ["tapplan0"]


def test_a_default_route_that_cannot_be_restored_is_reported_with_the_cause(
    make: Make, sandbox: Netns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(*_: object) -> None:
        raise KernelError("restore default route via 10.9.0.1", errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(defaults, "_restore", reject)
    with pytest.raises(LinkError, match=r"via ff02::1: .*; restoring the previous default route failed too: restore"):
        make(interface_plan(defaults=(DefaultRoute("ff02::1", asked=True),)))
    assert sandbox.links() == []
