"""The default-gateway rule: which interface of a pod carries the default route of a family.

The one whose annotation `default-gw` covers the family; if none, and index 0 does not say `none`, the lowest index that
has an address and a gateway in it. An interface that is asked for a family in which it has no gateway cannot carry it,
and the rule goes on as if it had not been asked. Where a stock agent has not told an interface's addresses yet, it is
taken to have a gateway.
"""

from collections.abc import Sequence

from cni_contrail.interfaces.served import ServedInterface
from cni_contrail.link.plan import DefaultRoute


def default_routes(
    interface: ServedInterface, interfaces: Sequence[ServedInterface], *, primary_is_ours: bool
) -> tuple[DefaultRoute, ...]:
    """The default routes that one interface carries, of the pod's `interfaces` in the order of their indexes.

    `primary_is_ours`: index 0 of this container is attached by this plugin. If another plugin may own it, only a
    default that is asked for is made.
    """
    routes = (_default_route(family, interface, interfaces, primary_is_ours=primary_is_ours) for family in (4, 6))
    return tuple(route for route in routes if route)


def _default_route(
    family: int, interface: ServedInterface, interfaces: Sequence[ServedInterface], *, primary_is_ours: bool
) -> DefaultRoute | None:
    able = [each for each in interfaces if each.addresses is None or each.gateway(family)]
    askers = [each for each in able if each.asks_for_default(family)]
    owner = askers[0] if askers else _fallback(able, interfaces) if primary_is_ours else None
    gateway = interface.gateway(family)
    if owner is None or owner.uuid != interface.uuid or gateway is None:
        return None
    return DefaultRoute(gateway, asked=bool(askers))


def _fallback(able: Sequence[ServedInterface], interfaces: Sequence[ServedInterface]) -> ServedInterface | None:
    return able[0] if able and not interfaces[0].refuses_default else None
