"""NADs that a pod names, in any of the ways to choose a network: a pod waits for these, and for no other one.

Only names: whether the NADs exist, and whether the pod may use them, is decided when the pod is resolved. A request
that cannot be parsed names nothing, since it is refused whatever the NADs are.
"""

import contextlib
from collections.abc import Iterator

from contrail_config.objects import FqName
from manager.configuration import ManagerConfiguration
from manager.mapping.catalogue import Catalogue
from manager.mapping.errors import MappingError
from manager.mapping.fq_names import nad_of_network
from manager.mapping.primary_network import default_network_selections, network_name
from manager.parsing.errors import AnnotationError
from manager.parsing.networks import NETWORKS_KEY, parse_networks
from manager.source import Pod


def named_nads(pod: Pod, *, catalogue: Catalogue, configuration: ManagerConfiguration) -> Iterator[str]:
    """Yields `namespace/name` of each NAD that the pod names, and of those whose networks it names."""
    with contextlib.suppress(AnnotationError):
        attachments = parse_networks(
            pod.annotations.get(NETWORKS_KEY, ""), namespace=pod.namespace, defer_unsupported=True
        )
        yield from (selection.key for selection in attachments)
    with contextlib.suppress(MappingError):
        yield from (selection.key for selection in default_network_selections(pod, configuration))
    with contextlib.suppress(MappingError):
        yield from _owner(network_name(pod, catalogue, configuration), configuration)


def _owner(name: FqName, configuration: ManagerConfiguration) -> Iterator[str]:
    nad = nad_of_network(configuration.cluster_name, name)
    if nad is not None:
        yield nad
