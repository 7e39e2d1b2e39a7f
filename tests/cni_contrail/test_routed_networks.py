"""Networks that route between their pods: a pod sends even what is for its own subnet to the gateway."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from cni_contrail.datapath.namespaces import name_of
from tests.support import frames
from tests.support.echo import reaches
from tests.support.netns import Netns
from tests.support.network_capture import NetworkCapture
from tests.support.node_networks import NodeNetworks
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, Vmi, make_vmis

VNIS = (5_500_001, 5_500_002)
GATEWAYS = ("10.1.1.1", "fd00:1:2::1")
_ECHO_REPLY, _REDIRECT = 129, 137  # types of ICMPv6


class Attached(NamedTuple):
    """An attached pod, its sandbox, and the result of ADD."""

    pod: PodSandbox
    sandbox: Netns
    result: dict[str, Any]


Attach = Callable[..., Attached]


@pytest.fixture
def attach(plugin: Plugin, agent: ScriptedAgent, make_netns: Callable[[str], Netns], networks: NodeNetworks) -> Attach:
    """Attaches a pod with index 0 and an interface in each of `vnis`, all in one subnet: `number`, and 10 more."""

    def attach(number: int, *vnis: int) -> Attached:
        sandbox = make_netns("pod")
        pod = PodSandbox(sandbox.path, name=f"web-{number}")
        index_0, *others = make_vmis(1 + len(vnis), uid=pod.uid)
        served = [
            _routed(each, others[0], vni, number + 10 * position)
            for position, (each, vni) in enumerate(zip(others, vnis, strict=True))
        ]
        agent.serve(pod.vm_name, [index_0, *served])
        return Attached(pod, sandbox, plugin.add(pod).succeeded().document)

    return attach


def _routed(vmi: Vmi, first: Vmi, vni: int, number: int) -> Vmi:
    subnets = tuple(replace(each, address=f"{each.address[:-1]}{number}") for each in first.subnets)
    datapath = {"network-namespace": name_of(vni), "bridge": "br0", "routed": list(GATEWAYS)}
    return replace(vmi, subnets=subnets, datapath=datapath)


def hop(sandbox: Netns, destination: str, *source: str) -> tuple[str, str | None]:
    """The interface and the gateway by which packets leave."""
    (route,) = json.loads(sandbox.ip("-j", "route", "get", destination, *source))
    return route["dev"], route.get("gateway")


def _icmpv6_type(frame: bytes) -> int | None:
    is_icmpv6 = int.from_bytes(frame[12:14]) == frames.IPV6 and frame[20] == frames.ICMPV6
    return frame[54] if is_icmpv6 else None


def test_pods_of_one_node_reach_each_other_by_the_gateways_in_both_families(attach: Attach) -> None:
    first, second = attach(5, VNIS[0]), attach(6, VNIS[0])
    for address, gateway in zip(("10.1.1.6", "fd00:1:2::6"), GATEWAYS, strict=True):
        assert hop(first.sandbox, address) == ("eth1", gateway)
        assert reaches(first.sandbox, address)
        assert reaches(first.sandbox, gateway)
    assert reaches(second.sandbox, "fd00:1:2::5")


def test_pods_are_never_redirected_past_the_gateway(attach: Attach) -> None:
    first, _ = attach(5, VNIS[0]), attach(6, VNIS[0])
    capture = NetworkCapture(first.sandbox.path)
    try:
        assert reaches(first.sandbox, "10.1.1.6")
        assert reaches(first.sandbox, "fd00:1:2::6")
        received = capture.frames()
    finally:
        capture.close()
    assert any(_icmpv6_type(frame) == _ECHO_REPLY for frame in received)
    assert [frame.hex() for frame in received if _icmpv6_type(frame) == _REDIRECT] == []


def test_check_finds_a_lost_route_and_del_leaves_nothing(
    attach: Attach, plugin: Plugin, networks: NodeNetworks
) -> None:
    attached = attach(5, VNIS[0])
    plugin.check(attached.pod, previous=attached.result).succeeded()
    attached.sandbox.ip("route", "delete", "10.1.1.0/24", "via", GATEWAYS[0])
    assert "10.1.1.0/24 via 10.1.1.1" in plugin.check(attached.pod, previous=attached.result).failed(105)
    plugin.delete(attached.pod).succeeded()
    assert attached.sandbox.links() == []
    assert networks.ports(VNIS[0]) == []


def test_a_pod_in_two_networks_with_equal_subnets_sends_to_the_gateway_of_each(attach: Attach, plugin: Plugin) -> None:
    both = attach(5, *VNIS)
    first, second = attach(6, VNIS[0]), attach(7, VNIS[1])
    for interface in ("eth1", "eth2"):
        for table in ("-4", "-6"):
            index = 1000 + int(interface[-1])
            routes = json.loads(both.sandbox.ip(table, "-j", "route", "show", "table", str(index)))
            to_subnet = [each for each in routes if each["dst"] in ("10.1.1.0/24", "fd00:1:2::/64")]
            assert [each.get("gateway") for each in to_subnet] == [GATEWAYS[table == "-6"]]
    plugin.check(both.pod, previous=both.result).succeeded()
    for address, other in (("10.1.1.5", "10.1.1.15"), ("fd00:1:2::5", "fd00:1:2::15")):
        assert reaches(first.sandbox, address)
        assert reaches(second.sandbox, other)
        assert not reaches(first.sandbox, other, timeout=0.5)
