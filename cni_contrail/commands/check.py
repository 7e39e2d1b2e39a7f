"""CHECK: compares the kernel's state with what ADD made. Sends no request to the agent.

It changes nothing, except that host ends of earlier versions of this plugin are isolated, as ADD does today.

`prevResult`, the result of the whole chain, takes precedence over what this plugin made: a later plugin may have
changed the MAC or removed the default routes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cni_contrail.addresses import DEFAULT_DESTINATION, family_of
from cni_contrail.commands.request import OpenSandbox, Request
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.check import check_interfaces
from cni_contrail.link.errors import LinkError
from cni_contrail.link.isolate import isolate_host_ends
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.protocol.results import previous_result
from cni_contrail.quoting import cut, listed, quoted
from cni_contrail.state.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check(request: Request) -> None:
    """Runs CHECK; raises `PluginError` with code 105 that names the differences."""
    previous = previous_result(request.config)
    if previous is None:
        raise PluginError(Code.INVALID_CONFIG, "prevResult: missing, CHECK requires it")
    with OpenSandbox(request) as netns:
        record = _record(request)
        if not record.isolated:
            _isolate(request, record)
        # `prevResult` contains the first interface only, so only that one is adjusted to it.
        first, *others = [each.plan for each in record.interfaces]
        differences = _check_interfaces(request, netns, [_expected(first, previous), *others])
    if differences:
        raise PluginError(Code.CHECK_FAILED, listed(differences, "; "))


def _record(request: Request) -> Record:
    call, attachments = request.call, request.node.attachments
    container = f"container {cut(call.container_id)}"
    record = None
    if attachments.has_container(call.container_id):
        with request.locked():
            record = attachments.read(call.container_id, call.ifname)
    # Code 3 tells the runtime that no cleanup is needed; what the upstream plugin left needs a DEL.
    elif not request.port_files.of_container(call.container_id):
        raise PluginError(Code.UNKNOWN_CONTAINER, f"{container}: not found")
    if record is None or not record.finished:
        problem = "record not found" if record is None else "ADD did not finish"
        raise PluginError(Code.CHECK_FAILED, f"attachment {call.ifname} of {container}: {problem}")
    return record


def _isolate(request: Request, record: Record) -> None:
    try:
        isolate_host_ends([each.plan for each in record.interfaces], sysctl_dir=request.node.settings.sysctl_dir)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def _check_interfaces(request: Request, netns: int, plans: Sequence[InterfacePlan]) -> list[str]:
    try:
        checkpoint, netns_dir = request.node.context.interruption.check, request.node.settings.netns_dir
        return check_interfaces(netns, plans, checkpoint, netns_dir=netns_dir)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def _expected(plan: InterfacePlan, previous: Mapping[str, Any]) -> InterfacePlan:
    listed = [each for each in previous.get("interfaces") or () if each.get("sandbox")]
    current: Mapping[str, Any] = next((each for each in listed if each.get("name") == plan.name), {})
    mac = current.get("mac") or plan.mac
    if not isinstance(mac, str):
        raise PluginError(Code.INVALID_CONFIG, f"prevResult: mac of {plan.name} must be a string, not {quoted(mac)}")
    destinations = [route.get("dst") for route in previous.get("routes") or ()]
    return plan._replace(
        mac=cut(mac),  # errors quote it
        defaults=tuple(each for each in plan.defaults if DEFAULT_DESTINATION[family_of(each.gateway)] in destinations),
    )
