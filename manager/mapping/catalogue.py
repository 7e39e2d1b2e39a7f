"""What pods can refer to: NADs by `namespace/name`, networks by fq_name, namespaces.

Kept by whoever follows NADs and the store's networks; the mapping only looks things up.
"""

from collections.abc import Mapping

import msgspec

from contrail_config.objects import FqName, VirtualNetwork
from manager.dependencies import nad_dependency, network_dependency
from manager.mapping.errors import PodWaitsError
from manager.reasons import Reason


class ServedNad(msgspec.Struct, frozen=True):
    """One of ours: its attachments are in `network`."""

    config_name: str
    network: FqName


class ForeignNad(msgspec.Struct, frozen=True):
    """One of another plugin."""

    plugin: str


class UnusableNad(msgspec.Struct, frozen=True):
    """One of ours that takes no pods now; `problem` is what its own event says."""

    problem: str


KnownNad = ServedNad | ForeignNad | UnusableNad


class Catalogue:
    """NADs, networks and annotations of namespaces, all as they are now."""

    def __init__(self) -> None:
        self.nads: dict[str, KnownNad] = {}
        self.networks: dict[FqName, VirtualNetwork] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}

    def nad(self, key: str) -> ServedNad | ForeignNad:
        """The NAD `namespace/name`. Raises PodWaitsError if it is not there or takes no pods."""
        known = self.nads.get(key)
        if known is None:
            message = f"network attachment definition {key} is not there"
            raise PodWaitsError(Reason.NETWORK_NOT_FOUND, message, nad_dependency(key))
        if isinstance(known, UnusableNad):
            message = f"network attachment definition {key} takes no pods: {known.problem}"
            raise PodWaitsError(Reason.NETWORK_UNUSABLE, message, nad_dependency(key))
        return known

    def network(self, fq_name: FqName) -> VirtualNetwork:
        """The network of that name. Raises PodWaitsError if it is not there, goes, or has no addresses to give."""
        network = self.networks.get(fq_name)
        if network is None:
            reason, problem = Reason.NETWORK_NOT_FOUND, "is not there"
        elif network.retired:
            reason, problem = Reason.NETWORK_UNUSABLE, "goes with its last interface, since its NAD is gone"
        elif not network.subnets:
            reason, problem = Reason.NETWORK_UNUSABLE, "has no subnet"
        else:
            return network
        raise PodWaitsError(reason, f"network {':'.join(fq_name)} {problem}", network_dependency(fq_name))
