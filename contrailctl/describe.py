"""`contrailctl describe pod`: everything about one pod, as `kubectl describe` tells it."""

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence

from contrail_config.default_routes import default_routes
from contrail_config.objects import Event, InterfaceAddress, VirtualMachine, VirtualMachineInterface, interface_name
from contrailctl.age import format_age
from contrailctl.agent import AgentApi
from contrailctl.errors import UsageError
from contrailctl.manager import ManagerApi
from contrailctl.output import Output
from contrailctl.table import format_table
from manager.api.types import PodState, PodView

_LABEL_WIDTH = 16


def describe_pod(source: ManagerApi | AgentApi, arguments: argparse.Namespace) -> Output:
    """Describes the pod NAMESPACE/NAME: state, interfaces in order, default routes, events."""
    namespace, slash, name = arguments.pod.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise UsageError(f"{arguments.pod!r}: a pod is named NAMESPACE/NAME")
    if isinstance(source, AgentApi):
        return _of_agent(source, namespace, name)
    pod = source.pod(namespace, name)
    events = [event for event in source.events(namespace=namespace, name=name) if event.kind == "Pod"]
    lines = [*_head(pod), *_machine(pod.machine), *_events(events)]
    return Output("\n".join(lines), {"pod": pod, "events": events})


def _of_agent(agent: AgentApi, namespace: str, name: str) -> Output:
    """What an agent serves is whole, so the pod is ready; of events it knows nothing."""
    machine = agent.machine(namespace, name)
    plugged = {uuid: port.system_name for uuid, port in agent.plugged(machine).items()}
    pod = PodView(namespace, name, machine.uuid, machine.node, PodState.READY, machine=machine)
    lines = [*_head(pod), *_machine(machine, plugged)]
    return Output("\n".join(lines), {"pod": pod, "plugged": plugged})


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


def _machine(machine: VirtualMachine | None, plugged: dict[str, str] | None = None) -> Iterator[str]:
    interfaces = machine.interfaces if machine else ()
    yield from _section("Default Routes", _default_routes(interfaces))
    yield from _section("Interfaces", _interfaces(interfaces, plugged))


def _default_routes(interfaces: Sequence[VirtualMachineInterface]) -> Iterator[str]:
    for route in default_routes(interfaces):
        device = interface_name(route.index, interfaces[route.index].interface)
        yield f"IPv{route.family} via {route.gateway} dev {device}"


def _interfaces(interfaces: Sequence[VirtualMachineInterface], plugged: dict[str, str] | None) -> Iterator[str]:
    for index, interface in enumerate(interfaces):
        yield f"{interface_name(index, interface.interface)}:"
        fields = {**_facts(interface, index), **_port(interface, plugged)}
        yield from (f"  {_field(label, value)}" for label, value in fields.items())


def _facts(interface: VirtualMachineInterface, index: int) -> dict[str, str]:
    asked = {"Default-Gw": interface.default_gw.value} if interface.default_gw else {}
    routes = [f"{route.dst} via {route.gw}" if route.gw else route.dst for route in interface.routes]
    return {
        "Index": str(index),
        "Network": ":".join(interface.network),
        **({"NAD": interface.nad} if interface.nad else {}),
        "MAC": interface.mac,
        "MTU": str(interface.mtu),
        "Addresses": ", ".join(map(_address, interface.addresses)),
        **({"Routes": ", ".join(routes)} if routes else {}),
        **asked,
        "UUID": interface.uuid,
    }


def _port(interface: VirtualMachineInterface, plugged: dict[str, str] | None) -> dict[str, str]:
    return {} if plugged is None else {"Host Interface": plugged.get(interface.uuid, "<not plugged>")}


def _address(address: InterfaceAddress) -> str:
    gateway = f" (gateway {address.gateway})" if address.gateway else ""
    return f"{address.address}/{address.prefix_length}{gateway}"


def _events(events: Iterable[Event]) -> Iterator[str]:
    now = time.time()
    rows = [(e.type.value, e.reason, format_age(now - e.last_seen), str(e.count), e.message) for e in events]
    table = format_table(("Type", "Reason", "Age", "Count", "Message"), rows).splitlines() if rows else []
    yield from _section("Events", table)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A title with lines below it, or `<none>` beside it."""
    inner = [f"  {line}" for line in lines]
    yield f"{title}:" if inner else _field(title, "<none>")
    yield from inner


def _field(label: str, value: str) -> str:
    return f"{label + ':':<{_LABEL_WIDTH}} {value or '-'}"
