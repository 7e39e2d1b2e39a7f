"""The cluster pod network, as the configuration says, at start."""

import msgspec

from contrail_config.errors import InUseError
from contrail_config.objects import VirtualNetwork
from contrail_config.store import Store
from contrail_service.errors import ConfigurationError


async def keep_pod_network(store: Store, wanted: VirtualNetwork) -> VirtualNetwork:
    """Makes the network, or brings it up to date, and returns it as kept.

    Subnets can be added, but none can change or go while an address of the network is given. Raises ConfigurationError.
    """
    present = next((network for network in await store.networks() if network.uuid == wanted.uuid), None)
    if present is None:
        return await store.put_network(wanted)
    if not set(present.subnets) <= set(wanted.subnets):
        await _remove(store, present, wanted)
    return await store.put_network(msgspec.structs.replace(wanted, vni=present.vni))


async def _remove(store: Store, present: VirtualNetwork, wanted: VirtualNetwork) -> None:
    try:
        await store.delete_network(present.uuid)
    except InUseError as error:
        key = "subnets" if _cidrs(present) - _cidrs(wanted) else "gateway"
        problem = f"cannot be changed while pods have addresses of the pod network, which has {_told(present)}"
        raise ConfigurationError(f"pod-network.{key}: {problem}, to {_told(wanted)}") from error


def _cidrs(network: VirtualNetwork) -> set[str]:
    return {subnet.cidr for subnet in network.subnets}


def _told(network: VirtualNetwork) -> str:
    return ", ".join(f"{subnet.cidr} (gateway {subnet.gateway or 'none'})" for subnet in network.subnets)
