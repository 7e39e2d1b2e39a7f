"""Reads the state of a sandbox's interfaces and their host ends from the kernel, all of them at once.

The number of exchanges with the kernel does not grow with the number of interfaces.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence

from cni_contrail.link import links
from cni_contrail.link.addresses import AddressInfo, dump_addresses, parse_address
from cni_contrail.link.arp_settings import arp_setting_differences
from cni_contrail.link.bridge_port import parse_master
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.host_side import open_host_side
from cni_contrail.link.links import LinkInfo
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns_ids import get_netns_id, parse_netns_id
from cni_contrail.link.observed_routes import ObservedRoutes, observe_routes
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.source_routing import RuleInfo, dump_rules, parse_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cni_contrail.link.check_macvlans import ObservedMacvlans


class HostEnd(NamedTuple):
    """A host end; `sandbox_id` is the ID by which its namespace knows the sandbox, negative if it has none.

    `master` is the index of the bridge that it is a port of, 0 without one.
    """

    link: LinkInfo
    sandbox_id: int
    master: int


class Observed(NamedTuple):
    """Links by name, those that exist; addresses and rules of the whole sandbox, and routes of the plans.

    `arp_differences` are those of interfaces that share a subnet (`arp_settings`), by name. `macvlans` is None unless a
    plan is of nested mode.
    """

    host_ends: dict[str, HostEnd]
    sandbox_ends: dict[str, LinkInfo]
    addresses: tuple[AddressInfo, ...]
    routes: ObservedRoutes
    rules: frozenset[RuleInfo]
    arp_differences: dict[str, list[str]]
    macvlans: ObservedMacvlans | None


def observe(netns_fd: int, plans: Sequence[InterfacePlan], checkpoint: Callable[[], None], netns_dir: str) -> Observed:
    """Reads what exists of the plans; the calling thread is in the host's network namespace.

    `checkpoint` is called often, and may raise to end the call. Raises NetnsError or KernelError.
    """
    host_ends = _host_ends(netns_fd, plans, netns_dir)
    checkpoint()
    with open_route_socket(netns_fd) as sandbox:
        answers = dict(_answers(sandbox, [plan.name for plan in plans]))
        ends = {name: links.parse_link(body) for name, body in answers.items()}
        addresses = sandbox.dump(dump_addresses())
        checkpoint()
        routes = observe_routes(sandbox, plans, ends, checkpoint)
        rules = _rules(sandbox) if any(plan.source_routing for plan in plans) else frozenset()
    sharing = [plan.name for plan in plans if plan.source_routing and plan.name in answers]
    macvlans = None
    if any(plan.vlan_id for plan in plans):
        from cni_contrail.link.check_macvlans import observe_macvlans  # nested mode only

        macvlans = observe_macvlans(netns_fd, plans)
    return Observed(
        host_ends,
        ends,
        tuple(parse_address(body) for body in addresses),
        routes,
        rules,
        {name: arp_setting_differences(name, answers[name]) for name in sharing},
        macvlans,
    )


def _host_ends(netns_fd: int, plans: Sequence[InterfacePlan], netns_dir: str) -> dict[str, HostEnd]:
    found: dict[str, HostEnd] = {}
    for namespace in dict.fromkeys(plan.namespace for plan in plans if not plan.vlan_id):
        host = open_host_side(namespace, netns_dir)
        if host is None:
            continue
        with host:
            names = [plan.host_name for plan in plans if plan.namespace == namespace and not plan.vlan_id]
            sandbox_id = parse_netns_id(host.execute_all_and_get([], get_netns_id(netns_fd)))
            for name, body in _answers(host, names):
                found[name] = HostEnd(links.parse_link(body), sandbox_id, parse_master(body))
    return found


def _rules(sandbox: RouteSocket) -> frozenset[RuleInfo]:
    return frozenset(rule for body in sandbox.dump(dump_rules()) if (rule := parse_rule(body)))


def _answers(kernel: RouteSocket, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yields the links that exist."""
    for name, answer in zip(names, kernel.get([links.get(name) for name in names]), strict=True):
        if not isinstance(answer, KernelError):
            yield name, answer
        elif answer.errno != errno.ENODEV:
            raise answer
