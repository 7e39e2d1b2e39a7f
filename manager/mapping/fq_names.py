"""Contrail fq_names, in the form of upstream's kube-manager.

The cluster pod network has the same name as the network of a NAD `default` in the namespace `default`.
"""

from contrail_config.objects import FqName

DOMAIN = "default-domain"


def project_name(cluster: str, namespace: str) -> str:
    """Returns the project of a namespace's virtual machines and networks."""
    return f"{cluster}-{namespace}"


def nad_network_name(cluster: str, *, namespace: str, name: str) -> FqName:
    """Returns the name of a NAD's own network."""
    return (DOMAIN, project_name(cluster, namespace), f"{cluster}-{name}-pod-network")


def isolated_network_name(cluster: str, namespace: str) -> FqName:
    """Returns the name of an isolated namespace's pod network: that of a NAD with the name of the namespace."""
    return nad_network_name(cluster, namespace=namespace, name=namespace)


def namespace_of_isolated_network(cluster: str, name: FqName) -> str | None:
    """Returns the namespace whose own pod network would have this name; None if none would."""
    namespace, _, nad = (nad_of_network(cluster, name) or "").partition("/")
    return namespace if namespace and namespace == nad else None


def nad_of_network(cluster: str, name: FqName) -> str | None:
    """Returns `namespace/name` of the NAD whose own network has this name; None if that can be no NAD's."""
    _, project, network = name
    namespace = project.removeprefix(f"{cluster}-")
    nad = network.removeprefix(f"{cluster}-").removesuffix("-pod-network")
    return f"{namespace}/{nad}" if nad_network_name(cluster, namespace=namespace, name=nad) == name else None


def pod_network_name(cluster: str) -> FqName:
    """Returns the name of the cluster pod network."""
    return nad_network_name(cluster, namespace="default", name="default")
