"""Namespace isolation: tenants see their own namespace's networks, and those of the global namespaces.

It binds pods and, since tenants write them, also the NADs of other than global namespaces: else a NAD of one's own that
refers to a foreign network would be a way round. What an administrator wrote on a namespace is not bound.
"""

from contrail_config.objects import FqName
from manager.configuration import ManagerConfiguration
from manager.mapping.fq_names import DOMAIN, pod_network_name, project_name


def may_use_nad(configuration: ManagerConfiguration, *, own: str, other: str) -> bool:
    """Whether who lives in the namespace `own` may name a NAD of the namespace `other`."""
    isolation = configuration.namespace_isolation
    return not isolation.enabled or other == own or other in isolation.global_namespaces


def may_use_network(configuration: ManagerConfiguration, *, own: str, network: FqName) -> bool:
    """Whether who lives in the namespace `own` may choose a network by its fq_name; the pod network is everybody's."""
    isolation = configuration.namespace_isolation
    if not isolation.enabled or network == pod_network_name(configuration.cluster_name):
        return True
    seen = (project_name(configuration.cluster_name, namespace) for namespace in (own, *isolation.global_namespaces))
    return network[0] == DOMAIN and network[1] in seen
