"""Interfaces that a datapath connects: host ends in the namespaces of their networks, or routed by the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cni_contrail.addresses import family_of
from cni_contrail.commands.node import NodeServices
from cni_contrail.datapath.attachment import connect_ports, held_networks
from cni_contrail.datapath.desired import PENDING, LocalPort, Network, RoutedPort
from cni_contrail.datapath.namespaces import vni_of
from cni_contrail.datapath.routed_port import connect_routed
from cni_contrail.link.make import make_interfaces
from cni_contrail.link.plan import Address, InterfacePlan


def make_in_networks(node: NodeServices, netns: int, plans: Sequence[InterfacePlan]) -> int:
    """Creates the interfaces and connects them to their networks; returns the netns ID of the sandbox.

    Raises LinkError. A port that could not be connected is mute; the caller removes the links by their record.
    """
    settings = node.settings
    networks = _networks_of(plans)
    namespaces = node.context.namespaces(settings.netns_dir)
    with held_networks(networks, namespaces, sysctl_dir=settings.sysctl_dir) as held:
        with node.phase("make"):
            sandbox_id = make_interfaces(netns, plans, sysctl_dir=settings.sysctl_dir, networks=held)
        with node.phase("connect"):
            for network, namespace in zip(networks, held.values(), strict=True):
                connect_ports(namespace, network.ports)
            for port in _routed_ports(plans):
                # If no port is there yet, only the reconciler knows what is outside.
                connect_routed(port, PENDING, sysctl_dir=settings.sysctl_dir)
    return sandbox_id


def _networks_of(plans: Sequence[InterfacePlan]) -> list[Network]:
    """Returns the networks by number, so that all calls lock them in one order, each with the ports of the plans."""
    by_namespace: dict[str, list[InterfacePlan]] = {}
    for plan in plans:
        if plan.namespace:
            by_namespace.setdefault(plan.namespace, []).append(plan)
    networks = [
        Network(
            vni=vni_of(namespace),
            mtu=min(plan.mtu for plan in group),
            gateways=tuple(dict.fromkeys(gateway for plan in group for gateway in _gateways(plan))),
            ports=tuple(_port(plan) for plan in group),
            is_routed=any(plan.routed for plan in group),
        )
        for namespace, group in by_namespace.items()
    ]
    return sorted(networks, key=lambda network: network.vni)


def _gateways(plan: InterfacePlan) -> Iterator[Address]:
    """Yields those of subnets that the pod reaches by them.

    The others only the agent knows: what it serves as an interface's gateway may be the address of another pod.
    """
    for gateway in plan.routed:
        for address in plan.addresses:
            if family_of(address.address) == family_of(gateway):
                yield Address(gateway, address.prefix_length)


def _routed_ports(plans: Sequence[InterfacePlan]) -> Iterator[RoutedPort]:
    for plan in plans:
        if plan.routed and not plan.namespace:
            addresses = tuple(address.address for address in plan.addresses)
            yield RoutedPort(plan.host_name, plan.mac, addresses, plan.routed, plan.network)


def _port(plan: InterfacePlan) -> LocalPort:
    return LocalPort(plan.host_name, plan.mac, tuple(address.address for address in plan.addresses))
