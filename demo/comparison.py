"""Compares the kernel state of a sandbox with the pod's interfaces in the manager's API."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any

from contrail_config.default_routes import default_routes
from contrail_config.objects import ForwardingMode, VirtualMachineInterface, interface_name
from demo.kernel_state import EVERYWHERE, KernelRoute, Link


def differences(
    interfaces: Sequence[VirtualMachineInterface], links: Sequence[Link], routes: Sequence[KernelRoute]
) -> Iterator[str]:
    """Yields one sentence per difference."""
    names = [interface_name(index, interface.interface) for index, interface in enumerate(interfaces)]
    if [link.name for link in links] != names:
        yield f"links in order of creation: {_listed(link.name for link in links)}, expected {_listed(names)}"
        return
    for link, interface in zip(links, interfaces, strict=True):
        yield from _of_link(link, interface)
    yield from _of_routes(_expected_routes(interfaces, names), set(routes))


def result_differences(result: Mapping[str, Any], links: Sequence[Link]) -> Iterator[str]:
    """Yields one sentence per difference in the result of ADD, which reports only the first interface."""
    named = [interface["name"] for interface in result.get("interfaces", ()) if interface.get("sandbox")]
    if named != [link.name for link in links[:1]]:
        yield f"result of ADD: interfaces in the sandbox: {_listed(named)}, expected only the first"
    addresses = sorted(entry["address"] for entry in result.get("ips", ()))
    if links and addresses != sorted(links[0].addresses):
        yield f"result of ADD: addresses: {_listed(addresses)}, expected {_listed(links[0].addresses)}"


def _of_link(link: Link, interface: VirtualMachineInterface) -> Iterator[str]:
    expected = {f"{address.address}/{address.prefix_length}" for address in interface.addresses}
    if set(link.addresses) != expected:
        yield f"{link.name}: addresses: {_listed(link.addresses)}, expected {_listed(expected)}"
    if link.mac != interface.mac:
        yield f"{link.name}: MAC: {link.mac}, expected {interface.mac}"
    if link.mtu != interface.mtu:
        yield f"{link.name}: MTU: {link.mtu}, expected {interface.mtu}"


def _expected_routes(interfaces: Sequence[VirtualMachineInterface], names: Sequence[str]) -> set[KernelRoute]:
    defaults = {
        KernelRoute(route.family, EVERYWHERE[route.family], route.gateway, names[route.index])
        for route in default_routes(interfaces)
    }
    return (
        defaults
        | set(_gateway_routes(interfaces, names))
        | {
            KernelRoute(6 if ":" in route.dst else 4, route.dst, route.gw, name)
            for name, interface in zip(names, interfaces, strict=True)
            for route in interface.routes
        }
    )


def _gateway_routes(interfaces: Sequence[VirtualMachineInterface], names: Sequence[str]) -> Iterator[KernelRoute]:
    """Yields what index 0 and forwarding mode `l3` have: a route to each gateway, and by it one to its subnet."""
    for index, (interface, name) in enumerate(zip(interfaces, names, strict=True)):
        if index > 0 and interface.forwarding_mode is not ForwardingMode.L3:
            continue
        for each in interface.addresses:
            if each.subnet_gateway is not None:
                subnet = str(ip_network((each.address, each.prefix_length), strict=False))
                host = str(ip_network(each.subnet_gateway))
                yield KernelRoute(each.family, host, None, name)
                yield KernelRoute(each.family, subnet, each.subnet_gateway, name)


def _of_routes(expected: set[KernelRoute], found: set[KernelRoute]) -> Iterator[str]:
    for route in sorted(expected - found, key=str):
        yield f"route {_route(route)}: not found"
    for route in sorted(found - expected, key=str):
        yield f"route {_route(route)}: unexpected"


def _route(route: KernelRoute) -> str:
    return f"{route.destination} via {route.gateway or 'the link'} dev {route.link}"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "none"
