"""STATUS: reports whether an ADD could be served now. It changes nothing.

Error 50: no ADD could be served, though the configuration is valid: the agent is unreachable or not ready (`/readyz`),
the state directory is not writable, or in nested mode the parent interface is missing or down. Error 51: the agent's
reasons are about its ports; until it has restored them, attached pods may have no connectivity either. A Contrail
vrouter agent has no `/readyz`; its 404 proves that it runs.
A configuration that ADD rejects gets the same error as from ADD.
"""

from __future__ import annotations

from cni_contrail.commands.node import NodeServices
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.errors import LinkError
from cni_contrail.protocol.netconf import NetworkConfig, reject_unsupported_fields
from cni_contrail.state.files import unwritable_reason

_AGENT_TIMEOUT = 0.25  # seconds: runtimes call STATUS every 500 ms
_DATAPATH_REASON = "datapath: "  # begins reasons about some networks; ADDs of the others succeed
_NO_KERNEL_SUPPORT = "datapath: index 0: kernel module "  # every pod has index 0
_PORTS_REASON = "ports"  # a word that the agent's reasons contain while its ports are not restored


def status(config: NetworkConfig, node: NodeServices) -> None:
    """Runs STATUS; raises `PluginError` with code 50 or 51 and the reasons."""
    reject_unsupported_fields(config)
    ensure_ready(node)


def ensure_ready(node: NodeServices) -> None:
    """Raises `PluginError` if the node could serve no ADD of any network: 50 or 51."""
    _ensure_parent(node.settings.nested_parent)
    if problem := unwritable_reason(node.settings.state_dir):
        raise PluginError(Code.UNAVAILABLE, f"state-dir {node.settings.state_dir}: not writable: {problem}")
    if reasons := _reasons(node):
        code = Code.LIMITED if any(_PORTS_REASON in reason for reason in reasons) else Code.UNAVAILABLE
        raise PluginError(code, f"agent at {node.agent.endpoint}: not ready: {'; '.join(reasons)}")


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


def _reasons(node: NodeServices) -> list[str]:
    try:
        reasons = node.agent.not_ready_reasons(Deadline(_AGENT_TIMEOUT))
    except PluginError as error:
        raise PluginError(Code.UNAVAILABLE, error.message) from error
    return [each for each in reasons if not each.startswith(_DATAPATH_REASON) or each.startswith(_NO_KERNEL_SUPPORT)]
