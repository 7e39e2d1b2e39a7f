"""Builds virtual networks from the configuration, from NADs, and for isolated namespaces."""

import msgspec

from contrail_config.objects import ForwardingMode, VirtualNetwork, network_uuid
from contrail_service.errors import ConfigurationError
from manager.configuration import ManagerConfiguration, read_pod_network
from manager.mapping.fq_names import isolated_network_name, nad_network_name, pod_network_name
from manager.parsing.namespace_settings import NamespaceSettings
from manager.parsing.network_definition import NetworkDefinition
from manager.parsing.validation import ValidationErrors
from manager.source import Nad


def pod_network(configuration: ManagerConfiguration) -> VirtualNetwork:
    """Returns the cluster pod network. Raises ConfigurationError."""
    errors = ValidationErrors()
    values = read_pod_network(errors, configuration.pod_network)
    if errors.problems:
        raise ConfigurationError("; ".join(errors.problems))
    name = pod_network_name(configuration.cluster_name)
    return VirtualNetwork(
        fq_name=name,
        uuid=network_uuid(name),
        subnets=values.subnets,
        dns=values.dns,
        mtu=configuration.network_mtu,
        routes=values.routes,
        forwarding_mode=ForwardingMode.L3,
    )


def isolated_network(
    namespace: str, settings: NamespaceSettings, configuration: ManagerConfiguration
) -> VirtualNetwork:
    """Returns the pod network of an isolated namespace, in the subnets of the cluster pod network."""
    name = isolated_network_name(configuration.cluster_name, namespace)
    return msgspec.structs.replace(
        pod_network(configuration),
        fq_name=name,
        uuid=network_uuid(name),
        ip_fabric_snat=settings.ip_fabric_snat,
        ip_fabric_forwarding=settings.ip_fabric_forwarding,
        namespace=namespace,
    )


def nad_network(nad: Nad, definition: NetworkDefinition, configuration: ManagerConfiguration) -> VirtualNetwork:
    """Returns the network of a NAD with subnets of its own. Its default MTU is that of the pod network.

    Its forwarding mode is l2_l3 unless the NAD states one.
    """
    name = nad_network_name(configuration.cluster_name, namespace=nad.namespace, name=nad.name)
    return VirtualNetwork(
        fq_name=name,
        uuid=network_uuid(name),
        subnets=definition.subnets,
        dns=definition.dns,
        mtu=definition.mtu or configuration.network_mtu,
        routes=definition.routes,
        ip_fabric_snat=definition.ip_fabric_snat,
        ip_fabric_forwarding=definition.ip_fabric_forwarding,
        nad=nad.key,
        forwarding_mode=definition.forwarding_mode or ForwardingMode.L2_L3,
    )
