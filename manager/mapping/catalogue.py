"""Lookup of the objects that pods refer to: NADs by `namespace/name`, networks by fq_name, namespaces.

The controllers that watch NADs and networks update it; the mapping only reads it.
"""

from collections.abc import Mapping

import msgspec

from contrail_config.objects import FqName, VirtualNetwork
from manager.dependencies import nad_dependency, network_dependency
from manager.mapping.errors import PodWaitsError
from manager.reasons import Reason


class ServedNad(msgspec.Struct, frozen=True):
    """A NAD of the Contrail plugin; its attachments are in `network`."""

    config_name: str
    network: FqName


class ForeignNad(msgspec.Struct, frozen=True):
    """A NAD of another plugin."""

    plugin: str


class UnusableNad(msgspec.Struct, frozen=True):
    """A NAD of the Contrail plugin that cannot be used now; `problem` is the message of its event."""

    problem: str


KnownNad = ServedNad | ForeignNad | UnusableNad


class Catalogue:
    """Current NADs, networks, and annotations of namespaces."""

    def __init__(self) -> None:
        self.nads: dict[str, KnownNad] = {}
        self.networks: dict[FqName, VirtualNetwork] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}

    def nad(self, key: str) -> ServedNad | ForeignNad:
        """Returns the NAD `namespace/name`. Raises PodWaitsError if it does not exist or cannot be used."""
        known = self.nads.get(key)
        if known is None:
            message = f"network attachment definition {key} not found"
            raise PodWaitsError(Reason.NETWORK_NOT_FOUND, message, nad_dependency(key))
        # The pod waits rather than being refused: the NAD may be corrected.
        if isinstance(known, UnusableNad):
            message = f"network attachment definition {key} cannot be used: {known.problem}"
            raise PodWaitsError(Reason.NETWORK_UNUSABLE, message, nad_dependency(key))
        return known

    def network(self, fq_name: FqName) -> VirtualNetwork:
        """Returns the network. Raises PodWaitsError if it does not exist, is being deleted, or has no subnet."""
        network = self.networks.get(fq_name)
        if network is None:
            reason, problem = Reason.NETWORK_NOT_FOUND, "not found"
        elif network.retired:
            reason, problem = Reason.NETWORK_UNUSABLE, "has no NAD any more: deleted with its last interface"
        # A network of another creator may have no subnets yet.
        elif not network.subnets:
            reason, problem = Reason.NETWORK_UNUSABLE, "has no subnet"
        else:
            return network
        raise PodWaitsError(reason, f"network {':'.join(fq_name)} {problem}", network_dependency(fq_name))
