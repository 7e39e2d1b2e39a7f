"""fq_names as upstream's kube-manager forms them.

The cluster pod network bears the very name that a NAD `default` in the namespace `default` would give to its network.
"""

from contrail_config.objects import FqName

DOMAIN = "default-domain"


def project_name(cluster: str, namespace: str) -> str:
    """Project of a namespace's machines and networks."""
    return f"{cluster}-{namespace}"


def nad_network_name(cluster: str, *, namespace: str, name: str) -> FqName:
    """Name of the network that a NAD makes."""
    return (DOMAIN, project_name(cluster, namespace), f"{cluster}-{name}-pod-network")


def pod_network_name(cluster: str) -> FqName:
    """Name of the cluster pod network."""
    return nad_network_name(cluster, namespace="default", name="default")
