"""Request handling of the server."""

import json
from typing import NamedTuple

from contrail_config.kubernetes.crds import crds
from tests.bench.kubernetes.scripted_apiserver.pods import PODS_OF_NAMESPACE, namespace_of
from tests.bench.kubernetes.scripted_apiserver.storage import Key, Log, Storage
from tests.support.fake_apiserver.writes import merge

OWN_CONFIG = '{"cniVersion": "1.0.0", "type": "contrail-k8s-cni"}'
NETWORKS = {"net-a": "10.64.0.0/14", "net-b": "10.128.0.0/14,fd00:128::/64"}

_ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


class Request(NamedTuple):
    """A request of a client."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """A complete response."""

    status: int
    body: bytes


class Stream:
    """A streamed response with the changes since a revision."""

    def __init__(self, log: Log, *, since: int) -> None:
        self.log = log
        self._next = log.after(since)

    def lines(self, most: int) -> bytes:
        """New changes, about `most` bytes at most."""
        lines: list[bytes] = []
        length = 0
        while length < most and self._next < len(self.log.entries):
            entry = self.log.entries[self._next]
            lines.append(b'{"type":"%b","object":%b}\n' % (entry.type, entry.body()))
            length += len(lines[-1])
            self._next += 1
        return b"".join(lines)


class _Target(NamedTuple):
    plural: str
    namespace: str
    name: str


class Server:
    """Serves two networks and `pods` pods, 1000 per namespace."""

    def __init__(self, *, pods: int) -> None:
        self.storage = Storage(pods=pods)
        for number in range(0, max(pods, 1), PODS_OF_NAMESPACE):
            self._create("namespaces", "", namespace_of(number), {})
        for name, cidr in NETWORKS.items():
            annotations = {"opencontrail.org/cidr": cidr}
            self._create("network-attachment-definitions", "shared", name, annotations, spec={"config": OWN_CONFIG})

    def respond(self, request: Request) -> Response | Stream:
        """Processes a request."""
        if request.path == "/written":
            return Response(200, json.dumps(self.storage.written).encode())
        if request.path == "/play":
            return self._play(json.loads(request.body))
        if request.path.startswith("/apis/apiextensions.k8s.io/"):
            return _definition(request.path.rpartition("/")[2])
        target = _target(request.path)
        if request.method == "GET":
            return self._read(request, target)
        self.storage.written[f"{request.method} {target.plural}"] += 1
        return self._write(request, target)

    def _read(self, request: Request, target: _Target) -> Response | Stream:
        query = request.query
        if "watch" in query:
            return Stream(self.storage.logs[target.plural], since=int(query["resourceVersion"]))
        if target.name:
            found = self.storage.get(target.plural, (target.namespace, target.name))
            return _NOT_FOUND if found is None else Response(200, found)
        page = self.storage.page(
            target.plural,
            labels=query.get("labelSelector", ""),
            limit=int(query.get("limit", "0")),
            token=query.get("continue", ""),
        )
        metadata = json.dumps({"resourceVersion": str(page.version), "continue": page.rest})
        return Response(200, b'{"metadata":%b,"items":[%b]}' % (metadata.encode(), b",".join(page.items)))

    def _write(self, request: Request, target: _Target) -> Response:
        if target.plural == "pods":
            pod = self.storage.patch_pod(int(target.name.removeprefix("pod-")), request.body)
            return _NOT_FOUND if pod is None else Response(200, pod)
        if target.plural == "events":
            return Response(201, request.body)
        name = target.name or json.loads(request.body)["metadata"]["name"]
        key = (target.namespace, name)
        if request.method != "POST" and self.storage.get(target.plural, key) is None:
            return _NOT_FOUND
        if request.method == "DELETE":
            self.storage.delete(target.plural, key)
            return Response(200, b'{"kind":"Status","status":"Success"}')
        body = request.body if request.method != "PATCH" else self._merged(target.plural, key, request.body)
        return Response(200, self.storage.put(target.plural, key, body))

    def _merged(self, plural: str, key: Key, patch: bytes) -> bytes:
        """An object with a patch merged in."""
        found = json.loads(self.storage.get(plural, key) or b"{}")
        return json.dumps(merge(found, json.loads(patch)), separators=(",", ":")).encode()

    def _play(self, events: list[tuple[str, int]]) -> Response:
        """Plays events of pods: type and pod number of each."""
        for kind, number in events:
            self.storage.record_pod_event(kind.encode(), number)
        return Response(200, b"{}")

    def _create(self, plural: str, namespace: str, name: str, annotations: dict[str, str], **rest: object) -> None:
        metadata = {"name": name, "namespace": namespace, "annotations": annotations}
        body = json.dumps({"metadata": metadata, **rest}, separators=(",", ":"))
        self.storage.put(plural, (namespace, name), body.encode())


_NOT_FOUND = Response(404, b'{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"not found"}')


def _definition(name: str) -> Response:
    """An established CustomResourceDefinition: of this release if it is one of ours."""
    definition = crds().get(name, {"metadata": {"name": name}})
    return Response(200, json.dumps(definition | {"status": _ESTABLISHED}).encode())


def _target(path: str) -> _Target:
    """Kind, namespace and name of `/api/v1/...` or `/apis/GROUP/VERSION/...`."""
    parts = path.split("/")[3 if path.startswith("/api/") else 4 :]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    return _Target(parts[0], namespace, parts[1] if len(parts) > 1 else "")
