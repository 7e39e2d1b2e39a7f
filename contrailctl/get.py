"""`contrailctl get`: lists of networks, pods, interfaces, ports, events and the networks of a node's datapath."""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from contrail_config.objects import Event, Refusal, VirtualMachine, VirtualMachineInterface
from contrailctl.age import format_age
from contrailctl.agent import AgentApi, Port, interface_names
from contrailctl.datapath import INDEX_0, DatapathStatus, NodeNetwork
from contrailctl.errors import NotFoundError, UsageError
from contrailctl.manager import ManagerApi
from contrailctl.output import Output
from contrailctl.table import format_table
from manager.api.types import InterfaceView, NetworkView, PodView, interface_views, network_key

NETWORK_HEADER = ("NAMESPACE", "NAME", "SUBNETS", "VNI", "MTU", "INTERFACES", "NETWORK")
POD_HEADER = ("NAMESPACE", "NAME", "STATE", "INTERFACES", "ADDRESSES", "NODE", "REASON")
EVENT_HEADER = ("NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE")


class PortView(msgspec.Struct, frozen=True):
    """A plugged interface of a pod; `name` is its name in the sandbox."""

    namespace: str
    pod: str
    index: int
    name: str
    port: Port


def get_networks(manager: ManagerApi, arguments: argparse.Namespace) -> Output:
    """Lists networks: those of NADs and the cluster pod network."""
    views = manager.networks(namespace=arguments.namespace, name=arguments.name)
    return _list_output("network", arguments, views, NETWORK_HEADER, network_row)


def get_pods(manager: ManagerApi, arguments: argparse.Namespace) -> Output:
    """Lists pods and their states."""
    views = manager.pods(namespace=arguments.namespace, name=arguments.name)
    return _list_output("pod", arguments, views, POD_HEADER, pod_row)


def get_interfaces(source: ManagerApi | AgentApi, arguments: argparse.Namespace) -> Output:
    """Lists interfaces by pod and index."""
    if isinstance(source, AgentApi):
        views = _interfaces_of(source, arguments)
    else:
        views = source.interfaces(namespace=arguments.namespace, name=arguments.name)
    header = ("NAMESPACE", "POD", "INDEX", "NAME", "NETWORK", "ADDRESSES", "MAC", "MTU")
    return _list_output("pod", arguments, views, header, _interface_row)


def get_ports(agent: AgentApi, arguments: argparse.Namespace) -> Output:
    """Lists a pod's plugged interfaces and the devices at their host ends, from its node's agent."""
    virtual_machine = _virtual_machine(agent, arguments)
    plugged = agent.plugged(virtual_machine)
    names = interface_names(virtual_machine, plugged)
    views = [
        PortView(
            virtual_machine.namespace,
            virtual_machine.pod,
            index,
            names[index],
            plugged[interface.uuid],
        )
        for index, interface in enumerate(virtual_machine.interfaces)
        if interface.uuid in plugged
    ]
    header = ("NAMESPACE", "POD", "INDEX", "NAME", "DEVICE", "ADDRESSES", "MAC")
    return _list_output("plugged port of pod", arguments, views, header, _port_row)


def get_events(manager: ManagerApi, arguments: argparse.Namespace) -> Output:
    """Lists events, oldest first."""
    views = sorted(manager.events(namespace=arguments.namespace, name=arguments.name), key=lambda view: view.last_seen)
    return _list_output("events of", arguments, views, EVENT_HEADER, event_row)


def get_datapath(agent: AgentApi) -> Output:
    """Lists the networks of a node and what its kernel has of them, from its agent."""
    status = agent.datapath()
    networks = status.node_networks()
    header = ("VNI", "NETWORK", "PORTS", "MISSING", "SPOOFING", "BROADCAST", "TUNNEL", "MTU", "PROBLEM")
    table = format_table(header, [_datapath_row(network) for network in networks])
    parts = [table]
    if status.refused:
        parts.append(format_table(("VNI", "REFUSED", "REASON"), [_refusal_row(each) for each in status.refused]))
    parts.append("\n".join(_state_lines(status)))
    document = {
        "items": networks,
        "refused": status.refused,
        "follower": status.follower,
        "age": status.age,
        "outdated": status.outdated,
    }
    return Output("\n\n".join(parts), document)


def _state_lines(status: DatapathStatus) -> Iterator[str]:
    """Yields what programs the kernel, and what keeps it from being up to date."""
    yield f"programmed by: {status.follower or 'nothing'}"
    if status.silence:
        yield status.silence
    for reason in status.outdated:
        yield f"out of date: {reason}"


def _virtual_machine(agent: AgentApi, arguments: argparse.Namespace) -> VirtualMachine:
    if arguments.namespace is None or arguments.name is None:
        raise UsageError("an agent serves one pod per request: use -n NAMESPACE and the pod's name")
    return agent.virtual_machine(arguments.namespace, arguments.name)


def _interfaces_of(agent: AgentApi, arguments: argparse.Namespace) -> list[InterfaceView]:
    virtual_machine = _virtual_machine(agent, arguments)
    return interface_views(virtual_machine, interface_names(virtual_machine, agent.plugged(virtual_machine)))


def _list_output(
    kind: str,
    arguments: argparse.Namespace,
    views: Sequence[Any],
    header: Sequence[str],
    row: Callable[[Any], Sequence[str]],
) -> Output:
    if arguments.name is not None and not views:
        raise not_found(kind, arguments)
    return Output(format_table(header, [row(view) for view in views]), {"items": views})


def not_found(kind: str, arguments: argparse.Namespace) -> NotFoundError:
    """Returns the error for a name that nothing has."""
    where = f"{arguments.namespace}/" if arguments.namespace else ""
    return NotFoundError(f"{kind} {where}{arguments.name} not found")


def network_row(view: NetworkView) -> Sequence[str]:
    """Returns the cells of a network."""
    network = view.network
    namespace, name = network_key(view)
    subnets = ",".join(subnet.cidr for subnet in network.subnets)
    mtu = "auto" if network.mtu is None else str(network.mtu)
    return (namespace, name, subnets, str(network.vni), mtu, str(view.interfaces), network.name)


def pod_row(view: PodView) -> Sequence[str]:
    """Returns the cells of a pod."""
    interfaces = view.machine.interfaces if view.machine else ()
    addresses = ",".join(filter(None, map(_addresses, interfaces)))
    reason = view.reason or ""
    return (view.namespace, view.name, view.state.value, str(len(interfaces)), addresses, view.node, reason)


def _interface_row(view: InterfaceView) -> Sequence[str]:
    interface = view.interface
    network = interface.nad or interface.network[2]
    pod = (view.namespace, view.pod, str(view.index), view.name)
    return (*pod, network, _addresses(interface), interface.mac, str(interface.mtu))


def _port_row(view: PortView) -> Sequence[str]:
    port = view.port
    pairs = ((port.ip_address, port.plen), (port.v6_ip_address, port.v6_plen))
    addresses = ",".join(f"{address}/{length}" for address, length in pairs if address)
    return (view.namespace, view.pod, str(view.index), view.name, port.system_name, addresses, port.mac_address)


def _datapath_row(view: NodeNetwork) -> Sequence[str]:
    network = "index 0, routed" if view.vni == INDEX_0 else view.network or ""
    drops = _drop_cells(view)
    return (str(view.vni), network, str(view.ports), ",".join(view.missing), *drops, view.problem or "")


def _drop_cells(view: NodeNetwork) -> Sequence[str]:
    """Returns the numbers by reason; one that is not known of this network is empty."""
    if view.drops is None:
        return ("", "", "", "")
    is_routed = view.vni == INDEX_0
    tunnel = str(view.drops.tunnel) if is_routed else ""
    mtu = "" if is_routed else str(view.drops.mtu)
    return (str(view.drops.spoofing), str(view.drops.broadcast), tunnel, mtu)


def _refusal_row(refusal: Refusal) -> Sequence[str]:
    return (str(refusal.vni), refusal.subnet or ":".join(refusal.network), refusal.message)


def event_row(event: Event) -> Sequence[str]:
    """Returns the cells of an event."""
    seen = format_age(time.time() - event.last_seen)
    subject = f"{event.kind}/{event.name}"
    return (event.namespace, seen, event.type.value, event.reason, subject, str(event.count), event.message)


def _addresses(interface: VirtualMachineInterface) -> str:
    return ",".join(f"{address.address}/{address.prefix_length}" for address in interface.addresses)
