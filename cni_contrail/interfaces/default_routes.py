"""The default-gateway rule: which interface of a pod carries the default route of a family.

The one whose annotation `default-gw` covers the family; if none, and index 0 does not say `none`, the lowest index that
has an address and a gateway in it. An interface that is asked for a family in which it has no gateway cannot carry it,
and the rule goes on as if it had not been asked. Where a stock agent has not told an interface's addresses yet, it is
taken to have a gateway.
"""

from collections.abc import Mapping, Sequence

from cni_contrail.interfaces.served import ServedInterface
from cni_contrail.link.plan import DefaultRoute


def default_routes(
    interfaces: Sequence[ServedInterface], *, primary_is_ours: bool
) -> Mapping[str, tuple[DefaultRoute, ...]]:
    """The default routes of a pod, by the uuid of the interface that carries them.

    `interfaces` are all of the pod's in the order of their indexes. `primary_is_ours`: index 0 of this container is
    attached by this plugin. If another plugin may own it, only a default that is asked for is made.
    """
    routes: dict[str, tuple[DefaultRoute, ...]] = {}
    for family in (4, 6):
        able = [each for each in interfaces if each.addresses is None or each.gateway(family)]
        askers = [each for each in able if each.requests_default(family)]
        owner = askers[0] if askers else _fallback(able, interfaces) if primary_is_ours else None
        if owner is not None and (gateway := owner.gateway(family)) is not None:
            routes[owner.uuid] = (*routes.get(owner.uuid, ()), DefaultRoute(gateway, asked=bool(askers)))
    return routes


def _fallback(able: Sequence[ServedInterface], interfaces: Sequence[ServedInterface]) -> ServedInterface | None:
    return able[0] if able and not interfaces[0].disables_default else None
