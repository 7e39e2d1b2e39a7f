"""Output of the demo: a table of the pods' interfaces as read from the kernel, and commands for inspection."""

from collections.abc import Iterable, Iterator, Sequence

from contrail_config.objects import VirtualMachineInterface, interface_name
from contrailctl.table import format_table
from demo.container_runtime import PodSandbox
from demo.kernel_state import EVERYWHERE, KernelRoute, read_links, read_routes
from demo.resources import DemoResources

_HEADER = ("POD", "INTERFACE", "NETWORK", "ADDRESSES", "DEFAULT ROUTES")


def sandbox_table(sandboxes: Iterable[PodSandbox]) -> str:
    """Returns a table of all interfaces, read from the kernel; only the network column comes from the manager."""
    return format_table(_HEADER, [row for sandbox in sandboxes for row in _rows(sandbox)])


def inspection_commands(resources: DemoResources, url: str, page: str, sandboxes: Sequence[PodSandbox]) -> str:
    """Returns the address of the web page of a run that was kept, and commands to inspect it."""
    pod = sandboxes[-1].pod
    command = f"ip netns exec {resources.node_namespace} .venv/bin/contrailctl --manager {url} --agent {url}"
    return "\n".join(
        [
            f"The node keeps running and the pods keep their interfaces. Its web page is {page}",
            "Inspect them with",
            f"  {command} status",
            f"  {command} get interfaces",
            f"  {command} describe pod {pod.namespace}/{pod.name}",
            f"  ip netns exec {sandboxes[-1].namespace} ip address",
            f"  ip -n {resources.node_namespace} link",
            f"Files are in {resources.directory}. The next run or scripts/demo --stop removes everything.",
        ]
    )


def _rows(sandbox: PodSandbox) -> Iterator[Sequence[str]]:
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
