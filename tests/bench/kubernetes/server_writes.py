"""Writes that an API server has counted, by method and resource."""

import re
from collections import Counter

from tests.support.real_apiserver.server import ApiServer

_REQUESTS = re.compile(r"^apiserver_request_total\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_OF_USERS = ("POST pods", "POST bindings", "DELETE pods", "PUT pods/status")
_IGNORED = ("events", "leases")


def counted_writes(server: ApiServer) -> Counter[str]:
    """Writes by manager and agents, without events, leases and what users, scheduler and kubelets write."""
    writes: Counter[str] = Counter()
    for labels, value in _REQUESTS.findall(server.metrics()):
        request = dict(_LABEL.findall(labels))
        what = "/".join(filter(None, (request["resource"], request["subresource"])))
        if request["verb"] in _WRITES and f"{request['verb']} {what}" not in _OF_USERS and what not in _IGNORED:
            writes[f"{request['verb']} {what}"] += int(float(value))
    return writes
