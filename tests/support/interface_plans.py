"""Interface plans with defaults for every field."""

from typing import Any

from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route


def interface_plan(position: int = 0, **changes: Any) -> InterfacePlan:
    """A dual-stack interface `eth<position>` with its own subnets and a route; position 0 has the default routes."""
    ipv6 = f"fd00:{position}::" if position else "fd00::"
    plan = InterfacePlan(
        name=f"eth{position}",
        host_name=f"tapplan{position}",
        alias=f"contrail 0123456789ab default/pod {position}",
        mac=f"02:00:5e:10:00:{position:02x}",
        mtu=1500,
        addresses=(Address(f"10.{position}.0.5", 24), Address(f"{ipv6}5", 64)),
        routes=(Route(f"10.{100 + position}.0.0/16", f"10.{position}.0.1"),),
        defaults=(DefaultRoute("10.0.0.1", asked=False), DefaultRoute("fd00::1", asked=False)) if position == 0 else (),
    )
    return plan._replace(**changes)


def bare_plan(position: int = 0, **changes: Any) -> InterfacePlan:
    """An interface without addresses and routes, unless `changes` has them."""
    return interface_plan(position, **{"addresses": (), "routes": (), "defaults": (), **changes})
