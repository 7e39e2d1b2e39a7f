"""What the agent of this node says of its datapath: the desired state, and the latest report on the kernel.

The desired state is served on the agent's Unix socket only. Whoever reads it without naming itself is no follower, so
this takes the lease from nobody.
"""

from typing import NamedTuple

import msgspec

from cni_contrail.agent.http import Endpoint, HttpExchange
from cni_contrail.deadline import Deadline
from cni_contrail.errors import PluginError
from cni_contrail.follower.desired_state import MAX_BYTES, DesiredState, read_desired_state
from contrailctl.datapath import DatapathStatus
from contrailctl.errors import NotFoundError, ResponseError, UnreachableError

INDEX_0_NAME = "index 0"
"""Network of findings that concern index 0, or all networks of the node."""

_OK, _NOT_FOUND = 200, 404
_MAX_QUOTED = 200  # characters


class NodeDatapath(NamedTuple):
    """The desired state of the kernel, and the agent's state of the datapath."""

    desired: DesiredState
    status: DatapathStatus

    def name_of(self, vni: int) -> str:
        """Returns the name of a network; index 0 is named so."""
        known = self.status.networks.get(vni)
        if vni == 0:
            return INDEX_0_NAME
        return known.name if known is not None and known.name else f"VNI {vni}"


def read_datapath(socket: str, *, timeout: float) -> NodeDatapath:
    """Asks the agent at a Unix socket. Raises ContrailctlError."""
    body = _get(socket, "/datapath", timeout)
    status = _get(socket, "/datapath/report", timeout)
    try:
        return NodeDatapath(read_desired_state(body), msgspec.json.decode(status, type=DatapathStatus))
    except PluginError as error:
        raise ResponseError(f"agent at {socket}: {error.message}") from error
    except msgspec.DecodeError as error:
        raise ResponseError(f"agent at {socket}: /datapath/report: invalid response: {error}") from error


def _get(socket: str, path: str, timeout: float) -> bytes:
    try:
        deadline = Deadline(timeout)
        answer = HttpExchange(Endpoint(socket, "", 0), "GET", path, b"", deadline, max_body=MAX_BYTES).response()
    except PluginError as error:
        raise UnreachableError(error.message) from error
    if answer.status == _NOT_FOUND:
        raise NotFoundError(f"agent at {socket}: the node has no Linux datapath")
    if answer.status != _OK:
        text = answer.body[:_MAX_QUOTED].decode(errors="replace")
        raise ResponseError(f"agent at {socket}: GET {path}: status {answer.status}: {text}")
    return answer.body
