"""Whether a pod still asks for what it was given: networks are chosen when a pod is made and stay (rule 5).

Looks at what the pod itself asks for. What others change concerns new pods alone: a namespace that chooses another
network for index 0, or a network that gains a family, and with it a gateway. Pods are not told of it when it happens,
so they are not when a manager starts again and compares them all.

Not seen: that a pod no longer chooses the network of index 0 by its name, since the machine does not say who chose it.
"""

from collections.abc import Sequence

from contrail_config.objects import DefaultGateway, VirtualMachine, VirtualMachineInterface
from manager.mapping.interface_spec import InterfaceSpec


def describe_change(machine: VirtualMachine, specs: Sequence[InterfaceSpec]) -> str | None:
    """What the pod asks for now that its machine is not; None if it asks for the same."""
    if len(machine.interfaces) != len(specs):
        return f"{len(specs)} interfaces instead of {len(machine.interfaces)}"
    families = frozenset(family for interface in machine.interfaces for family in _gateways(interface))
    for index, (interface, spec) in enumerate(zip(machine.interfaces, specs, strict=True)):
        if changes := ", ".join(_differences(interface, spec, families)):
            return f"index {index}: {changes}"
    return None


def _differences(interface: VirtualMachineInterface, spec: InterfaceSpec, families: frozenset[int]) -> list[str]:
    """`families` are those in which the pod has gateways."""
    addresses = {address.address for address in interface.addresses}
    gateways = _gateways(interface).values()
    pairs: list[tuple[str, object, object]] = [
        ("interface", spec.interface, interface.interface),
        ("mac", spec.mac or interface.mac, interface.mac),
        ("ips", " ".join(wish for wish in spec.requested_addresses if wish not in addresses), ""),
        ("default-route", " ".join(asked for asked in spec.default_route or () if asked not in gateways), ""),
    ]
    if spec.chosen or interface.nad is not None:
        own = ":".join(interface.network)
        pairs.insert(0, ("network", spec.nad or ":".join(spec.network.fq_name), interface.nad or own))
    if _covers(spec.default_gw, families) != _covers(interface.default_gw, families):
        pairs.append(("default-gw", spec.default_gw, interface.default_gw))
    return [f"{what} {asked or 'none'} instead of {given or 'none'}" for what, asked, given in pairs if asked != given]


def _gateways(interface: VirtualMachineInterface) -> dict[int, str]:
    return {address.family: address.gateway for address in interface.addresses if address.gateway is not None}


def _covers(asked: DefaultGateway | None, families: frozenset[int]) -> tuple[bool, frozenset[int]]:
    """Whether there is to be no default route at all, and for which of the families it is to go here."""
    asked_for = asked.families if asked is not None else frozenset[int]()
    return asked is DefaultGateway.NONE, asked_for & families
