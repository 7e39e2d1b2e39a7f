"""Network status of a pod, by the multi-network standard v1.3, section 3, and as its readers expect it."""

import ipaddress
import json
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.objects import (
    DefaultGateway,
    InterfaceAddress,
    VirtualMachine,
    VirtualMachineInterface,
    interface_mac,
    interface_uuid,
)
from manager.kubernetes.network_status import network_status

NETWORK = ("default-domain", "k8s-default", "k8s-default-pod-network")
UID = "0e5f1bb4-7a41-4d8e-b0d5-9c1c3f2a6d94"
V4 = InterfaceAddress("10.1.0.5", 16, "10.1.255.254", ("10.1.0.2",))
V6 = InterfaceAddress("fd00:1::5", 64, "fd00:1::1", ("fd00:1::2",))


def test_the_first_is_the_default_network_and_others_have_their_nads_names() -> None:
    first, second, third = status(interface(V4), interface(V4, nad="blue/net-a"), interface(V4, nad="blue/net-a"))
    assert first == {
        "name": "k8s-default-pod-network",
        "interface": "eth0",
        "ips": ["10.1.0.5"],
        "mac": interface_mac(interface_uuid(UID, 0)),
        "default": True,
        "mtu": 1500,
        "gateway": ["10.1.255.254"],
        "dns": {"nameservers": ["10.1.0.2"]},
    }
    assert (second["name"], second["interface"], second["default"]) == ("blue/net-a", "eth1", False)
    assert (third["name"], third["interface"], third["default"]) == ("blue/net-a", "eth2", False)
    assert second["mac"] != third["mac"]


def test_a_nad_selected_for_the_first_names_it() -> None:
    (first,) = status(interface(V4, nad="blue/net-a"))
    assert (first["name"], first["interface"], first["default"]) == ("blue/net-a", "eth0", True)


def test_requested_names_apply_except_to_the_first() -> None:
    first, second = status(interface(V4, interface="left"), interface(V4, nad="blue/net-a", interface="right"))
    assert (first["interface"], second["interface"]) == ("eth0", "right")


def test_both_families_are_listed_without_prefix_lengths() -> None:
    (first,) = status(interface(V4, V6))
    assert first["ips"] == ["10.1.0.5", "fd00:1::5"]
    assert first["gateway"] == ["10.1.255.254", "fd00:1::1"]
    assert first["dns"] == {"nameservers": ["10.1.0.2", "fd00:1::2"]}


def test_absent_values_are_omitted() -> None:
    (first,) = status(interface(InterfaceAddress("10.1.0.5", 16)))
    assert set(first) == {"name", "interface", "ips", "mac", "default", "mtu"}


def test_the_gateway_is_listed_where_the_default_route_goes() -> None:
    def gateways(*interfaces: VirtualMachineInterface) -> list[list[str]]:
        return [one.get("gateway", []) for one in status(*interfaces)]

    asked, refused = DefaultGateway.BOTH, DefaultGateway.NONE
    v4, v6 = "10.1.255.254", "fd00:1::1"
    assert gateways(interface(V4, V6), interface(V4, V6)) == [[v4, v6], []]
    assert gateways(interface(V4, V6), interface(V4, V6, default_gw=asked)) == [[], [v4, v6]]
    assert gateways(interface(V4, V6), interface(V4, V6, default_gw=DefaultGateway.IPV6)) == [[v4], [v6]]
    assert gateways(interface(V4, V6, default_gw=refused), interface(V4, V6)) == [[], []]
    assert gateways(interface(V4, default_gw=refused), interface(V4, default_gw=DefaultGateway.IPV4)) == [[], [v4]]
    assert gateways(interface(V4), interface(V6)) == [[v4], [v6]]


class CountedAddresses(tuple[InterfaceAddress, ...]):
    """Counts iterations over the addresses of any interface."""

    __slots__ = ()
    looks: ClassVar[int] = 0

    def __iter__(self) -> Iterator[InterfaceAddress]:
        CountedAddresses.looks += 1
        return super().__iter__()


def test_the_cost_per_interface_is_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(number: int) -> int:
        monkeypatch.setattr(CountedAddresses, "looks", 0)
        addresses = CountedAddresses((V4, V6))
        status(*(VirtualMachineInterface("", "", "", NETWORK, addresses) for _ in range(number)))
        return CountedAddresses.looks

    assert looks(40) == 40 * looks(1)


interfaces = st.builds(
    lambda addresses, **fields: interface(*addresses, **fields),
    st.sampled_from([(V4,), (V6,), (V4, V6), (InterfaceAddress("10.1.0.5", 16),)]),
    nad=st.sampled_from([None, "blue/net-a", "green/net-b"]),
    interface=st.sampled_from([None, "left"]),
    default_gw=st.sampled_from([None, *DefaultGateway]),
)


@given(st.lists(interfaces, min_size=1, max_size=5))
def test_any_status_is_valid_for_its_readers(given_interfaces: list[VirtualMachineInterface]) -> None:
    found = status(*given_interfaces)
    assert len(found) == len(given_interfaces)
    assert [one["default"] for one in found] == [True] + [False] * (len(found) - 1)
    assert all(one["name"] and one["interface"] and one["mac"] for one in found)
    assert all(str(ipaddress.ip_address(ip)) == ip for one in found for ip in one["ips"])
    gateways = [ipaddress.ip_address(each).version for one in found for each in one.get("gateway", [])]
    assert len(gateways) == len(set(gateways))


def interface(*addresses: InterfaceAddress, **fields: Any) -> VirtualMachineInterface:
    return VirtualMachineInterface("", "", "", NETWORK, addresses, **fields)


def status(*interfaces: VirtualMachineInterface) -> list[dict[str, Any]]:
    named = [
        msgspec.structs.replace(one, uuid=interface_uuid(UID, at), mac=interface_mac(interface_uuid(UID, at)))
        for at, one in enumerate(interfaces)
    ]
    vm = VirtualMachine(UID, "k8s__blue__web-0", "k8s", "k8s-blue", "blue", "web-0", "node-1", tuple(named))
    found: list[dict[str, Any]] = json.loads(network_status(vm))
    return found
