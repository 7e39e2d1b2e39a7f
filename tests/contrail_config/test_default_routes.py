"""The default-gateway rule: a requested interface first, else the first interface that has a gateway."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.default_routes import DefaultRoute, default_routes
from contrail_config.objects import DefaultGateway, InterfaceAddress, VirtualMachineInterface, interface_name

V4 = InterfaceAddress("10.0.0.2", 24, "10.0.0.1")
V6 = InterfaceAddress("fd00::2", 64, "fd00::1")
WITHOUT_GATEWAY = InterfaceAddress("10.0.0.2", 24)


def interface(
    *addresses: InterfaceAddress, asked: DefaultGateway | None = None, name: str | None = None
) -> VirtualMachineInterface:
    return VirtualMachineInterface(
        "u", "02:00:00:00:00:00", "n", ("d", "p", "n"), addresses, interface=name, default_gw=asked
    )


@dataclass
class Case:
    """Interfaces in order, and the index that carries the default route of each family."""

    interfaces: list[VirtualMachineInterface]
    v4: int | None
    v6: int | None


@pytest.mark.parametrize(
    "case",
    [
        Case([], None, None),
        Case([interface(V4, V6), interface(V4, V6)], 0, 0),
        Case([interface(V4), interface(V6), interface(V6)], 0, 1),
        Case([interface(WITHOUT_GATEWAY), interface(V4)], 1, None),
        Case([interface(V4, V6), interface(V4, V6, asked=DefaultGateway.BOTH)], 1, 1),
        Case([interface(V4, V6), interface(V4, V6, asked=DefaultGateway.IPV4)], 1, 0),
        Case([interface(V4, V6), interface(V4, V6, asked=DefaultGateway.IPV6)], 0, 1),
        Case([interface(V4, V6, asked=DefaultGateway.NONE), interface(V4, V6)], None, None),
        Case([interface(V4, V6, asked=DefaultGateway.NONE), interface(V4, V6, asked=DefaultGateway.IPV6)], None, 1),
        Case([interface(V4), interface(WITHOUT_GATEWAY, asked=DefaultGateway.IPV4)], 0, None),
    ],
)
def test_each_family_has_at_most_one_default_route(case: Case) -> None:
    wanted = [(4, case.v4, "10.0.0.1"), (6, case.v6, "fd00::1")]
    assert default_routes(case.interfaces) == [
        DefaultRoute(family, index, gateway) for family, index, gateway in wanted if index is not None
    ]


def test_interfaces_are_named_as_thick_mode_names_them() -> None:
    named = [interface(), interface(name="web"), interface()]
    assert [interface_name(index, each.interface) for index, each in enumerate(named)] == ["eth0", "web", "eth2"]


def numbered(interfaces: list[VirtualMachineInterface]) -> list[VirtualMachineInterface]:
    """The same interfaces with a gateway of its own each, so that a gateway identifies its interface."""
    return [
        interface(
            *(
                InterfaceAddress(
                    each.address, each.prefix_length, each.gateway and f"{each.gateway.rstrip('1')}{index + 10}"
                )
                for each in one.addresses
            ),
            asked=one.default_gw,
        )
        for index, one in enumerate(interfaces)
    ]


any_interface = st.builds(
    lambda addresses, asked: interface(*addresses, asked=asked),
    st.sampled_from([(), (V4,), (V6,), (V4, V6), (V6, V4), (WITHOUT_GATEWAY,), (WITHOUT_GATEWAY, V6)]),
    st.sampled_from([None, *DefaultGateway]),
)
any_pod = st.lists(any_interface, max_size=6).map(numbered)
any_family = st.sampled_from([4, 6])


def gateways(pod: list[VirtualMachineInterface], family: int) -> dict[int, str]:
    """The gateways of the family by index."""
    return {
        index: address.gateway
        for index, one in enumerate(pod)
        for address in one.addresses
        if address.family == family and address.gateway
    }


def requesting(pod: list[VirtualMachineInterface], family: int) -> list[int]:
    """The indices that request the default route of the family and have a gateway for it."""
    covering = {4: (DefaultGateway.BOTH, DefaultGateway.IPV4), 6: (DefaultGateway.BOTH, DefaultGateway.IPV6)}
    return [index for index in gateways(pod, family) if pod[index].default_gw in covering[family]]


def carrier(pod: list[VirtualMachineInterface], family: int) -> int | None:
    """The index that carries the default route of the family."""
    return next((route.index for route in default_routes(pod) if route.family == family), None)


@given(any_pod)
def test_a_default_route_uses_the_gateway_of_the_interface_that_carries_it(pod: list[VirtualMachineInterface]) -> None:
    routes = default_routes(pod)
    assert [route.family for route in routes] in ([], [4], [6], [4, 6])
    assert all(gateways(pod, route.family)[route.index] == route.gateway for route in routes)


@given(any_pod, any_family)
def test_the_first_interface_that_requests_the_route_and_has_a_gateway_carries_it(
    pod: list[VirtualMachineInterface], family: int
) -> None:
    if requests := requesting(pod, family):
        assert carrier(pod, family) == requests[0]


@given(any_pod, any_family)
def test_without_a_request_the_lowest_index_with_a_gateway_carries_it_unless_index_0_says_none(
    pod: list[VirtualMachineInterface], family: int
) -> None:
    if not requesting(pod, family):
        refused = bool(pod) and pod[0].default_gw is DefaultGateway.NONE
        assert carrier(pod, family) == (None if refused else min(gateways(pod, family), default=None))


@given(any_pod, any_family, any_interface)
def test_an_interface_added_at_the_end_takes_a_route_only_by_request_or_if_there_was_none(
    pod: list[VirtualMachineInterface], family: int, added: VirtualMachineInterface
) -> None:
    before, after = carrier(pod, family), carrier(numbered([*pod, added]), family)
    if before is not None and after != before:
        assert after == len(pod)
        assert requesting(numbered([*pod, added]), family)[-1] == len(pod)


@given(any_pod, any_family)
def test_a_request_without_a_gateway_is_ignored(pod: list[VirtualMachineInterface], family: int) -> None:
    able = gateways(pod, family)
    ignored = {*range(1, len(pod))} - able.keys()
    relaxed = [interface(*one.addresses) if index in ignored else one for index, one in enumerate(pod)]
    assert carrier(relaxed, family) == carrier(pod, family)
