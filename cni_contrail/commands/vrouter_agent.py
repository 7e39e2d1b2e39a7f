"""ADD with a Contrail vrouter agent, in the order of the upstream plugin.

This agent serves addresses only for ports that were plugged, and takes ports one by one. So links are created without
addresses, then plugged, then configured. It also reads one file per port to restore its ports when it restarts.
"""

from cni_contrail.agent.polling import PollBudget, plugging, wait_for_ports
from cni_contrail.commands.attach_steps import build_result, configure_links, create_links, finish, plan_record, ports
from cni_contrail.commands.interface_selection import SelectedInterfaces
from cni_contrail.commands.request import Request
from cni_contrail.interfaces.served import ServedList
from cni_contrail.state.records import Record


def attach_with_vrouter_agent(
    request: Request, netns: int, served: ServedList, selected: SelectedInterfaces, started: Record, budget: PollBudget
) -> str:
    """Creates, plugs and configures the selected interfaces; returns the result of ADD; raises `PluginError`."""
    without_addresses = plan_record(request, netns, served, selected, started)
    request.node.attachments.write(without_addresses)
    sandbox_id = create_links(request, netns, without_addresses)
    _plug_ports(request, without_addresses, selected, budget)
    served, selected = _with_addresses(request, served, selected, budget)
    record = plan_record(request, netns, served, selected, started)
    result = build_result(request, selected.interfaces[0], record)
    request.node.attachments.write(record)
    configure_links(request, netns, record)
    finish(request, sandbox_id, record)
    return result


def _plug_ports(request: Request, record: Record, selected: SelectedInterfaces, budget: PollBudget) -> None:
    # A notification of an earlier DEL that is still pending would unplug the new ports.
    request.node.pending.discard(record.container_id)
    for port in ports(record, selected.interfaces):
        # The file comes first: if the agent restarts after the request, it must find the port.
        request.port_files.write(port)
        with plugging(request.node.agent, port, budget) as plugged:
            plugged()


def _with_addresses(
    request: Request, served: ServedList, selected: SelectedInterfaces, budget: PollBudget
) -> tuple[ServedList, SelectedInterfaces]:
    uuids = [each.uuid for each in selected.interfaces]
    found = wait_for_ports(request.node.agent, served.vm_uuid, uuids, budget)
    known = {uuid: found[uuid] for uuid in uuids}
    listed = tuple(each._replace(addresses=known.get(each.uuid)) for each in served.interfaces)
    attached = tuple(each._replace(addresses=known[each.uuid]) for each in selected.interfaces)
    return served._replace(interfaces=listed), selected._replace(interfaces=attached)
