"""STATUS: reports whether an ADD could be served now. It changes nothing.

Error 50: no ADD could be served, though the configuration is valid: the agent is unreachable or not ready (`/readyz`),
the state directory is not writable, or in nested mode the parent interface is missing or down. Error 51: the agent's
reasons are about its ports; until it has restored them, attached pods may have no connectivity either. A Contrail
vrouter agent has no `/readyz`; its 404 proves that it runs.
A configuration that ADD rejects gets the same error as from ADD.

A runtime reports the node as not ready by the first failure, and Services then leave out its pods, which run on. So for
a few seconds STATUS waits for an agent that is away or not ready, as ADD does: usually it is being replaced.
"""

from __future__ import annotations

from cni_contrail.commands.node import NodeServices
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, TryAgainError
from cni_contrail.link.errors import LinkError
from cni_contrail.protocol.netconf import NetworkConfig, reject_unsupported_fields
from cni_contrail.state.files import unwritable_reason

_PATIENCE = 4.0  # seconds; the shim has waited for the daemon before
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_AGENT_TIMEOUT = 0.25  # seconds, of one request
_DATAPATH_REASON = "datapath: "  # begins reasons about some networks; ADDs of the others succeed
_NO_KERNEL_SUPPORT = "datapath: index 0: kernel module "  # every pod has index 0
_PORTS_REASON = "ports"  # a word that the agent's reasons contain while its ports are not restored


def status(config: NetworkConfig, node: NodeServices) -> None:
    """Runs STATUS; raises `PluginError` with code 50 or 51 and the reasons."""
    reject_unsupported_fields(config)
    _ensure_node(node)
    try:
        unready = _lasting_unreadiness_of_agent(node)
    except TryAgainError as error:  # the daemon stops
        raise PluginError(Code.UNAVAILABLE, error.message) from error
    if unready is not None:
        raise unready


def ensure_ready(node: NodeServices) -> None:
    """Raises `PluginError` if the node could serve no ADD of any network now: 50 or 51."""
    _ensure_node(node)
    if unready := _unreadiness_of_agent(node):
        raise unready


def _ensure_node(node: NodeServices) -> None:
    _ensure_parent(node.settings.nested_parent)
    if problem := unwritable_reason(node.settings.state_dir):
        raise PluginError(Code.UNAVAILABLE, f"state-dir {node.settings.state_dir}: not writable: {problem}")


def _ensure_parent(name: str) -> None:
    if not name:
        return
    from cni_contrail.link.exchange import RouteSocket
    from cni_contrail.link.vlan_links import usable_parent  # nested mode only

    try:
        with RouteSocket() as host:
            usable_parent(host, name)
    except LinkError as error:
        raise PluginError(Code.UNAVAILABLE, str(error)) from error


def _lasting_unreadiness_of_agent(node: NodeServices) -> PluginError | None:
    """Waits for the agent; raises the error of an interruption."""
    unready: PluginError | None = None
    for _ in Deadline(_PATIENCE, node.context.interruption).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
        unready = _unreadiness_of_agent(node)
        if unready is None or _NO_KERNEL_SUPPORT in unready.message:
            break
    return unready


def _unreadiness_of_agent(node: NodeServices) -> PluginError | None:
    try:
        found = node.agent.not_ready_reasons(Deadline(_AGENT_TIMEOUT))
    except PluginError as error:
        return PluginError(Code.UNAVAILABLE, error.message)
    reasons = [each for each in found if not each.startswith(_DATAPATH_REASON) or each.startswith(_NO_KERNEL_SUPPORT)]
    if not reasons:
        return None
    code = Code.LIMITED if any(_PORTS_REASON in reason for reason in reasons) else Code.UNAVAILABLE
    return PluginError(code, f"agent at {node.agent.endpoint}: not ready: {'; '.join(reasons)}")
