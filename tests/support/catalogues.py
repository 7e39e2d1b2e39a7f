"""Catalogues of networks and NADs, built as the manager builds them."""

from contrail_config.addressing.notation import format_address
from contrail_config.objects import InterfaceAddress, VirtualMachine
from contrail_config.store import AddressRequest
from manager.configuration import ManagerConfiguration
from manager.mapping.catalogue import Catalogue, ForeignNad, ServedNad
from manager.mapping.interface_resolution import ResolvedInterfaces, resolve_interfaces
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.network_addressing import bounds_of, families
from manager.mapping.virtual_machine import address_requests, build_virtual_machine
from manager.mapping.virtual_network import nad_network, pod_network
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import ForeignDefinition
from manager.source import Nad, Pod

DEFAULTS = ManagerConfiguration()


def make_catalogue(*nads: Nad, configuration: ManagerConfiguration = DEFAULTS) -> Catalogue:
    """Returns a catalogue with the pod network and the NADs."""
    catalogue = Catalogue()
    network = pod_network(configuration)
    catalogue.networks[network.fq_name] = network
    for nad in nads:
        add_nad(catalogue, nad, configuration=configuration)
    return catalogue


def add_nad(catalogue: Catalogue, nad: Nad, *, configuration: ManagerConfiguration = DEFAULTS) -> None:
    """Adds a NAD, and its own network if it has one."""
    definition = parse_nad(nad, default_mtu=configuration.network_mtu)
    if isinstance(definition, ForeignDefinition):
        catalogue.nads[nad.key] = ForeignNad(definition.plugin)
        return
    network = nad_network(nad, definition, configuration)
    if definition.reference is None:
        catalogue.networks[network.fq_name] = network
    catalogue.nads[nad.key] = ServedNad(definition.config_name, definition.reference or network.fq_name)


def resolve(pod: Pod, *nads: Nad, configuration: ManagerConfiguration = DEFAULTS) -> ResolvedInterfaces:
    """Resolves the pod's interfaces with these NADs."""
    catalogue = make_catalogue(*nads, configuration=configuration)
    return resolve_interfaces(pod, catalogue=catalogue, configuration=configuration)


def build(
    pod: Pod, *nads: Nad, configuration: ManagerConfiguration = DEFAULTS, default_mtu: int = 1500
) -> VirtualMachine:
    """Returns the pod's virtual machine, with addresses as a store allocates them to the first pod."""
    specs = resolve(pod, *nads, configuration=configuration).interfaces
    requests = address_requests(pod, specs, cluster=configuration.cluster_name)
    requested_gateways = zip((request.owner for request in requests), _allocate(requests, specs), strict=True)
    cluster = configuration.cluster_name
    return build_virtual_machine(pod, specs, requested_gateways, cluster=cluster, default_mtu=default_mtu)


def _allocate(requests: list[AddressRequest], specs: tuple[InterfaceSpec, ...]) -> list[InterfaceAddress]:
    networks = {each.network.uuid: each.network for each in specs}
    taken: set[tuple[str, str]] = set()
    allocated = []
    for request in requests:
        assert request.family in families(networks[request.network_uuid])
        subnets = [s for s in networks[request.network_uuid].subnets if (":" in s.cidr) == (request.family == 6)]
        bounds = bounds_of(subnets[0])
        free = (format_address(number, family=request.family) for number in range(bounds.first + 2, bounds.last))
        address = request.address or next(each for each in free if (request.network_uuid, each) not in taken)
        taken.add((request.network_uuid, address))
        allocated.append(InterfaceAddress(address, bounds.prefix_length, bounds.gateway))
    return allocated
