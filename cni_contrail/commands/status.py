"""STATUS: whether an ADD could be served now. Nothing is changed by it, and nothing made.

Error 50: the configuration asks for nothing wrong, but no ADD could be served: the agent is not reachable, is not ready
(`/readyz`), or no record could be written. Error 51: the agent's own reasons speak of its ports; while it does not know
them, what is attached may not be connected either. A stock agent has no page `/readyz`: that it says so shows that it
lives. A configuration that no ADD would be served with is answered as ADD answers it.
"""

from __future__ import annotations

from cni_contrail.commands.node import Node
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError
from cni_contrail.protocol.netconf import NetworkConfig, refuse_unsupported_fields
from cni_contrail.settings import reject_unsupported_settings
from cni_contrail.state.files import why_unwritable

_PATIENCE = 0.25  # seconds for the agent: runtimes ask every 500 ms
_ABOUT_ATTACHED = "ports"  # the word in the agent's reasons


def status(config: NetworkConfig, node: Node) -> None:
    """Carries out STATUS; raises `PluginError` with code 50 or 51 and the reasons."""
    refuse_unsupported_fields(config)
    ensure_ready(node)


def ensure_ready(node: Node) -> None:
    """Raises `PluginError` if the node could serve no ADD, whatever its configuration: 50, 51, 2 for its settings."""
    reject_unsupported_settings(node.settings)
    if problem := why_unwritable(node.settings.state_dir):
        raise PluginError(Code.UNAVAILABLE, f"state-dir {node.settings.state_dir} cannot be written: {problem}")
    if reasons := _reasons(node):
        code = Code.LIMITED if any(_ABOUT_ATTACHED in reason for reason in reasons) else Code.UNAVAILABLE
        raise PluginError(code, f"agent at {node.agent.endpoint} is not ready: {'; '.join(reasons)}")


def _reasons(node: Node) -> list[str]:
    try:
        return node.agent.unreadiness(Deadline(_PATIENCE))
    except PluginError as error:
        raise PluginError(Code.UNAVAILABLE, error.message) from error
