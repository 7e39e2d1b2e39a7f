"""Tests of forwarding between the node's links: what is enabled, and what router advertisements still do."""

import pytest

from cni_contrail.datapath.forwarding import enable_forwarding
from cni_contrail.link.errors import SysctlError
from tests.cni_contrail.datapath.routed.conftest import RoutedNode


def _value(node: RoutedNode, key: str) -> str:
    return node.run("sysctl", "-n", key).strip()


def _enable(node: RoutedNode, *, ipv6: bool = True) -> int:
    with node.namespace.inside():
        return enable_forwarding(ipv6=ipv6, sysctl_dir="/proc/sys")


def test_both_families_are_forwarded(node: RoutedNode) -> None:
    assert _enable(node) > 0
    assert _value(node, "net.ipv4.ip_forward") == "1"
    assert _value(node, "net.ipv6.conf.all.forwarding") == "1"
    assert _enable(node) == 0


def test_ipv6_is_not_forwarded_without_need(node: RoutedNode) -> None:
    _enable(node, ipv6=False)
    assert _value(node, "net.ipv6.conf.all.forwarding") == "0"


def test_a_link_that_accepts_router_advertisements_still_does(node: RoutedNode) -> None:
    node.run("sysctl", "-qw", "net.ipv6.conf.uplink.accept_ra=1", "net.ipv6.conf.lo.accept_ra=0")
    _enable(node)
    assert _value(node, "net.ipv6.conf.uplink.accept_ra") == "2"
    assert _value(node, "net.ipv6.conf.lo.accept_ra") == "0"
    assert _value(node, "net.ipv6.conf.default.accept_ra") == "1"


def test_the_settings_of_a_node_that_forwards_are_not_touched(node: RoutedNode) -> None:
    node.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1", "net.ipv6.conf.uplink.accept_ra=1")
    _enable(node)
    assert _value(node, "net.ipv6.conf.uplink.accept_ra") == "1"


def test_a_host_end_that_is_isolated_does_not_accept_router_advertisements(node: RoutedNode) -> None:
    node.add_pod(2)
    node.add_pod(3)
    node.reconcile()
    assert _value(node, "net.ipv6.conf.tap2.accept_ra") == "0"


def test_settings_that_cannot_be_read_are_an_error(tmp_path: object) -> None:
    with pytest.raises(SysctlError, match=r"read net\.ipv4\.ip_forward: .*No such file"):
        enable_forwarding(ipv6=False, sysctl_dir=str(tmp_path))
