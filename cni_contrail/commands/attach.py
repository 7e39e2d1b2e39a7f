"""From chosen interfaces to a finished attachment, with our agent; what it shares with stock agents is public.

Our agent's list says everything, so all is planned before anything is made, and one request tells of all ports.
"""

import socket
import time
from collections.abc import Sequence

from cni_contrail.addresses import DEFAULT_DESTINATION, family_of
from cni_contrail.agent.polling import Patience, told_of
from cni_contrail.commands.interface_selection import SelectedInterfaces
from cni_contrail.commands.request import Request
from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.planning import plan_interfaces
from cni_contrail.interfaces.requested_addresses import refuse_unmet_wishes
from cni_contrail.interfaces.served import ServedInterface, ServedList
from cni_contrail.link.defaults import default_routes
from cni_contrail.link.errors import LinkError, LinkExistsError
from cni_contrail.link.make import configure_interfaces, make_interfaces
from cni_contrail.link.plan import InterfacePlan, ReplacedRoute
from cni_contrail.protocol.netconf import config_dns
from cni_contrail.protocol.results import AttachmentResult, ResultAddress, ResultRoute, success_document
from cni_contrail.state.records import AttachedInterface, Record

_KERNEL_FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


def attach_interfaces(
    request: Request, netns: int, served: ServedList, chosen: SelectedInterfaces, begun: Record, patience: Patience
) -> str:
    """Makes the chosen interfaces, tells the agent and returns the result; raises `PluginError`."""
    if served.stock:
        from cni_contrail.commands.vrouter_agent import attach_with_vrouter_agent

        return attach_with_vrouter_agent(request, netns, served, chosen, begun, patience)
    record = plan_record(request, netns, served, chosen, begun)
    result = form_result(request, chosen.interfaces[0], record)
    request.node.attachments.write(record)
    request.node.pending.forget(record.container_id)
    with told_of(request.node.agent, ports(record, chosen.interfaces), patience) as plugged:
        sandbox_id = make_links(request, netns, record)
        with request.node.phase("plug"):
            plugged()
    finish(request, sandbox_id, record)
    return result


def plan_record(request: Request, netns: int, served: ServedList, chosen: SelectedInterfaces, begun: Record) -> Record:
    """Plans all that shall be made, and notes which default routes will give way to asked-for ones."""
    plans = plan_interfaces(
        chosen.interfaces,
        chosen.names,
        served.interfaces,
        container_id=request.call.container_id,
        pod=request.pod,
        mtu=request.node.settings.mtu,
        primary_is_ours=chosen.primary_is_ours,
    )
    return begun._replace(
        stock=served.stock,
        machine=served.machine,
        machine_name=request.virtual_machine_name,
        interfaces=tuple(
            AttachedInterface(interface.uuid, interface.position, plan)
            for interface, plan in zip(chosen.interfaces, plans, strict=True)
        ),
        replaced=_giving_way(netns, plans),
    )


def form_result(request: Request, primary: ServedInterface, record: Record) -> str:
    """Forms the result before anything is made: what cannot be answered, or was wished otherwise, is not begun."""
    refuse_unmet_wishes(primary, request.config, request.call)
    plan = record.interfaces[0].plan
    addresses = primary.addresses or ()
    servers = list(dict.fromkeys(each.dns for each in addresses if each.dns))
    defaults = [ResultRoute(DEFAULT_DESTINATION[family_of(each.gateway)], each.gateway) for each in plan.defaults]
    attached = AttachmentResult(
        name=plan.name,
        host_name=plan.host_name,
        mac=plan.mac,
        mtu=plan.mtu,
        sandbox=request.call.netns,
        addresses=tuple(
            ResultAddress(f"{each.address.address}/{each.address.prefix_length}", each.gateway) for each in addresses
        ),
        routes=(*(ResultRoute(*route) for route in plan.routes), *defaults),
        dns=config_dns(request.config) or ({"nameservers": servers} if servers else {}),
    )
    return success_document(request.config, attached)


def make_links(request: Request, netns: int, record: Record) -> int:
    """Makes all interfaces of the record or none, and returns by which number the sandbox is known.

    Raises `PluginError` with code 104, 102 for a name that is taken.
    """
    plans = [each.plan for each in record.interfaces]
    try:
        with request.node.phase("make"):
            return make_interfaces(netns, plans, sysctl_dir=request.node.settings.sysctl_dir)
    except LinkExistsError as error:
        raise PluginError(Code.EXISTS, str(error)) from error
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def configure_links(request: Request, netns: int, record: Record) -> None:
    """Gives links that were made bare what the record's plans say now; raises `PluginError` with code 104."""
    plans = [each.plan for each in record.interfaces]
    try:
        with request.node.phase("make"):
            configure_interfaces(netns, plans, sysctl_dir=request.node.settings.sysctl_dir)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def ports(record: Record, interfaces: Sequence[ServedInterface]) -> list[dict[str, str]]:
    """What `POST /vm` says of each interface: upstream's keys."""
    return [
        {
            "time": time.strftime("%Y-%m-%d %H:%M:%S %z"),
            "vm-id": record.container_id,
            "vm-uuid": record.machine,
            "vm-name": record.machine_name,
            "host-ifname": attached.plan.host_name,
            "vm-ifname": attached.plan.name,
            "vm-namespace": record.netns,
            "vn-uuid": interface.network,
            "vmi-uuid": interface.uuid,
        }
        for attached, interface in zip(record.interfaces, interfaces, strict=True)
    ]


def finish(request: Request, sandbox_id: int, record: Record) -> None:
    """Marks the record as finished, and notes by which number the sandbox is known."""
    request.node.attachments.write(record._replace(sandbox_id=sandbox_id, finished=True))


def _giving_way(netns: int, plans: Sequence[InterfacePlan]) -> tuple[ReplacedRoute, ...]:
    asked = {_KERNEL_FAMILY[family_of(default.gateway)] for plan in plans for default in plan.defaults if default.asked}
    if not asked:
        return ()
    try:
        return tuple(each for each in default_routes(netns) if each.family in asked)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error
