"""Scripted agents on a Unix socket, for tests of the plugin: the node agent and the Contrail vrouter agent.

They serve the interfaces that a test sets and record requests and ports. `before` installs a behaviour that sees each
request first: it can reject it, stall it, or return an invalid response.
"""

import contextlib
import http.server
import json
import os
import socket
import socketserver
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

ServePod = Callable[..., "list[Vmi]"]
"""Makes an agent serve a pod's interfaces; see the fixture `serve_pod`."""

NO_VLAN = 65535
_MISSING = {"error": "{ Not Found }"}
_UNKNOWN = {"error": "Unknown Request"}


@dataclass(frozen=True)
class Subnet:
    """An address of an interface with its subnet's settings; empty strings are omitted from responses."""

    address: str
    prefix_length: int
    gateway: str = ""
    dns: str = "0.0.0.0"

    @property
    def prefix(self) -> str:
        """Prefix of the JSON keys of its address family."""
        return "v6-" if ":" in self.address else ""


@dataclass(frozen=True)
class Vmi:
    """One interface of a pod in an agent; `datapath` are the keys that say where its host end is to be connected."""

    uuid: str
    vm_uuid: str
    mac: str
    annotations: dict[str, str]
    subnets: tuple[Subnet, ...]
    network: str = "773d9c45-2a91-4829-ad2f-7f70a7bb2b67"
    mtu: int = 1400
    routes: tuple[dict[str, str], ...] = ()
    vlan: Any = NO_VLAN
    datapath: dict[str, Any] = field(default_factory=dict)

    def annotated(self, **more: str) -> "Vmi":
        """Returns a copy with further annotations (`default_gw` is `default-gw`)."""
        added = {key.replace("_", "-"): value for key, value in more.items()}
        return replace(self, annotations={**self.annotations, **added})


@dataclass(frozen=True)
class ReceivedRequest:
    """A recorded request."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """A response: JSON or the bytes of `raw`. With `truncated`, half of it is sent before the connection is closed."""

    status: int = 200
    document: Any = field(default_factory=dict)
    raw: bytes | None = None
    truncated: bool = False


def make_vmis(count: int, *, uid: str = "", subnet: int = 1, ipv6: bool = True) -> list[Vmi]:
    """A pod's interfaces: the cluster network, then `count` - 1 attachments of NADs demo/net-1, demo/net-2, ..."""
    machine = uid or str(uuid.uuid4())
    return [_make_vmi(position, count, machine, subnet, ipv6=ipv6) for position in range(count)]


def _make_vmi(position: int, count: int, machine: str, subnet: int, *, ipv6: bool) -> Vmi:
    name = f"net-{position}"
    annotations = {"index": f"{position}/{count}", "network": "default", "cluster": "k8s", "kind": "Pod"}
    if position:
        annotations |= {"network": name, "nad": f"demo/{name}", "config-name": name, "attachment": f"net{position}"}
    subnets = [Subnet(f"10.{subnet}.{position}.5", 24, f"10.{subnet}.{position}.1", f"10.{subnet}.{position}.2")]
    if ipv6:
        base = f"fd00:{subnet:x}:{position + 1:x}:"
        subnets.append(Subnet(f"{base}:5", 64, f"{base}:1", f"{base}:2"))
    mac = f"02:{subnet:02x}:{position:02x}:{uuid.uuid4().hex[:2]}:00:05"
    network = f"773d9c45-2a91-4829-ad2f-{position:012x}"
    return Vmi(str(uuid.uuid4()), machine, mac, annotations, tuple(subnets), network)


class ScriptedAgent:
    """Serves `virtual_machines` (VM name to interfaces) on `socket_path`; `ports` are plugged ports by interface."""

    def __init__(self, socket_path: str) -> None:
        self.socket_path = socket_path
        self.virtual_machines: dict[str, list[Vmi]] = {}
        self.ports: dict[str, dict[str, str]] = {}
        self.requests: list[ReceivedRequest] = []
        self._before: list[Callable[[ReceivedRequest], Reply | None]] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._servers: list[_Server] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listens on the socket. Ports of an earlier run are kept."""
        self._closing.clear()
        self._listen(self.socket_path)

    def listen_on_tcp(self) -> tuple[str, int]:
        """Listens on a port of this host as well; returns its address."""
        return self._listen(("127.0.0.1", 0)).socket.getsockname()  # type: ignore[no-any-return]

    def stop(self) -> None:
        """Closes its sockets and all connections, like an agent that exits. Idempotent."""
        if not self._servers:
            return
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._servers.clear()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket_path)

    def serve(self, name: str, vmis: list[Vmi]) -> None:
        """Sets a pod's interfaces; an empty list removes the pod."""
        with self._changed:
            self.virtual_machines[name] = vmis
            self._changed.notify_all()

    def before(self, behaviour: Callable[[ReceivedRequest], Reply | None]) -> None:
        """Installs a behaviour that sees each request first and answers those for which it returns a reply."""
        self._before.append(behaviour)

    def stall(self, method: str, path: str = "") -> threading.Event:
        """Leaves matching requests unanswered until the agent stops; the event is set by the first one."""
        received = threading.Event()

        def hold(seen: ReceivedRequest) -> None:
            if seen.method == method and seen.path.startswith(path):
                received.set()
                self._closing.wait(60)

        self.before(hold)
        return received

    def reject(self, method: str, path: str = "", *, status: int = 500, text: str = "no") -> None:
        """Answers matching requests with an error."""
        self.before(
            lambda seen: (
                Reply(status, {"error": f"{{ {text} }}"})
                if seen.method == method and seen.path.startswith(path)
                else None
            )
        )

    def clear_behaviours(self) -> None:
        """Removes all installed behaviours."""
        self._before.clear()

    def received(self, method: str, path: str = "") -> list[ReceivedRequest]:
        """The matching requests so far."""
        return [seen for seen in list(self.requests) if seen.method == method and seen.path.startswith(path)]

    def answer(self, seen: ReceivedRequest) -> Reply:
        """Records a request and returns its response."""
        self.requests.append(seen)
        for behaviour in self._before:
            reply = behaviour(seen)
            if reply is not None:
                return reply
        return self.default_reply(seen)

    @property
    def handler(self) -> "type[_Handler]":
        """Its HTTP."""
        return _Handler

    def default_reply(self, seen: ReceivedRequest) -> Reply:
        """The response without installed behaviours."""
        raise NotImplementedError

    def _listen(self, address: str | tuple[str, int]) -> "_Server":
        server = _Server(address, self.handler, self.answer)
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    def owners(self) -> dict[str, str]:
        """Container of each plugged port, by interface uuid."""
        return {uuid: port["vm-id"] for uuid, port in self.ports.items()}


class ScriptedNodeAgent(ScriptedAgent):
    """The node agent: address keys, `wait`, `uid`, arrays of ports, deletion by container."""

    def default_reply(self, seen: ReceivedRequest) -> Reply:
        _, *words = seen.path.split("/")
        match seen.method, words:
            case "GET", ["vm-cfg", name]:
                vmis = self._wait_for_interfaces(name, seen.query)
                return Reply(200, list(map(node_agent_item, vmis))) if vmis else Reply(404, _MISSING)
            case "POST", ["vm"]:
                ports = seen.body if isinstance(seen.body, list) else [seen.body]
                self.ports |= {port["vmi-uuid"]: port for port in ports}
                return Reply()
            case "DELETE", ["vm", machine, *interface]:
                self._free(machine, interface[0] if interface else None, seen.query["vm-id"])
                return Reply()
        return Reply(404, _UNKNOWN)

    def _wait_for_interfaces(self, name: str, query: dict[str, str]) -> list[Vmi]:
        deadline = time.monotonic() + float(query.get("wait", 0))
        with self._changed:
            while not (vmis := self._interfaces_of_pod(name, query.get("uid"))) and not self._closing.is_set():
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return []
                self._changed.wait(remaining)
        return vmis

    def _interfaces_of_pod(self, name: str, uid: str | None) -> list[Vmi]:
        return [vmi for vmi in self.virtual_machines.get(name, []) if uid in (None, vmi.vm_uuid)]

    def _free(self, machine: str, interface: str | None, container: str) -> None:
        for uuid_, port in list(self.ports.items()):
            if port["vm-uuid"] == machine and port["vm-id"] == container and interface in (None, uuid_):
                del self.ports[uuid_]


class VrouterAgent(ScriptedAgent):
    """As upstream ships it: no query, no arrays, no owners, addresses of plugged ports only, in uuid order.

    It is no more helpful than the original: a VM's ports are served all or not at all, and a port that is plugged keeps
    its device until it is deleted. See `_VrouterHandler` for its HTTP.
    """

    @property
    def handler(self) -> "type[_Handler]":
        """HTTP as the original speaks it."""
        return _VrouterHandler

    def default_reply(self, seen: ReceivedRequest) -> Reply:
        _, *words = seen.path.split("/")
        match seen.method, words:
            case "GET", ["vm-cfg", name]:
                vmis = sorted(self.virtual_machines.get(name, []), key=lambda vmi: vmi.uuid)
                return Reply(200, list(map(vrouter_agent_item, vmis))) if vmis else Reply(404, _MISSING)
            case "POST", ["vm"]:
                if not isinstance(seen.body, dict):
                    return Reply(500, {"error": f"{{ Unexpected Json string ==> {json.dumps(seen.body)} }}"})
                self._subscribe(seen.body)
                return Reply()
            case "GET", ["vm", vm_uuid, *interface]:
                return self._ports_reply(vm_uuid, interface)
            case "DELETE", ["vm", vm_uuid]:
                self.ports = {key: port for key, port in self.ports.items() if port["vm-uuid"] != vm_uuid}
                return Reply()
        return Reply(404, _UNKNOWN)

    def _subscribe(self, port: dict[str, str]) -> None:
        known = self.ports.get(port["vmi-uuid"])
        if known is None or known["vm-uuid"] != port["vm-uuid"]:
            self.ports[port["vmi-uuid"]] = port

    def _ports_reply(self, vm_uuid: str, interface: list[str]) -> Reply:
        asked = [
            vmi
            for vmis in self.virtual_machines.values()
            for vmi in vmis
            if vmi.vm_uuid == vm_uuid and interface in ([], [vmi.uuid])
        ]
        # A VLAN of a virtual machine is a port from the configuration alone, and has no device of its own.
        devices = {vmi.uuid: "tapnested.1" for vmi in asked if vmi.vlan != NO_VLAN}
        devices |= {uuid: port["host-ifname"] for uuid, port in self.ports.items()}
        if not asked or any(vmi.uuid not in devices for vmi in asked):
            return Reply(404, _MISSING)
        return Reply(200, [vrouter_agent_port(vmi, devices[vmi.uuid]) for vmi in asked])


def vrouter_agent_item(vmi: Vmi) -> dict[str, Any]:
    """An item of `/vm-cfg` as upstream writes it."""
    item: dict[str, Any] = {
        "id": vmi.uuid,
        "vm-uuid": vmi.vm_uuid,
        "vn-id": vmi.network,
        "vn-name": "default-domain:k8s-default:k8s-default-pod-network",
        "mac-address": vmi.mac,
        "sub-interface": False,
        "vlan-id": vmi.vlan,
    }
    if vmi.annotations:
        item["annotations"] = [f"{{{key}:{value}}}" for key, value in vmi.annotations.items()]
    return item


def node_agent_item(vmi: Vmi) -> dict[str, Any]:
    """An item of `/vm-cfg` as the node agent writes it."""
    return {
        **vrouter_agent_item(vmi),
        "mtu": vmi.mtu,
        "routes": list(vmi.routes),
        **_address_keys(vmi, v6_prefix_length=True),
        **vmi.datapath,
    }


def vrouter_agent_port(vmi: Vmi, device: str = "tap") -> dict[str, Any]:
    """An item of `/vm/<uuid>` as upstream writes it."""
    return {
        "id": vmi.uuid,
        "instance-id": vmi.vm_uuid,
        "vn-id": vmi.network,
        "vm-project-id": "00000000-0000-0000-0000-000000000000",
        "mac-address": vmi.mac,
        "system-name": device,
        "rx-vlan-id": 65535,
        "tx-vlan-id": 65535,
        "vhostuser-mode": 0,
        **_address_keys(vmi, v6_prefix_length=False),
        "author": "/usr/bin/contrail-vrouter-agent",
        "time": "426404:56:19.863169",
    }


def _address_keys(vmi: Vmi, *, v6_prefix_length: bool) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for subnet in vmi.subnets:
        keys[f"{subnet.prefix}ip-address"] = subnet.address
        if not subnet.prefix or v6_prefix_length:
            keys[f"{subnet.prefix}plen"] = subnet.prefix_length
        keys[f"{subnet.prefix}dns-server"] = subnet.dns
        if subnet.gateway:
            keys[f"{subnet.prefix}gateway"] = subnet.gateway
    return keys


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: Any, handler: type["_Handler"], answer: Callable[[ReceivedRequest], Reply]) -> None:
        self.address_family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        super().__init__(address, handler)
        self.answer = answer
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Closes the idle connections too, as an agent that ends."""
        super().server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # its client has closed it
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores connections of killed plugins."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_GET  # noqa: N815 - the base class calls these names

    def _answer(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.before_reply()
        query = dict(urllib.parse.parse_qsl(parts.query))
        seen = ReceivedRequest(self.command, parts.path, query, json.loads(content) if content else None)
        reply = self.server.answer(seen)
        body = reply.raw if reply.raw is not None else json.dumps(reply.document, indent=4).encode()
        self.send_response(reply.status, "OK")
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if reply.truncated else body)
        self.close_connection = reply.truncated or self.closes

    closes = True
    """Whether it closes the connection after each response."""

    def before_reply(self) -> None:
        """Called when a request has been read."""

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        """Logs nothing; tests read `ScriptedAgent.requests`."""


class _VrouterHandler(_Handler):
    """HTTP as the Contrail vrouter agent implements it.

    Connections stay open regardless of the header `Connection`. A request sent before the previous response is lost.
    Malformed requests are never answered.
    """

    closes = False

    def before_reply(self) -> None:
        self.connection.setblocking(False)
        while self.rfile.read1():
            pass
        self.connection.setblocking(True)

    def send_error(self, *_: object, **__: object) -> None:
        self.rfile.read()  # until the client gives up
        self.close_connection = True
