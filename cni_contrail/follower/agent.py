"""Requests of the follower to the agent: the desired state, and the report of what was done with it."""

from __future__ import annotations

import json
import urllib.parse
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cni_contrail.agent.http import Endpoint, HttpExchange
from cni_contrail.datapath.node_outcome import NodeOutcome
from cni_contrail.deadline import Deadline
from cni_contrail.errors import Code, PluginError, RejectedError, UnreachableError
from cni_contrail.follower.desired_state import MAX_BYTES, DesiredState, read_desired_state
from cni_contrail.follower.rehearsal import named_modules
from cni_contrail.link.counters import Counters
from cni_contrail.link.named_tuple import NamedTuple

_MAX_PROBLEM = 200  # characters of each problem in a report
_MAX_REFUSED = 1024  # subnets without a route in a report
_TIMEOUT = 10.0  # seconds for a request, beyond what the agent was asked to wait


class StandbyError(PluginError):
    """Another process programs the datapath of this node; the message names it."""


def next_desired_state(endpoint: Endpoint, follower: str, known: str, wait: float) -> DesiredState | None:
    """Returns the desired state as soon as its version is not the known one, at the latest after `wait` seconds.

    None if the agent has none, since the datapath of the node is not this one. Raises `StandbyError` if another process
    than `follower` programs it all this time, or another `PluginError`.
    """
    parameters = {"wait": f"{wait:.3f}", "follower": follower}
    query = urllib.parse.urlencode(parameters | ({"version": known} if known else {}))
    deadline = Deadline(wait + _TIMEOUT)
    exchange = HttpExchange(endpoint, "GET", f"/datapath?{query}", b"", deadline, max_body=MAX_BYTES)
    answer = exchange.response()
    if answer.status == 404:
        return None
    _check(endpoint, answer.status, answer.body, "GET /datapath")
    return read_desired_state(answer.body)


class Changes(NamedTuple):
    """Objects changed since the last report: for another desired state, and because somebody else had changed them.

    `repairs` are those of networks, by kind of what had been changed; one may be of several kinds. `networks` are the
    same by number of the network, index 0 by 0.
    """

    desired: int
    repaired: int
    repairs: Mapping[str, int] = MappingProxyType({})
    networks: Mapping[int, int] = MappingProxyType({})

    def plus(self, other: Changes) -> Changes:
        """Returns the sum."""
        repairs = Counter(self.repairs) + Counter(other.repairs)
        networks = Counter(self.networks) + Counter(other.networks)
        return Changes(self.desired + other.desired, self.repaired + other.repaired, repairs, networks)


class Report(NamedTuple):
    """What was done for a version of the desired state, in `seconds`. `daemon_version`: release of the node daemon.

    `counters` are those of ports by number of the network and link, None if they were not read for this report.
    """

    version: str
    changes: Changes
    outcome: NodeOutcome
    seconds: float
    tunnel_mtu: int | None = None
    daemon_version: str | None = None
    counters: Mapping[int, Mapping[str, Counters]] | None = None

    def document(self) -> dict[str, Any]:
        """Returns the body of the request."""
        problems = {str(vni): _printable(problem) for vni, problem in self.outcome.problems.items()}
        missing = {str(vni): sorted(links) for vni, links in self.outcome.missing.items() if links}
        return {
            "version": self.version,
            "changes": self.changes.desired,
            "repaired": self.changes.repaired,
            "repairs": dict(self.changes.repairs),
            "repaired-networks": {str(vni): number for vni, number in self.changes.networks.items()},
            "seconds": round(self.seconds, 6),
            "problems": problems,
            "missing": missing,
            "unconnected": sorted(self.outcome.unconnected),
            "drops": {str(vni): drops._asdict() for vni, drops in self.outcome.drops.items()},
            "refused": [each._asdict() for each in sorted(self.outcome.refused)[:_MAX_REFUSED]],
            "tunnel-mtu": self.tunnel_mtu,
            "missing-modules": named_modules(self.outcome.problems.values()),
            "daemon-version": self.daemon_version,
            "counters": None if self.counters is None else {str(vni): each for vni, each in self.counters.items()},
        }


def send_report(endpoint: Endpoint, follower: str, report: Report) -> None:
    """Sends the report. Raises `StandbyError` or another `PluginError`."""
    body = json.dumps(report.document()).encode()
    target = f"/datapath?{urllib.parse.urlencode({'follower': follower})}"
    answer = HttpExchange(endpoint, "POST", target, body, Deadline(_TIMEOUT)).response()
    _check(endpoint, answer.status, answer.body, "POST /datapath")


def _printable(problem: str) -> str:
    return "".join(each if each.isprintable() else " " for each in problem[:_MAX_PROBLEM])


def _error_text(body: bytes) -> str:
    try:
        return _printable(str(json.loads(body)["error"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        return _printable(body[:_MAX_PROBLEM].decode(errors="replace"))


def _check(endpoint: Endpoint, status: int, body: bytes, request: str) -> None:
    if status in (200, 204):
        return
    why = _error_text(body)
    if status == 409:
        raise StandbyError(Code.TRY_AGAIN, why)
    if status == 503:
        raise UnreachableError(f"agent at {endpoint} is not ready: {why}")
    raise RejectedError(f"agent at {endpoint} rejects {request}: {status} {why}")
