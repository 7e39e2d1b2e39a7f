"""CHECK: whether what ADD made is still there. Reads the kernel alone; no agent is asked.

What the result of the whole chain says goes over what this plugin made: a later one may have changed the MAC, or taken
the default routes away.
"""

from __future__ import annotations

from collections.abc import Mapping

from cni_contrail.addresses import DEFAULT_DESTINATION, family_of
from cni_contrail.commands.request import Request, open_sandbox
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.check import check_interface
from cni_contrail.link.errors import LinkError
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.protocol.results import previous_result
from cni_contrail.state.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check(request: Request) -> None:
    """Carries out CHECK; raises `PluginError` with code 105 that names every difference."""
    previous = previous_result(request.config)
    if previous is None:
        raise PluginError(Code.INVALID_CONFIG, "CHECK needs prevResult")
    with open_sandbox(request) as netns:
        record = _record(request)
        first, *others = [each.plan for each in record.interfaces]
        differences = [each for plan in (_expected(first, previous), *others) for each in _check_interface(netns, plan)]
    if differences:
        raise PluginError(Code.CHECK_FAILED, "; ".join(differences))


def _record(request: Request) -> Record:
    call, attachments = request.call, request.node.attachments
    record = None
    if attachments.has_container(call.container_id):
        with request.locked():
            record = attachments.read(call.container_id, call.ifname)
    elif not request.port_files.of_container(call.container_id):
        raise PluginError(Code.UNKNOWN_CONTAINER, f"container {call.container_id} is not known here")
    if record is None or not record.finished:
        what = "no record" if record is None else "no finished record"
        raise PluginError(
            Code.CHECK_FAILED,
            f"there is {what} of attachment {call.ifname} of container {call.container_id}",
        )
    return record


def _check_interface(netns: int, plan: InterfacePlan) -> list[str]:
    try:
        return check_interface(netns, plan)
    except LinkError as error:
        raise PluginError(Code.KERNEL, str(error)) from error


def _expected(plan: InterfacePlan, previous: Mapping[str, Any]) -> InterfacePlan:
    listed = [each for each in previous.get("interfaces") or () if each.get("sandbox")]
    now: Mapping[str, Any] = next((each for each in listed if each.get("name") == plan.name), {})
    mac = now.get("mac") or plan.mac
    if not isinstance(mac, str):
        raise PluginError(Code.INVALID_CONFIG, f"prevResult: mac of {plan.name} must be a string, not {mac}")
    destinations = [route.get("dst") for route in previous.get("routes") or ()]
    return plan._replace(
        mac=mac,
        defaults=tuple(each for each in plan.defaults if DEFAULT_DESTINATION[family_of(each.gateway)] in destinations),
    )
