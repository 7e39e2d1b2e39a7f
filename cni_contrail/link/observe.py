"""Reads the state of a sandbox's interfaces and their host ends from the kernel, all of them at once.

The number of exchanges with the kernel does not grow with the number of interfaces.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from cni_contrail.link import links
from cni_contrail.link.addresses import AddressInfo, dump_addresses, parse_address
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.links import LinkInfo
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns_ids import netns_id_of
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.routes import RouteInfo, dump_routes, parse_routes
from cni_contrail.link.source_routing import RuleInfo, dump_rules, parse_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cni_contrail.link.check_macvlans import ObservedMacvlans

_BATCH = 256  # objects that are parsed between two checkpoints


class Observed(NamedTuple):
    """Links by name, those that exist; addresses, routes and rules of the whole sandbox.

    `sandbox_id` is the namespace ID of the sandbox in the host's namespace, negative if it has none. `macvlans` is None
    unless a plan is of nested mode.
    """

    host_ends: dict[str, LinkInfo]
    sandbox_ends: dict[str, LinkInfo]
    sandbox_id: int
    addresses: tuple[AddressInfo, ...]
    routes: tuple[RouteInfo, ...]
    rules: frozenset[RuleInfo]
    macvlans: ObservedMacvlans | None


def observe(netns_fd: int, plans: Sequence[InterfacePlan], checkpoint: Callable[[], None]) -> Observed:
    """Reads what exists of the plans; the calling thread is in the host's network namespace.

    `checkpoint` is called often, and may raise to end the call. Raises NetnsError or KernelError.
    """
    with RouteSocket() as host:
        host_ends = _links(host, [plan.host_name for plan in plans if not plan.vlan_id])
    checkpoint()
    with open_route_socket(netns_fd) as sandbox:
        sandbox_ends = _links(sandbox, [plan.name for plan in plans])
        addresses = sandbox.dump(dump_addresses())
        checkpoint()
        routes: list[RouteInfo] = []
        for position, body in enumerate(sandbox.dump(dump_routes())):
            routes += parse_routes(body)
            if position % _BATCH == 0:
                checkpoint()
        rules = _rules(sandbox) if any(plan.source_routing for plan in plans) else frozenset()
    macvlans = None
    if any(plan.vlan_id for plan in plans):
        from cni_contrail.link.check_macvlans import observe_macvlans  # nested mode only

        macvlans = observe_macvlans(netns_fd, plans)
    return Observed(
        host_ends,
        sandbox_ends,
        netns_id_of(netns_fd),
        tuple(parse_address(body) for body in addresses),
        tuple(routes),
        rules,
        macvlans,
    )


def _rules(sandbox: RouteSocket) -> frozenset[RuleInfo]:
    return frozenset(rule for body in sandbox.dump(dump_rules()) if (rule := parse_rule(body)))


def _links(kernel: RouteSocket, names: Sequence[str]) -> dict[str, LinkInfo]:
    found = {}
    for name, answer in zip(names, kernel.get([links.get(name) for name in names]), strict=True):
        if not isinstance(answer, KernelError):
            found[name] = links.parse_link(answer)
        elif answer.errno != errno.ENODEV:
            raise answer
    return found
