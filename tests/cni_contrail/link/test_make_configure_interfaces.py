"""Interfaces created without addresses get them later: the Contrail vrouter agent reports them only for known ports."""

from collections.abc import Callable

import pytest

from cni_contrail.link.check import check_interfaces
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.make import configure_interfaces
from cni_contrail.link.plan import Address, InterfacePlan
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.kernel_state import read_sysctl, write_sysctl
from tests.support.netns import Netns

Configure = Callable[..., None]


@pytest.fixture
def configure(node: Netns, netns_fd: int) -> Configure:
    def run(*plans: InterfacePlan) -> None:
        with node.inside():
            configure_interfaces(netns_fd, plans)

    return run


def test_the_result_equals_interfaces_created_at_once(
    make: Make, configure: Configure, node: Netns, netns_fd: int
) -> None:
    make(*(bare_plan(position) for position in range(4)))
    plans = [interface_plan(position) for position in range(4)]
    configure(*plans)
    with node.inside():
        assert [check_interfaces(netns_fd, [plan]) for plan in plans] == [[], [], [], []]


def test_ipv6_is_enabled_with_the_addresses(make: Make, configure: Configure, sandbox: Netns) -> None:
    for which in ("all", "default"):
        write_sysctl(sandbox, f"net/ipv6/conf/{which}/disable_ipv6", "1")
    make(bare_plan())
    assert read_sysctl(sandbox, "net/ipv6/conf/eth0/disable_ipv6") == "1"
    configure(interface_plan())
    assert read_sysctl(sandbox, "net/ipv6/conf/eth0/disable_ipv6") == "0"


def test_an_error_is_raised_and_the_links_stay(make: Make, configure: Configure, sandbox: Netns) -> None:
    make(bare_plan(0), bare_plan(1))
    with pytest.raises(KernelError, match=r"^eth1: add address ff02::5/64: "):
        configure(interface_plan(0), interface_plan(1, addresses=(Address("ff02::5", 64),)))
    assert sandbox.links() == ["eth0", "eth1"]


def test_a_deleted_interface_is_an_error(make: Make, configure: Configure) -> None:
    make(bare_plan(0))
    with pytest.raises(LinkError, match=r"^eth1: set net\.ipv6\.conf\.eth1\..*: No such file or directory$"):
        configure(interface_plan(0), interface_plan(1))


def test_invalid_plans_are_rejected_first(make: Make, configure: Configure, sandbox: Netns) -> None:
    make(bare_plan(0))
    with pytest.raises(LinkError, match=r"^eth0: 'none' is not an IP address$"):
        configure(interface_plan(0, addresses=(Address("none", 24),)))
