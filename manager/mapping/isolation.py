"""Namespace isolation: tenants can use the networks of their own namespace and of the global namespaces.

It applies to pods and to NADs outside the global namespaces. Tenants write those NADs, and a NAD that refers to another
tenant's network would bypass the isolation. Annotations of namespaces are exempt: administrators write them.
"""

from contrail_config.objects import FqName
from manager.configuration import ManagerConfiguration
from manager.mapping.fq_names import DOMAIN, pod_network_name, project_name


def may_use_nad(configuration: ManagerConfiguration, *, own: str, other: str) -> bool:
    """Whether pods of the namespace `own` may use NADs of the namespace `other`."""
    isolation = configuration.namespace_isolation
    return not isolation.enabled or other == own or other in isolation.global_namespaces


def may_use_network(configuration: ManagerConfiguration, *, own: str, network: FqName) -> bool:
    """Whether objects of the namespace `own` may use a network by its fq_name; all may use the pod network."""
    isolation = configuration.namespace_isolation
    if not isolation.enabled or network == pod_network_name(configuration.cluster_name):
        return True
    visible = (project_name(configuration.cluster_name, namespace) for namespace in (own, *isolation.global_namespaces))
    return network[0] == DOMAIN and network[1] in visible
