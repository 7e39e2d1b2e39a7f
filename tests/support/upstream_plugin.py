"""The Contrail CNI plugin as agents and runtimes see it: its requests, retries, parsing and files.

It reproduces the defects that matter to an agent: it checks only the first item for the completeness of a list, retries
an incomplete list without a delay, ignores the result of a POST, decides by the files in a folder whether an attachment
belongs to another container, and releases all interfaces of a pod at once.
"""

import http.client
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.netns import Netns

Json = dict[str, Any]


class PluginError(Exception):
    """The call fails, with this message."""


@dataclass(frozen=True)
class Sandbox:
    """A container and its network namespace, as a runtime identifies them."""

    netns: Netns
    container: str
    pod: str = "p1"
    namespace: str = "default"

    @property
    def vm_name(self) -> str:
        return f"k8s__{self.namespace}__{self.pod}"


class Configured(NamedTuple):
    """An item of `/vm-cfg` as the plugin parses it."""

    item: Json
    annotations: dict[str, str]

    @property
    def position(self) -> int:
        return int(self.annotations["index"].split("/")[0])


@dataclass
class UpstreamPlugin:
    """The plugin on a node; `poll_timeout` in seconds. `asked` lists its requests."""

    address: tuple[str, int]
    node: Netns
    config_dir: Path
    poll_timeout: float = 0.05
    poll_retries: int = 20
    asked: list[str] = field(default_factory=list)

    def add(self, sandbox: Sandbox) -> Json:
        """ADD without a meta plugin: all interfaces; returns the result, that of eth0."""
        made = [self._create(sandbox, configured) for configured in self._poll_configured(sandbox)]
        results = self._configure(sandbox, dict(made), self._poll_plugged(made[0][1]["vm-uuid"]))
        return results["eth0"]

    def add_one(self, sandbox: Sandbox, *, network: str, ifname: str) -> Json:
        """ADD under a meta plugin: the interface in this network that does not exist yet."""
        for configured in self._poll_cached(sandbox):
            if configured.annotations["network"] == network and not self._state_file(sandbox, configured.item).exists():
                name, item = self._create(sandbox, configured, ifname=ifname)
                return self._configure(sandbox, {name: item}, self._poll_plugged(item["vm-uuid"], item["id"]))[name]
        raise PluginError("no interface")

    def delete(self, sandbox: Sandbox) -> None:
        """DEL: all interfaces of the pod, if they belong to this container."""
        folder = self.config_dir / sandbox.vm_name
        if not folder.exists():
            return
        states = [json.loads(file.read_text()) for file in folder.iterdir()]
        if any(state["vm-id"] != sandbox.container for state in states):
            return
        for state in states:
            # A link that does not exist is no error.
            self.node.run("ip", "link", "delete", _host_name(state["vm-ifname"], state["vm-uuid"]))
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        body = _message(states[0]["vm-uuid"], container=sandbox.container)
        self._ask("DELETE", f"/vm/{states[0]['vm-uuid']}", body)
        self._cache(sandbox).unlink(missing_ok=True)

    def _poll_configured(self, sandbox: Sandbox) -> list[Configured]:
        for _ in range(self.poll_retries):
            answer = self._get(f"/vm-cfg/{sandbox.vm_name}")
            if answer is None:
                time.sleep(self.poll_timeout)  # noqa: TID251 - as the Contrail plugin does
                continue
            configured = [Configured(item, read_annotations(item.get("annotations", []))) for item in answer]
            _, slash, count = configured[0].annotations.get("index", "").partition("/")
            if not slash:
                raise PluginError("")
            if int(count) == len(configured):
                return configured
        raise PluginError("Failed in PollVmCfg")

    def _poll_cached(self, sandbox: Sandbox) -> list[Configured]:
        cache = self._cache(sandbox)
        if not cache.exists():
            found = self._poll_configured(sandbox)
            cache.parent.mkdir(exist_ok=True)
            cache.write_text(json.dumps([configured.item for configured in found]))
        items = json.loads(cache.read_text())
        return [Configured(item, read_annotations(item["annotations"])) for item in items]

    def _poll_plugged(self, *uuids: str) -> dict[str, Json]:
        for _ in range(self.poll_retries):
            answer = self._get("/".join(["/vm", *uuids]))
            if answer is not None:
                return {item["id"]: item for item in answer}
            time.sleep(self.poll_timeout)  # noqa: TID251 - as the Contrail plugin does
        raise PluginError("Failed in PollVm")

    def _create(self, sandbox: Sandbox, configured: Configured, *, ifname: str = "") -> tuple[str, Json]:
        item = configured.item
        name = configured.annotations.get("interface") or ifname or f"eth{configured.position}"
        host = _host_name(name, item["vm-uuid"])
        peer = host.replace("tap", "tmp", 1)
        self.node.ip("link", "add", host, "type", "veth", "peer", "name", peer)
        self.node.ip("link", "set", peer, "netns", sandbox.netns.name)
        sandbox.netns.ip("link", "set", peer, "name", name, "up")
        self.node.ip("link", "set", host, "up")
        message = _message(
            item["vm-uuid"],
            container=sandbox.container,
            name=sandbox.vm_name,
            host=host,
            ifname=name,
            netns=sandbox.netns.path,
            vn_uuid=item["vn-id"],
            vmi_uuid=item["id"],
        )
        path = self._state_file(sandbox, item)
        if not path.parent.exists():
            os.mkdir(path.parent, 0o644)
        path.write_bytes(message)
        self._ask("POST", "/vm", message)
        return name, item

    def _configure(self, sandbox: Sandbox, made: dict[str, Json], plugged: dict[str, Json]) -> dict[str, Json]:
        results = {}
        for name, item in made.items():
            port = plugged[item["id"]]
            sandbox.netns.ip("link", "set", name, "address", port["mac-address"], "up")
            sandbox.netns.ip("address", "add", f"{port['ip-address']}/{port['plen']}", "dev", name)
            if name == "eth0":
                sandbox.netns.ip("route", "add", "default", "via", port["gateway"])
            results[name] = _result(name, port)
        return results

    def _get(self, path: str) -> list[Json] | None:
        """The response, None unless the status is 200."""
        status, body = self._ask("GET", path)
        if status != 200:
            return None
        answer: list[Json] = json.loads(body)
        return answer

    def _ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self.asked.append(f"{method} {path}")
        connection = http.client.HTTPConnection(*self.address)
        headers = {
            "User-Agent": "Go-http-client/1.1",
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip",
        }
        try:
            connection.request(method, path, body=body or None, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _state_file(self, sandbox: Sandbox, item: Json) -> Path:
        path: Path = self.config_dir / sandbox.vm_name / item["id"]
        return path

    def _cache(self, sandbox: Sandbox) -> Path:
        return self.config_dir.parent / "multus" / sandbox.vm_name


def read_annotations(annotations: list[str]) -> dict[str, str]:
    """Parses annotations as the plugin does, with the same failures.

    It strips the braces, splits at every colon, inserts the first two parts into a JSON text and parses that. An
    annotation without a colon crashes the plugin; one with a quote fails the call.
    """
    pairs = [entry.rstrip("}").lstrip("{").split(":") for entry in annotations]
    text = ",".join(f'"{pair[0]}":"{pair[1]}"' for pair in pairs)
    read: dict[str, str] = json.loads(f"{{{text}}}")
    return read


def _host_name(ifname: str, vm_uuid: str) -> str:
    return "tap" + f"{ifname}-{vm_uuid}"[:11]


def _message(
    vm_uuid: str,
    *,
    container: str,
    name: str = "",
    host: str = "",
    ifname: str = "",
    netns: str = "",
    vn_uuid: str = "",
    vmi_uuid: str = "",
) -> bytes:
    """The body of POST and DELETE, which is also the state file."""
    message = {
        "time": "2018-08-23 10:56:19.863169 +0000 UTC m=+0.005",
        "vm-id": container,
        "vm-uuid": vm_uuid,
        "vm-name": name,
        "host-ifname": host,
        "vm-ifname": ifname,
        "vm-namespace": netns,
        "vn-uuid": vn_uuid,
        "vmi-uuid": vmi_uuid,
        "vhostuser-mode": 0,
        "vhostsocket-dir": "",
        "vhostsocket-filename": "",
    }
    return json.dumps(message, indent="\t").encode()


def _result(name: str, port: Json) -> Json:
    gateway = port.get("gateway", "")
    return {
        "interfaces": [{"name": name, "mac": port["mac-address"]}],
        "ips": [{"version": "4", "address": f"{port['ip-address']}/{port['plen']}", "gateway": gateway}],
        "routes": [{"dst": "0.0.0.0/0", "gw": gateway}] if name == "eth0" else [],
        "dns": {"nameservers": [port["dns-server"]]},
    }
