"""ADDs that ended last: when each began, how long each phase took, and how it ended.

For whoever asks why a pod started late. They are noted after the runtime has its response, kept in memory only, and
their number and size are bounded: the oldest ones go first.
"""

from __future__ import annotations

import collections
import json
import threading
import time
from typing import NamedTuple

from cni_contrail.daemon.metrics import MeasuredCall
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.plugin import CommandOutput
from cni_contrail.protocol.environment import read_args

MAX_ADDS = 1024
"""Four for each of 256 pods, or one for each interface of as many with Multus."""

_MAX_TEXT = 256  # characters of a name; of a pod at most 253
_MAX_MESSAGE = 1024  # characters
_LISTED = ("queue", "list", "make", "connect", "plug")
"""Phases before the response; `tell` and what follows it concern no pod that starts."""


class AddPhase(NamedTuple):
    """A phase; both times are in seconds, `after` from the beginning of the ADD until the phase began first.

    `seconds` are those of all its parts: a list that is not there at once is waited for without the pod's lock.
    """

    name: str
    after: float
    seconds: float


class EndedAdd(NamedTuple):
    """An ADD. `began` is when the daemon had received it, in seconds since the epoch; `seconds` until the response.

    `code` and `message` are those of the CNI error, 0 and empty if there is none.
    """

    namespace: str
    pod: str
    uid: str
    container: str
    ifname: str
    began: float
    seconds: float
    phases: tuple[AddPhase, ...]
    code: int
    message: str


class RecentAdds:
    """The last ADDs of a daemon. Safe for several threads."""

    def __init__(self, *, limit: int = MAX_ADDS) -> None:
        self._adds: collections.deque[EndedAdd] = collections.deque(maxlen=limit)
        self._lock = threading.Lock()

    def note(self, request: ShimRequest, call: MeasuredCall, output: CommandOutput) -> None:
        """Adds an ADD that was answered."""
        ended = _ended(request, call, output)
        with self._lock:
            self._adds.append(ended)

    def all(self) -> list[EndedAdd]:
        """Returns all, the oldest first."""
        with self._lock:
            return list(self._adds)

    def of_pod(self, namespace: str, pod: str) -> list[EndedAdd]:
        """Returns the ADDs of a pod name, the oldest first; also those of earlier pods with that name."""
        return [each for each in self.all() if (each.namespace, each.pod) == (namespace, pod)]


def _ended(request: ShimRequest, call: MeasuredCall, output: CommandOutput) -> EndedAdd:
    args, _ = read_args(request.environment.get("CNI_ARGS", ""))
    container, ifname = request.attachment
    responded = time.perf_counter() if call.responded is None else call.responded
    return EndedAdd(
        namespace=_cut(args.get("K8S_POD_NAMESPACE", "")),
        pod=_cut(args.get("K8S_POD_NAME", "")),
        uid=_cut(args.get("K8S_POD_UID", "")),
        container=_cut(container),
        ifname=_cut(ifname),
        # By the clock of now: one that was set during the ADD would move its phases apart.
        began=time.time() - (time.perf_counter() - call.began),
        seconds=responded - call.began,
        phases=tuple(_phases(call)),
        code=output.code,
        message=_message(output) if output.status else "",
    )


def _phases(call: MeasuredCall) -> list[AddPhase]:
    phases: dict[str, AddPhase] = {}
    for name, started, seconds in call.ended:
        if name in _LISTED:
            first = phases.get(name, AddPhase(name, started - call.began, 0.0))
            phases[name] = first._replace(seconds=first.seconds + seconds)
    return sorted(phases.values(), key=lambda phase: phase.after)


def _message(output: CommandOutput) -> str:
    """Returns the text of a CNI error."""
    error = json.loads(output.output)
    text = f"{error['msg']}: {error['details']}" if error.get("details") else str(error["msg"])
    return _cut(text, _MAX_MESSAGE)


def _cut(text: str, length: int = _MAX_TEXT) -> str:
    """Returns the beginning of the text; what is no Unicode becomes a question mark: readers would reject it."""
    return text[:length].encode(errors="replace").decode()
