"""Options of the live check, and what they select: networks, and places of pods. Raises errors before any is made."""

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from contrail_config.kubernetes.expected_slices import StoredObjects
from contrail_config.objects import VirtualNetwork
from contrailctl.check.live.target import Target
from contrailctl.errors import NotFoundError, UsageError


class LiveOptions(NamedTuple):
    """What the operator wants; `namespace` is empty for a temporary one, `networks` None for all."""

    networks: Sequence[str] | None
    namespace: str
    image: str
    outside: Sequence[Target]
    max_pods: int


def live_options(arguments: argparse.Namespace) -> LiveOptions | None:
    """Returns the options, None without --live. Raises UsageError if one of them is given without it."""
    if arguments.live:
        return LiveOptions(
            arguments.networks,
            arguments.live_namespace or "",
            arguments.image or "",
            arguments.outside or (),
            arguments.max_pods,
        )
    given = {
        "--network": arguments.networks,
        "--live-namespace": arguments.live_namespace,
        "--image": arguments.image,
        "--outside": arguments.outside,
    }
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} needs --live")
    return None


def selected_networks(stored: StoredObjects, wanted: Sequence[str] | None) -> dict[str, VirtualNetwork]:
    """Returns the networks to check by their NADs, without those that take no pods. Raises NotFoundError."""
    known = {network.nad: network for network in stored.networks if network.nad is not None and not network.retired}
    for nad in wanted or ():
        if nad not in known:
            raise NotFoundError(f"network {nad} not found: no NAD with this namespace/name defines one")
    return {nad: known[nad] for nad in sorted(known if wanted is None else set(wanted))}


def places_of(nodes: Sequence[str], networks: Mapping[str, VirtualNetwork], *, max_pods: int) -> list[tuple[str, str]]:
    """Returns node and NAD of each pod; one per node is at index 0 alone. Raises UsageError, NotFoundError."""
    if not nodes:
        raise NotFoundError("--live: no node has an agent that reports")
    places = [(node, nad) for node in nodes for nad in ("", *networks)]
    if len(places) > max_pods:
        raise UsageError(
            f"--live: {len(places)} pods are needed ({len(nodes)} nodes, {len(networks)} networks and index 0), more "
            f"than --max-pods {max_pods}: name some by --node and --network"
        )
    return places


def has_gateway(network: VirtualNetwork) -> bool:
    """Whether pods can have default routes through the network."""
    return any(subnet.gateway is not None for subnet in network.subnets)
