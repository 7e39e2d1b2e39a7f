"""`contrailctl get ports`: a pod's plugged interfaces, from the node agent or a Contrail vrouter agent."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.support.contrailctl_command import Run
from tests.support.fake_apis import served
from tests.support.served_agent import serve_agent
from tests.support.virtual_machines import make_virtual_machine

VM = "aaaaaaaa-0000-4000-8000-000000000001"
VMIS = ("159b591c-e57e-11f1-b951-02fc00000001", "159b591c-e57e-11f1-b951-02fc00000002")


def _ports(machine: VirtualMachine) -> list[dict[str, str]]:
    return [
        {
            "vm-uuid": machine.uuid,
            "vmi-uuid": interface.uuid,
            "vn-uuid": interface.network_uuid,
            "vm-name": machine.name,
            "host-ifname": f"tap{index}",
        }
        for index, interface in enumerate(machine.interfaces)
    ]


def _rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


async def test_the_node_agent_returns_devices_and_addresses(contrailctl: Run, tmp_path: Path) -> None:
    machine = make_virtual_machine("web")
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        await store.put_virtual_machine(machine)
        async with serve_agent(store, tmp_path) as agent:
            async with agent.tcp.get(f"/vm-cfg/{machine.name}", params={"wait": "5"}) as answer:
                assert answer.status == 200
            async with agent.tcp.post("/vm", json=_ports(machine)) as answer:
                assert answer.status == 200
            ended = await contrailctl("--agent", f"http://{agent.address}", "get", "ports", "-n", "default", "web")
    finally:
        await store.close()
    header, *rows = _rows(ended.out)
    assert header == ["NAMESPACE", "POD", "INDEX", "NAME", "DEVICE", "ADDRESSES", "MAC"]
    assert rows == [
        [
            *("default", "web", str(index), f"eth{index}", f"tap{index}"),
            ",".join(f"{address.address}/{address.prefix_length}" for address in interface.addresses),
            interface.mac,
        ]
        for index, interface in enumerate(machine.interfaces)
    ]


@pytest.mark.parametrize(
    "command", [("get", "ports", "-n", "default", "web"), ("get", "interfaces", "-n", "default", "web")]
)
async def test_interfaces_have_the_names_that_the_meta_plugin_chose(
    contrailctl: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    machine = make_virtual_machine("web")
    names = [f"net{7 - index}" for index in range(len(machine.interfaces))]
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        await store.put_virtual_machine(machine)
        async with serve_agent(store, tmp_path) as agent:
            async with agent.tcp.get(f"/vm-cfg/{machine.name}", params={"wait": "5"}) as answer:
                assert answer.status == 200
            ports = [port | {"vm-ifname": name} for port, name in zip(_ports(machine), names, strict=True)]
            async with agent.tcp.post("/vm", json=ports) as answer:
                assert answer.status == 200
            url = f"http://{agent.address}"
            ended = await contrailctl("--agent", url, *command)
            described = await contrailctl("--agent", url, "describe", "pod", "default/web")
    finally:
        await store.close()
    header, *rows = _rows(ended.out)
    assert [row[header.index("NAME")] for row in rows] == names
    assert all(f"  {name}:\n" in described.out for name in names)


def _vrouter_agent_routes(*plugged: str) -> list[web.RouteDef]:
    """A Contrail vrouter agent's routes of one pod: no addresses in `/vm-cfg`, items sorted by uuid."""

    async def configured(_request: web.Request) -> web.Response:
        common = {"vm-uuid": VM, "vn-id": "n", "vn-name": "d:p:blue", "mac-address": "02:00:00:00:00:01"}
        return web.json_response(
            [common | {"id": vmi, "annotations": [f"{{index:{index}/2}}"]} for index, vmi in enumerate(VMIS)]
        )

    async def port(request: web.Request) -> web.Response:
        vmi = request.match_info["vmi"]
        if vmi not in plugged:
            return web.json_response({"error": "{ Not Found }"}, status=404)
        item: dict[str, Any] = {"id": vmi, "instance-id": VM, "system-name": "tapeth0-aaaaaa"}
        item |= {"mac-address": "02:00:00:00:00:01", "ip-address": "10.47.255.251", "plen": 12}
        return web.json_response([item | {"v6-ip-address": "fd00::5"}])

    return [web.get("/vm-cfg/k8s__shop__web", configured), web.get(f"/vm/{VM}/{{vmi}}", port)]


async def test_a_vrouter_agent_is_supported(contrailctl: Run) -> None:
    async with served(_vrouter_agent_routes(VMIS[0])) as vrouter_agent:
        ended = await contrailctl("--agent", vrouter_agent, "get", "ports", "-n", "shop", "web")
    addresses = "10.47.255.251/12,fd00::5/64"
    assert _rows(ended.out)[1:] == [["shop", "web", "0", "eth0", "tapeth0-aaaaaa", addresses, "02:00:00:00:00:01"]]


async def test_a_pod_without_plugged_ports_is_a_failure(contrailctl: Run) -> None:
    async with served(_vrouter_agent_routes()) as vrouter_agent:
        ended = await contrailctl("--agent", vrouter_agent, "get", "ports", "-n", "shop", "web")
    assert (ended.status, ended.err) == (1, "contrailctl: plugged port of pod shop/web not found\n")


@pytest.mark.parametrize("argv", [[], ["web"], ["-n", "shop"]])
async def test_namespace_and_name_are_required(contrailctl: Run, argv: list[str]) -> None:
    ended = await contrailctl("--agent", "http://127.0.0.1:1", "get", "ports", *argv)
    assert ended.status == 2
    assert ended.err == "contrailctl: an agent serves one pod per request: use -n NAMESPACE and the pod's name\n"
