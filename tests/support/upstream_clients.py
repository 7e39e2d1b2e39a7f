"""Clients of the Contrail vrouter agent other than the CNI plugin: their requests, files and handling of responses.

They check only whether the status is 200, never the reason or the error text.
"""

import http.client
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass
class HttpClient:
    """Sends requests as these clients' HTTP library does."""

    address: tuple[str, int]
    statuses: list[int] = field(default_factory=list)

    def request(self, method: str, path: str, body: str = "") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self.address)
        headers = {
            "User-Agent": "python-requests/2.20.0",
            "Accept-Encoding": "gzip, deflate",
            "Accept": "*/*",
            "Connection": "keep-alive",
            "content-type": "application/json",
            **({} if method == "GET" else {"Content-Length": str(len(body))}),
        }
        try:
            connection.request(method, path, body=body or None, headers=headers)
            answer = connection.getresponse()
            self.statuses.append(answer.status)
            return answer.status, answer.read()
        finally:
            connection.close()


@dataclass
class PortControl:
    """`vrouter-port-control`, which nova's driver calls; each call returns its exit status."""

    http: HttpClient
    ports_dir: Path

    def add(self, vmi_uuid: str, vm_uuid: str, **options: Any) -> int:
        """`--oper=add`: writes the port's file, then notifies the agent."""
        port = self._port(vmi_uuid, vm_uuid, **options)
        self._file(vmi_uuid).write_text(json.dumps(port, skipkeys=True))
        status, _ = self.http.request("POST", "/port", json.dumps(port))
        return 0 if status == 200 else 4

    def delete(self, vmi_uuid: str) -> int:
        """`--oper=delete`."""
        self._file(vmi_uuid).unlink(missing_ok=True)
        return self._notify("DELETE", f"/port/{vmi_uuid}")

    def enable(self, vmi_uuid: str) -> int:
        """`--oper=enable`: changes the port's file, then notifies the agent."""
        port = json.loads(self._file(vmi_uuid).read_text())
        if port["type"] == 2:
            self._file(vmi_uuid).write_text(json.dumps(port | {"link-state": 1}))
        return self._notify("PUT", f"/enable-port/{vmi_uuid}")

    def disable(self, vmi_uuid: str) -> int:
        """`--oper=disable`: changes the port's file, then notifies the agent."""
        port = json.loads(self._file(vmi_uuid).read_text())
        if port["type"] == 2 and port.pop("link-state", None) is not None:
            self._file(vmi_uuid).write_text(json.dumps(port))
        return self._notify("PUT", f"/disable-port/{vmi_uuid}")

    def _notify(self, method: str, path: str) -> int:
        status, _ = self.http.request(method, path)
        return 0 if status == 200 else 1

    def _file(self, vmi_uuid: str) -> Path:
        return self.ports_dir / vmi_uuid

    def _port(self, vmi_uuid: str, vm_uuid: str, *, project: str = "", kind: int = 0, **other: Any) -> Json:
        """A project is sent only if it has 32 digits, otherwise as an empty string."""
        digits = (project[:8], project[8:12], project[12:16], project[16:20], project[20:])
        return {
            "id": vmi_uuid,
            "instance-id": vm_uuid,
            "ip-address": "0.0.0.0",
            "ip6-address": "",
            "vn-id": "773d9c45-2a91-4829-ad2f-7f70a7bb2b67",
            "display-name": "vm1",
            "vm-project-id": "-".join(digits) if len(project) == 32 else "",
            "mac-address": "02:1a:f4:be:e3:04",
            "system-name": "tap1af4bee3-04",
            "type": kind,
            "rx-vlan-id": -1,
            "tx-vlan-id": -1,
            "vhostuser-mode": 0,
            "author": "/usr/bin/vrouter-port-control",
            "time": "2018-08-23 10:56:19.863169",
            **{key.replace("_", "-"): value for key, value in other.items()},
        }


@dataclass
class VcenterManager:
    """The vCenter manager: ports of ESXi hosts, which have a VLAN and no local device."""

    http: HttpClient

    def resynchronize(self, ports: Sequence[tuple[str, str, int]]) -> None:
        """After a restart: announces it and posts all ports (interface, virtual machine, VLAN) again."""
        self.http.request("POST", "/syncports")
        for vmi_uuid, vm_uuid, vlan in ports:
            self.add_port(vmi_uuid, vm_uuid, vlan)

    def add_port(self, vmi_uuid: str, vm_uuid: str, vlan: int) -> bool:
        port = {
            "id": vmi_uuid,
            "instance-id": vm_uuid,
            "display-name": "vm 1",
            "ip-address": "11.0.0.11",
            "ip6-address": "::",
            "vn-id": "773d9c45-2a91-4829-ad2f-7f70a7bb2b67",
            "vm-project-id": "cb33cc2c-6fb8-4072-a112-77547c60d2b7",
            "mac-address": "00:50:56:be:e3:04",
            "system-name": vmi_uuid,
            "type": 2,
            "rx-vlan-id": vlan,
            "tx-vlan-id": vlan,
            "vhostuser-mode": 0,
            "link-state": 0,
            "author": "contrail-vcenter-manager",
            "time": "2018-08-23 10:56:19.863169",
        }
        return self.http.request("POST", "/port", json.dumps(port))[0] == 200

    def delete_port(self, vmi_uuid: str) -> bool:
        return self.http.request("DELETE", f"/port/{vmi_uuid}")[0] == 200

    def enable_port(self, vmi_uuid: str) -> bool:
        return self.http.request("PUT", f"/enable-port/{vmi_uuid}")[0] == 200

    def disable_port(self, vmi_uuid: str) -> bool:
        return self.http.request("PUT", f"/disable-port/{vmi_uuid}")[0] == 200

    def read_port(self, vmi_uuid: str) -> Json | None:
        status, body = self.http.request("GET", f"/port/{vmi_uuid}")
        if status != 200:
            return None
        port: Json = json.loads(body)
        return port


@dataclass
class GatewayScript:
    """The script that provisions simple gateways; it builds JSON bodies by string concatenation."""

    http: HttpClient

    def create(self, interface: str, vrf: str, subnets: Sequence[str], routes: Sequence[str]) -> bool:
        body = (
            f'[{{"interface":"{interface}", "routing-instance":"{vrf}", '
            f'"subnets":[{_concatenated(subnets)}], "routes":[{_concatenated(routes)}]}}]'
        )
        return self.http.request("POST", "/gateway", body)[0] == 200

    def delete(self, interface: str) -> bool:
        return self.http.request("DELETE", "/gateway", f'[{{"interface":"{interface}"}}]')[0] == 200


def _concatenated(subnets: Sequence[str]) -> str:
    pairs = [ipaddress.IPv4Interface(subnet) for subnet in subnets]
    return ",".join(f'{{"ip-address":"{pair.ip}", "prefix-len":{pair.network.prefixlen}}}' for pair in pairs)
