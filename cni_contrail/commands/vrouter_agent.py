"""ADD with a Contrail vrouter agent, in the order of the upstream plugin.

This agent serves addresses only for ports that were plugged, and takes ports one by one. So links are created without
addresses, then plugged, then configured. It also reads one file per port to restore its ports when it restarts.

A port that is plugged already keeps its device, that of an older sandbox of the pod, whatever is posted. It must be
unplugged first, and this agent unplugs only all ports of the VM: the others are plugged again from their files.
"""

from cni_contrail.agent.client import Port
from cni_contrail.agent.polling import PlugRequest, PollBudget
from cni_contrail.commands.attach_steps import (
    FinishedAttachment,
    build_result,
    configure_links,
    create_links,
    finish,
    plan_record,
    ports,
)
from cni_contrail.commands.interface_selection import SelectedInterfaces
from cni_contrail.commands.request import Request
from cni_contrail.interfaces.served import ServedInterface, ServedList, ServedPort, read_ports
from cni_contrail.state.records import Record


def attach_with_vrouter_agent(
    request: Request, netns: int, served: ServedList, selected: SelectedInterfaces, started: Record, budget: PollBudget
) -> FinishedAttachment:
    """Creates, plugs and configures the selected interfaces; raises `PluginError`."""
    without_addresses = plan_record(request, netns, served, selected, started)
    request.node.attachments.write(without_addresses)
    sandbox_id = create_links(request, netns, without_addresses)
    if not without_addresses.is_nested:  # else the agent has the port of the VLAN already, and takes none from here
        _plug_ports(request, without_addresses, selected, budget)
    served, selected = _with_addresses(request, without_addresses, served, selected, budget)
    record = plan_record(request, netns, served, selected, started)
    result = build_result(request, selected.interfaces[0], record)
    request.node.attachments.write(record)
    configure_links(request, netns, record)
    return finish(request, sandbox_id, record, result)


def _plug_ports(request: Request, record: Record, selected: SelectedInterfaces, budget: PollBudget) -> None:
    # A notification of an earlier DEL that is still pending would unplug the new ports.
    request.node.pending.discard(record.container_id)
    for port in ports(record, selected.interfaces):
        # The file comes first: if the agent restarts after the request, it must find the port.
        request.port_files.write(port)
        _plug(request, port, budget)


def _plug(request: Request, port: Port, budget: PollBudget) -> None:
    with PlugRequest(request.node.agent, port, budget) as plug_request:
        plug_request.wait()


def _with_addresses(
    request: Request, record: Record, served: ServedList, selected: SelectedInterfaces, budget: PollBudget
) -> tuple[ServedList, SelectedInterfaces]:
    found = _wait_for_ports(request, record, selected, budget)
    known = {each.uuid: found[each.uuid].addresses for each in selected.interfaces}
    listed = tuple(each._replace(addresses=known.get(each.uuid)) for each in served.interfaces)
    attached = tuple(each._replace(addresses=known[each.uuid]) for each in selected.interfaces)
    return served._replace(interfaces=listed), selected._replace(interfaces=attached)


def _wait_for_ports(
    request: Request, record: Record, selected: SelectedInterfaces, budget: PollBudget
) -> dict[str, ServedPort]:
    """Returns the ports by uuid once the agent reports all of them with our devices and their expected addresses."""
    agent = request.node.agent
    devices = {each.uuid: "" if record.is_nested else each.plan.host_name for each in record.interfaces}
    # A single interface is requested by its uuid: others of the VM may not be plugged yet.
    requested = "" if len(devices) > 1 else record.interfaces[0].uuid

    def look() -> dict[str, ServedPort] | str:
        found = read_ports(agent.vm_ports(record.vm_uuid, requested, budget.answer_deadline) or ())
        others = {
            uuid: found[uuid].device for uuid in devices if uuid in found and found[uuid].device != devices[uuid] != ""
        }
        if others:
            _plug_again(request, record, budget)
            described = ", ".join(f"{uuid} has device {device}" for uuid, device in others.items())
            return f"agent at {agent.endpoint}: interface {described} of an older sandbox"
        missing = [problem for each in selected.interfaces if (problem := _missing(each, found.get(each.uuid)))]
        if missing:
            return (
                f"agent at {agent.endpoint} has no addresses for interface {', '.join(missing)} of VM {record.vm_uuid}"
            )
        return found

    return budget.poll(look)


def _plug_again(request: Request, record: Record, budget: PollBudget) -> None:
    request.node.agent.unplug(record.vm_uuid, "", record.container_id, budget.answer_deadline)
    for file in request.port_files.of_vm(record.vm_uuid):
        _plug(request, file.port, budget)


def _missing(interface: ServedInterface, port: ServedPort | None) -> str | None:
    if port is None:
        return interface.uuid
    families = {each.family for each in port.addresses}
    absent = [f"IPv{family}" for family in interface.expected_families if family not in families]
    return f"{interface.uuid} ({' and '.join(absent)})" if absent else None
