"""`contrailctl get adds`: the last ADDs of a pod, from the daemon of its node."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from contrail_config.pod_timeline import EndedAdd
from contrailctl.endpoint import Endpoint
from contrailctl.errors import ResponseError, UsageError
from contrailctl.output import Output
from contrailctl.table import format_table

DEFAULT_DAEMON = "http://127.0.0.1:9092"

_PHASES = ("queue", "list", "make", "connect", "plug")
_CONTAINER_WIDTH = 12  # characters of a container ID, as runtimes show it


class Adds(msgspec.Struct, frozen=True):
    """What the daemon serves at `/adds`."""

    items: tuple[EndedAdd, ...]


def get_adds(daemon: Endpoint, arguments: argparse.Namespace) -> Output:
    """Lists the last ADDs of a pod name, the oldest first."""
    if arguments.namespace is None or arguments.name is None:
        raise UsageError("a daemon serves the ADDs of one pod per request: use -n NAMESPACE and the pod's name")
    body = daemon.get("/adds", {"namespace": arguments.namespace, "pod": arguments.name})
    try:
        adds = msgspec.json.decode(body, type=Adds)
    except msgspec.DecodeError as error:
        raise ResponseError(f"{daemon.url}/adds: invalid response: {error}") from error
    header = ("BEGAN", "CONTAINER", "IFNAME", "TOOK", *(phase.upper() for phase in _PHASES), "RESULT")
    return Output(format_table(header, [_row(each) for each in adds.items]), adds)


def _row(add: EndedAdd) -> Sequence[str]:
    began = datetime.fromtimestamp(add.began, UTC).isoformat(timespec="milliseconds")
    phases = [_seconds([phase.seconds for phase in add.phases if phase.name == name]) for name in _PHASES]
    result = f"code {add.code}: {add.message}" if add.message else "attached"
    return (began, add.container[:_CONTAINER_WIDTH], add.ifname, f"{add.seconds:.3f}", *phases, result)


def _seconds(parts: Sequence[float]) -> str:
    """Returns the sum of a phase's parts: it may be left and entered again."""
    return f"{sum(parts):.3f}" if parts else ""
