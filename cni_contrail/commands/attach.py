"""Attaches selected interfaces: plans all of them, creates the links, plugs the ports, finishes the record.

The list of our agent is complete, so everything is planned before anything is created, and one request plugs all ports.
A Contrail vrouter agent needs another order (`vrouter_agent`).
"""

from cni_contrail.agent.polling import PlugRequest, PollBudget
from cni_contrail.commands.attach_steps import (
    FinishedAttachment,
    build_result,
    create_links,
    finish,
    plan_record,
    ports,
)
from cni_contrail.commands.interface_selection import SelectedInterfaces
from cni_contrail.commands.request import Request
from cni_contrail.interfaces.served import ServedList
from cni_contrail.state.records import Record


def attach_interfaces(
    request: Request, netns: int, served: ServedList, selected: SelectedInterfaces, started: Record, budget: PollBudget
) -> FinishedAttachment:
    """Creates and plugs the selected interfaces; raises `PluginError`."""
    if served.vrouter_agent:
        from cni_contrail.commands.vrouter_agent import attach_with_vrouter_agent  # few nodes need it

        return attach_with_vrouter_agent(request, netns, served, selected, started, budget)
    record = plan_record(request, netns, served, selected, started)
    result = build_result(request, selected.interfaces[0], record)
    request.node.attachments.write(record)
    if record.is_nested:  # the agent runs on the host of this virtual machine, and knows no ports of pods
        return finish(request, create_links(request, netns, record), record, result)
    # A notification of an earlier DEL that is still pending would unplug the new ports.
    request.node.pending.discard(record.container_id)
    # The request is sent before the links are created: agent and kernel work in parallel.
    with PlugRequest(request.node.agent, ports(record, selected.interfaces), budget) as plug_request:
        sandbox_id = create_links(request, netns, record)
        with request.node.phase("plug"):
            plug_request.wait()
    return finish(request, sandbox_id, record, result)
