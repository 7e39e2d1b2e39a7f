"""Where a pod's default routes go: by request, else through the first interface that has a gateway."""

from dataclasses import dataclass

import pytest

from contrail_config.objects import DefaultGateway, InterfaceAddress, VirtualMachineInterface, thick_name
from contrailctl.expected_sandbox import ExpectedDefault, expected_defaults

V4 = InterfaceAddress("10.0.0.2", 24, "10.0.0.1")
V6 = InterfaceAddress("fd00::2", 64, "fd00::1")
BARE = InterfaceAddress("10.0.0.2", 24)


def interface(
    *addresses: InterfaceAddress, asked: DefaultGateway | None = None, name: str | None = None
) -> VirtualMachineInterface:
    return VirtualMachineInterface(
        "u", "02:00:00:00:00:00", "n", ("d", "p", "n"), addresses, interface=name, default_gw=asked
    )


@dataclass
class Case:
    """Interfaces in order, and which of them takes the default route of each family."""

    interfaces: list[VirtualMachineInterface]
    v4: int | None
    v6: int | None


@pytest.mark.parametrize(
    "case",
    [
        Case([], None, None),
        Case([interface(V4, V6), interface(V4, V6)], 0, 0),
        Case([interface(V4), interface(V6), interface(V6)], 0, 1),
        Case([interface(BARE), interface(V4)], 1, None),
        Case([interface(V4, V6), interface(V4, V6, asked=DefaultGateway.BOTH)], 1, 1),
        Case([interface(V4, V6), interface(V4, V6, asked=DefaultGateway.IPV4)], 1, 0),
        Case([interface(V4, V6), interface(V4, V6, asked=DefaultGateway.IPV6)], 0, 1),
        Case([interface(V4, V6, asked=DefaultGateway.NONE), interface(V4, V6)], None, None),
        Case([interface(V4, V6, asked=DefaultGateway.NONE), interface(V4, V6, asked=DefaultGateway.IPV6)], None, 1),
        Case([interface(V4), interface(BARE, asked=DefaultGateway.IPV4)], 0, None),
    ],
)
def test_each_family_has_one_at_most(case: Case) -> None:
    wanted = [(4, case.v4, "10.0.0.1"), (6, case.v6, "fd00::1")]
    assert expected_defaults(case.interfaces) == [
        ExpectedDefault(family, position, gateway) for family, position, gateway in wanted if position is not None
    ]


def test_interfaces_are_named_as_thick_mode_names_them() -> None:
    named = [interface(), interface(name="web"), interface()]
    assert [thick_name(index, each.interface) for index, each in enumerate(named)] == ["eth0", "web", "eth2"]
