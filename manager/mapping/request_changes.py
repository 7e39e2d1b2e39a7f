"""Detects that a pod's request changed after its interfaces were assigned: they stay as they are (rule 5).

Only the pod's own request counts. Other changes concern new pods only: a namespace that chooses another network for
index 0, or a network that gains an address family, and with it a gateway. Pods get no event for those when they happen,
so they must not get one when a manager restarts and compares all pods.

Not detected: a pod that no longer chooses the network of index 0 by name, since the virtual machine does not record who
chose it.
"""

from collections.abc import Sequence

from contrail_config.objects import DefaultGateway, VirtualMachine, VirtualMachineInterface
from manager.mapping.interface_spec import InterfaceSpec


def describe_change(virtual_machine: VirtualMachine, specs: Sequence[InterfaceSpec]) -> str | None:
    """Returns how the pod's current request differs from its virtual machine; None if it does not."""
    if len(virtual_machine.interfaces) != len(specs):
        return f"{len(specs)} interfaces instead of {len(virtual_machine.interfaces)}"
    # For a pod with IPv4 gateways only, `true` and `ipv4` are the same request.
    families = frozenset(family for interface in virtual_machine.interfaces for family in _gateways(interface))
    for index, (interface, spec) in enumerate(zip(virtual_machine.interfaces, specs, strict=True)):
        if changes := ", ".join(_differences(interface, spec, families)):
            return f"index {index}: {changes}"
    return None


def _differences(interface: VirtualMachineInterface, spec: InterfaceSpec, families: frozenset[int]) -> list[str]:
    """`families` are the address families in which the pod has gateways."""
    addresses = {address.address for address in interface.addresses}
    gateways = _gateways(interface).values()
    pairs: list[tuple[str, object, object]] = [
        ("interface", spec.interface, interface.interface),
        # Without a request, any assigned MAC or address is unchanged.
        ("mac", spec.mac or interface.mac, interface.mac),
        ("ips", " ".join(each for each in spec.requested_addresses if each not in addresses), ""),
        ("default-route", " ".join(each for each in spec.default_route or () if each not in gateways), ""),
    ]
    # A network chosen by namespace or configuration is not part of the request.
    if spec.chosen_by_pod or interface.nad is not None:
        current = ":".join(interface.network)
        pairs.insert(0, ("network", spec.nad or ":".join(spec.network.fq_name), interface.nad or current))
    if _covers(spec.default_gw, families) != _covers(interface.default_gw, families):
        pairs.append(("default-gw", spec.default_gw, interface.default_gw))
    return [f"{key} {new or 'none'} instead of {old or 'none'}" for key, new, old in pairs if new != old]


def _gateways(interface: VirtualMachineInterface) -> dict[int, str]:
    return {address.family: address.gateway for address in interface.addresses if address.gateway is not None}


def _covers(requested: DefaultGateway | None, families: frozenset[int]) -> tuple[bool, frozenset[int]]:
    """Whether the request refuses default routes, and the families whose default route it requests."""
    requested_families = requested.families if requested is not None else frozenset[int]()
    return requested is DefaultGateway.NONE, requested_families & families
