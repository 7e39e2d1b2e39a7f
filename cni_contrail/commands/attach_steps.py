"""Steps of an attachment that do not depend on the kind of agent: plan, result, links, ports, finished record."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from cni_contrail.addresses import DEFAULT_DESTINATION, family_of
from cni_contrail.commands.interface_selection import SelectedInterfaces
from cni_contrail.commands.request import Request
from cni_contrail.errors import Code, PluginError, TryAgainError
from cni_contrail.interfaces.planning import plan_interfaces
from cni_contrail.interfaces.requested_addresses import reject_unmet_requests
from cni_contrail.interfaces.served import ServedInterface, ServedList
from cni_contrail.link.defaults import read_default_routes
from cni_contrail.link.errors import LinkError, LinkExistsError, NotReadyError, ParentNotFoundError
from cni_contrail.link.make import configure_interfaces, make_interfaces
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import netns_identity
from cni_contrail.link.plan import InterfacePlan, ReplacedRoute
from cni_contrail.protocol.netconf import config_dns
from cni_contrail.protocol.results import AttachmentResult, ResultAddress, ResultRoute, success_document
from cni_contrail.state.records import AttachedInterface, Record

_KERNEL_FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


class FinishedAttachment(NamedTuple):
    """The result of ADD and its last record."""

    result: str
    record: Record


def plan_record(
    request: Request, netns: int, served: ServedList, selected: SelectedInterfaces, started: Record
) -> Record:
    """Returns the record with all interfaces to create, and the default routes that requested ones will replace."""
    plans = plan_interfaces(
        selected.interfaces,
        selected.names,
        served.interfaces,
        container_id=request.call.container_id,
        pod=request.pod,
        mtu=request.node.settings.mtu,
        primary_is_ours=selected.primary_is_ours,
        parent=request.node.settings.nested_parent,
    )
    return started._replace(
        vrouter_agent=served.vrouter_agent,
        vm_uuid=served.vm_uuid,
        vm_name=request.virtual_machine_name,
        interfaces=tuple(
            AttachedInterface(interface.uuid, interface.position, plan)
            for interface, plan in zip(selected.interfaces, plans, strict=True)
        ),
        replaced=_routes_to_replace(netns, plans),
        isolated=True,
        sandbox_netns=netns_identity(netns),
        sandbox_id=_assigned_netns_id(netns) if request.node.settings.nested_parent else started.sandbox_id,
    )


def build_result(request: Request, primary: ServedInterface, record: Record) -> str:
    """Returns the result of ADD, before any link exists: a request that cannot be met is rejected without a rollback.

    Raises `PluginError` if the result has no form in the configuration's version, or a requested address is not served.
    """
    reject_unmet_requests(primary, request.config, request.call)
    plan = record.interfaces[0].plan
    addresses = primary.addresses or ()
    # Without duplicates, in order: subnets may share a name server.
    servers = list(dict.fromkeys(each.dns for each in addresses if each.dns))
    defaults = [ResultRoute(DEFAULT_DESTINATION[family_of(each.gateway)], each.gateway) for each in plan.defaults]
    attached = AttachmentResult(
        name=plan.name,
        host_name="" if plan.vlan_id else plan.host_name,
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


def create_links(request: Request, netns: int, record: Record) -> int:
    """Creates all interfaces of the record or none; returns the netns ID of the sandbox.

    Raises `PluginError` with code 104, or 102 if a name is taken; in nested mode also 7 if there is no parent
    interface, and 11 if a link is down or another link of the VLAN has the MAC address.
    """
    plans = [each.plan for each in record.interfaces]
    try:
        if record.is_nested:
            from cni_contrail.commands.nested import make_links  # few nodes need it

            make_links(request.node, netns, record)
            return record.sandbox_id
        if record.has_datapath:
            from cni_contrail.commands.networks import make_in_networks  # only where a datapath is

            return make_in_networks(request.node, netns, plans)
        with request.node.phase("make"):
            return make_interfaces(netns, plans, sysctl_dir=request.node.settings.sysctl_dir)
    except LinkExistsError as error:
        raise PluginError(Code.EXISTS, str(error)) from error
    except ParentNotFoundError as error:
        raise PluginError(Code.INVALID_CONFIG, str(error)) from error
    except NotReadyError as error:
        raise TryAgainError(str(error)) from error
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def configure_links(request: Request, netns: int, record: Record) -> None:
    """Adds addresses and routes of the record to links that have none; raises `PluginError` with code 104."""
    plans = [each.plan for each in record.interfaces]
    try:
        with request.node.phase("make"):
            configure_interfaces(netns, plans, sysctl_dir=request.node.settings.sysctl_dir)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def ports(record: Record, interfaces: Sequence[ServedInterface]) -> list[dict[str, str]]:
    """Returns one document for `POST /vm` per interface, with upstream's keys."""
    return [
        {
            "time": time.strftime("%Y-%m-%d %H:%M:%S %z"),
            "vm-id": record.container_id,
            "vm-uuid": record.vm_uuid,
            "vm-name": record.vm_name,
            "host-ifname": attached.plan.host_name,
            "vm-ifname": attached.plan.name,
            "vm-namespace": record.netns,
            "vn-uuid": interface.network,
            "vmi-uuid": interface.uuid,
        }
        for attached, interface in zip(record.interfaces, interfaces, strict=True)
    ]


def finish(request: Request, sandbox_id: int, record: Record, result: str) -> FinishedAttachment:
    """Marks the record as finished and adds the netns ID of the sandbox."""
    finished = record._replace(sandbox_id=sandbox_id, finished=True)
    request.node.attachments.write(finished)
    return FinishedAttachment(result, finished)


def _assigned_netns_id(netns: int) -> int:
    """Returns the netns ID of the sandbox, by which a macvlan is found; no link of the host leads to the sandbox."""
    from cni_contrail.link.netns_ids import assign_netns_id  # few nodes need it

    try:
        return assign_netns_id(netns)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def _routes_to_replace(netns: int, plans: Sequence[InterfacePlan]) -> tuple[ReplacedRoute, ...]:
    """Default routes of other plugins, in each family in which the pod requests one of its own; DEL restores them."""
    asked = {_KERNEL_FAMILY[family_of(default.gateway)] for plan in plans for default in plan.defaults if default.asked}
    if not asked:
        return ()
    # Our own links have no routes yet, so all routes found belong to other plugins.
    try:
        return tuple(each for each in read_default_routes(netns) if each.family in asked)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error
