"""Writes that an API server has counted, by method and resource."""

import re
from collections import Counter
from collections.abc import Collection

from tests.support.real_apiserver.server import ApiServer

_REQUESTS = re.compile(r"^apiserver_request_total\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_OF_USERS = ("POST pods", "POST bindings", "DELETE pods", "PUT pods/status")
_LEASES = ("leases",)
_EVENTS_AND_LEASES = ("events", "leases")


def counted_writes(server: ApiServer) -> Counter[str]:
    """Writes by manager and agents, without events, leases and what users, scheduler and kubelets write."""
    return _counted(server, _EVENTS_AND_LEASES)


def counted_writes_and_events(server: ApiServer) -> Counter[str]:
    """The same with events."""
    return _counted(server, _LEASES)


def _counted(server: ApiServer, ignored: Collection[str]) -> Counter[str]:
    writes: Counter[str] = Counter()
    for labels, value in _REQUESTS.findall(server.metrics()):
        request = dict(_LABEL.findall(labels))
        what = "/".join(filter(None, (request["resource"], request["subresource"])))
        if request["verb"] in _WRITES and f"{request['verb']} {what}" not in _OF_USERS and what not in ignored:
            writes[f"{request['verb']} {what}"] += int(float(value))
    return writes
