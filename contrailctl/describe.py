"""`contrailctl describe pod`: the details of one pod, in the format of `kubectl describe`."""

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from contrail_config.default_routes import default_routes
from contrail_config.objects import Event, InterfaceAddress, VirtualMachineInterface
from contrailctl.age import format_age
from contrailctl.agent import AgentApi, interface_names
from contrailctl.datapath import PortState
from contrailctl.errors import ContrailctlError, NotFoundError
from contrailctl.manager import ManagerApi
from contrailctl.manager_ports import port_states
from contrailctl.output import Output
from contrailctl.pod_key import parse_pod_key
from contrailctl.table import format_table
from manager.api.types import PodState, PodView, thick_names

NO_PORT_STATES: Mapping[str, PortState] = MappingProxyType({})
_LABEL_WIDTH = 16


def describe_pod(
    source: ManagerApi | AgentApi, arguments: argparse.Namespace, *, agent: AgentApi | None = None
) -> Output:
    """Returns state, default routes, interfaces in order and events of the pod NAMESPACE/NAME.

    Also its ports: of an `agent` beside the manager, if that is the one of the pod's node, else of the manager.
    """
    namespace, name = parse_pod_key(arguments.pod)
    if isinstance(source, AgentApi):
        return _of_agent(source, namespace, name)
    pod = source.pod(namespace, name)
    # A NAD may have the same namespace and name.
    events = [event for event in source.events(namespace=namespace, name=name) if event.kind == "Pod"]
    plugged, ports, problem = _ports(source, agent, pod)
    if plugged is None:
        why = [_field("Ports", problem)] if problem else []
        lines = [*_head(pod), *_details(pod), *why, *_events(events)]
        return Output("\n".join(lines), {"pod": pod, "events": events})
    lines = [*_head(pod), *_details(pod, plugged, ports), *_events(events)]
    return Output("\n".join(lines), {"pod": pod, "events": events, "plugged": plugged, "ports": ports})


def _ports(
    manager: ManagerApi, agent: AgentApi | None, pod: PodView
) -> tuple[dict[str, str] | None, dict[str, PortState], str]:
    """Returns host ends and states of ports by interface uuid; None and why, if there is something to say of it."""
    if pod.machine is None:
        return None, {}, ""
    if agent is not None:
        plugged = _plugged(agent, pod)
        return plugged, {} if plugged is None else _port_states(agent, pod.machine.interfaces, plugged), ""
    try:
        found = manager.ports(pod.namespace, pod.name)
    except NotFoundError:
        return None, {}, ""  # the manager cannot ask, or is of an earlier release
    except ContrailctlError as error:
        return None, {}, str(error)  # the rest of the pod is known
    plugged = {view.interface: view.link for view in found if view.link is not None}
    return plugged, port_states(found, pod.machine.interfaces), ""


def _of_agent(agent: AgentApi, namespace: str, name: str) -> Output:
    """Describes a pod from an agent's API: a pod that it serves is ready, and it has no events."""
    virtual_machine = agent.virtual_machine(namespace, name)
    found = agent.plugged(virtual_machine)
    plugged = {uuid: port.system_name for uuid, port in found.items()}
    pod = PodView(
        namespace,
        name,
        virtual_machine.uuid,
        virtual_machine.node,
        PodState.READY,
        machine=virtual_machine,
        names=interface_names(virtual_machine, found),
    )
    ports = _port_states(agent, virtual_machine.interfaces, plugged)
    lines = [*_head(pod), *_details(pod, plugged, ports)]
    return Output("\n".join(lines), {"pod": pod, "plugged": plugged, "ports": ports})


def _plugged(agent: AgentApi, pod: PodView) -> dict[str, str] | None:
    """Returns the host interfaces by interface uuid; None if the agent does not serve the pod."""
    try:
        virtual_machine = agent.virtual_machine(pod.namespace, pod.name)
    except NotFoundError:
        return None
    return {uuid: port.system_name for uuid, port in agent.plugged(virtual_machine).items()}


def _port_states(
    agent: AgentApi, interfaces: Sequence[VirtualMachineInterface], plugged: Mapping[str, str]
) -> dict[str, PortState]:
    """Returns the states of ports by interface uuid; none if the kernel of the node does not connect them."""
    try:
        datapath = agent.datapath()
    except NotFoundError:
        return {}
    return {
        interface.uuid: datapath.port_state(index, interface, plugged.get(interface.uuid))
        for index, interface in enumerate(interfaces)
    }


def _head(pod: PodView) -> Iterator[str]:
    yield _field("Name", pod.name)
    yield _field("Namespace", pod.namespace)
    yield _field("UID", pod.uid)
    yield _field("Node", pod.node)
    yield _field("State", pod.state.value)
    if pod.reason:
        yield _field("Reason", pod.reason)
    if pod.message:
        yield _field("Message", pod.message)


def _details(
    pod: PodView, plugged: Mapping[str, str] | None = None, ports: Mapping[str, PortState] = NO_PORT_STATES
) -> Iterator[str]:
    interfaces = pod.machine.interfaces if pod.machine else ()
    names = pod.names or (thick_names(pod.machine) if pod.machine else ())  # an older manager sends no names
    yield from _section("Default Routes", _default_routes(interfaces, names))
    yield from _section("Interfaces", _interfaces(interfaces, names, plugged, ports))


def _default_routes(interfaces: Sequence[VirtualMachineInterface], names: Sequence[str]) -> Iterator[str]:
    for route in default_routes(interfaces):
        yield f"IPv{route.family} via {route.gateway} dev {names[route.index]}"


def _interfaces(
    interfaces: Sequence[VirtualMachineInterface],
    names: Sequence[str],
    plugged: Mapping[str, str] | None,
    ports: Mapping[str, PortState],
) -> Iterator[str]:
    for index, (name, interface) in enumerate(zip(names, interfaces, strict=True)):
        yield f"{name}:"
        fields = {**_interface_fields(interface, index), **_port_fields(interface, plugged)}
        if interface.uuid in ports:
            fields |= _state_fields(ports[interface.uuid])
        yield from (f"  {_field(label, value)}" for label, value in fields.items())


def _interface_fields(interface: VirtualMachineInterface, index: int) -> dict[str, str]:
    default_gw = {"Default-Gw": interface.default_gw.value} if interface.default_gw else {}
    routes = [f"{route.dst} via {route.gw}" if route.gw else route.dst for route in interface.routes]
    return {
        "Index": str(index),
        "Network": ":".join(interface.network),
        **({"NAD": interface.nad} if interface.nad else {}),
        "MAC": interface.mac,
        "MTU": str(interface.mtu),
        "Addresses": ", ".join(map(_address, interface.addresses)),
        **({"Routes": ", ".join(routes)} if routes else {}),
        **default_gw,
        "UUID": interface.uuid,
    }


def _port_fields(interface: VirtualMachineInterface, plugged: Mapping[str, str] | None) -> dict[str, str]:
    return {} if plugged is None else {"Host Interface": plugged.get(interface.uuid, "<not plugged>")}


def _state_fields(port: PortState) -> dict[str, str]:
    fields = {
        "Host Namespace": port.namespace or "the node's own",
        "Port": f"{port.condition.value}: {port.reason}" if port.reason else port.condition.value,
    }
    if port.counters is not None:
        fields["Sent"] = f"{port.counters.sent_packets} packets, {port.counters.sent_bytes} bytes"
        fields["Received"] = f"{port.counters.received_packets} packets, {port.counters.received_bytes} bytes"
        fields |= {"Counted": port.counted_at} if port.counted_at else {}
    if port.spoofing is not None:
        fields["Port Drops"] = f"{port.spoofing} spoofing"
    if port.drops:
        of_kind = f"{port.drops.mtu} MTU" if port.namespace else f"{port.drops.tunnel} tunnel"
        fields["Network Drops"] = f"{port.drops.spoofing} spoofing, {port.drops.broadcast} broadcast, {of_kind}"
    return fields


def _address(address: InterfaceAddress) -> str:
    gateway = f" (gateway {address.gateway})" if address.gateway else ""
    return f"{address.address}/{address.prefix_length}{gateway}"


def _events(events: Iterable[Event]) -> Iterator[str]:
    now = time.time()
    rows = [(e.type.value, e.reason, format_age(now - e.last_seen), str(e.count), e.message) for e in events]
    table = format_table(("Type", "Reason", "Age", "Count", "Message"), rows).splitlines() if rows else []
    yield from _section("Events", table)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yields a title with lines below it, or `<none>` on its line."""
    inner = [f"  {line}" for line in lines]
    yield f"{title}:" if inner else _field(title, "<none>")
    yield from inner


def _field(label: str, value: str) -> str:
    return f"{label + ':':<{_LABEL_WIDTH}} {value or '-'}"
