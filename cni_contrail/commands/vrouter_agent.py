"""ADD with a stock agent, in the order in which upstream's plugin does it.

Such an agent says addresses only of ports that it has been told of, and takes them one by one: so links are made first,
bare, then told, and get their addresses last. It also wants a file per port, to find them when it starts again.
"""

from cni_contrail.agent.polling import Patience, await_ports, told_of
from cni_contrail.commands.attach import configure_links, finish, form_result, make_links, plan_record, ports
from cni_contrail.commands.interface_selection import SelectedInterfaces
from cni_contrail.commands.request import Request
from cni_contrail.interfaces.served import ServedList
from cni_contrail.state.records import Record


def attach_with_vrouter_agent(
    request: Request, netns: int, served: ServedList, chosen: SelectedInterfaces, begun: Record, patience: Patience
) -> str:
    """Makes the chosen interfaces, tells the agent and returns the result; raises `PluginError`."""
    bare = plan_record(request, netns, served, chosen, begun)
    request.node.attachments.write(bare)
    sandbox_id = make_links(request, netns, bare)
    _plug_ports(request, bare, chosen, patience)
    served, chosen = _with_addresses(request, served, chosen, patience)
    record = plan_record(request, netns, served, chosen, begun)
    result = form_result(request, chosen.interfaces[0], record)
    request.node.attachments.write(record)
    configure_links(request, netns, record)
    finish(request, sandbox_id, record)
    return result


def _plug_ports(request: Request, record: Record, chosen: SelectedInterfaces, patience: Patience) -> None:
    request.node.pending.forget(record.container_id)
    for port in ports(record, chosen.interfaces):
        request.port_files.write(port)
        with told_of(request.node.agent, port, patience) as plugged:
            plugged()


def _with_addresses(
    request: Request, served: ServedList, chosen: SelectedInterfaces, patience: Patience
) -> tuple[ServedList, SelectedInterfaces]:
    uuids = [each.uuid for each in chosen.interfaces]
    found = await_ports(request.node.agent, served.machine, uuids, patience)
    known = {uuid: found[uuid] for uuid in uuids}
    everything = tuple(each._replace(addresses=known.get(each.uuid)) for each in served.interfaces)
    selected = tuple(each._replace(addresses=known[each.uuid]) for each in chosen.interfaces)
    return served._replace(interfaces=everything), chosen._replace(interfaces=selected)
