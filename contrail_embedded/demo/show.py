"""What the demo shows: the pods as the kernel has them, and how to look further."""

from collections.abc import Iterable, Iterator, Sequence

from contrail_config.objects import VirtualMachineInterface, interface_name
from contrail_embedded.demo.kernel import EVERYWHERE, KernelRoute, read_links, read_routes
from contrail_embedded.demo.place import DemoDirectory
from contrail_embedded.demo.runtime_player import Sandbox
from contrailctl.table import format_table

_HEADER = ("POD", "INTERFACE", "NETWORK", "ADDRESSES", "DEFAULT ROUTES")


def sandbox_table(sandboxes: Iterable[Sandbox]) -> str:
    """Returns the table of all interfaces, read from the kernel; which network one is in, the manager says."""
    return format_table(_HEADER, [row for sandbox in sandboxes for row in _rows(sandbox)])


def how_to_look(place: DemoDirectory, url: str, sandboxes: Sequence[Sandbox]) -> str:
    """Returns commands for what was kept."""
    pod = sandboxes[-1].pod
    command = f"ip netns exec {place.node_namespace} .venv/bin/contrailctl --manager {url} --agent {url}"
    return "\n".join(
        [
            "The node runs on, and the pods keep their interfaces. Look at them with",
            f"  {command} status",
            f"  {command} get interfaces",
            f"  {command} describe pod {pod.namespace}/{pod.name}",
            f"  ip netns exec {sandboxes[-1].namespace} ip address",
            f"  ip -n {place.node_namespace} link",
            f"Files are below {place.directory}. The next run, or scripts/demo --stop, takes all of it away.",
        ]
    )


def _rows(sandbox: Sandbox) -> Iterator[Sequence[str]]:
    machine = sandbox.pod.machine
    interfaces = machine.interfaces if machine else ()
    networks = {
        interface_name(index, interface.interface): _network(interface) for index, interface in enumerate(interfaces)
    }
    routes = read_routes(sandbox.namespace)
    pod = f"{sandbox.pod.namespace}/{sandbox.pod.name}"
    for link in read_links(sandbox.namespace):
        yield pod, link.name, networks.get(link.name, "?"), ", ".join(link.addresses), _defaults(routes, link.name)
        pod = " "


def _network(interface: VirtualMachineInterface) -> str:
    return interface.nad or "pod network"


def _defaults(routes: Iterable[KernelRoute], link: str) -> str:
    return ", ".join(
        f"IPv{route.family} via {route.gateway}"
        for route in routes
        if route.link == link and route.destination == EVERYWHERE[route.family]
    )
