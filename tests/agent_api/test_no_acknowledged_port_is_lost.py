"""An agent that is killed in the middle of its work: what it acknowledged is there when the next one starts."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import uuid
from pathlib import Path

import aiohttp
import pytest

from agent_api.ports.directory import PortDirectory
from tests.support.agent import DEADLINE, port_of
from tests.support.machines import SAMPLE_VN

CLIENTS = 8
ENOUGH = 100  # acknowledgements before the kill


class Acknowledged:
    """What each client was told: an interface whose last request got no answer may be there or not."""

    def __init__(self) -> None:
        self.plugged: set[str] = set()
        self.freed: set[str] = set()
        self.enough = asyncio.Event()

    def count(self) -> None:
        if len(self.plugged) + len(self.freed) >= ENOUGH:
            self.enough.set()


async def plug_and_free(client: aiohttp.ClientSession, told: Acknowledged) -> None:
    """Plugs pod after pod, and frees every other one, until the agent is gone."""
    with contextlib.suppress(aiohttp.ClientError):
        for number in itertools.count():
            vm_uuid, *vmi_uuids = (str(uuid.uuid4()) for _ in range(4))
            name = f"k8s__default__{vm_uuid}"
            ports = [port_of(vm_uuid, vmi_uuid, vn_uuid=SAMPLE_VN, vm_name=name) for vmi_uuid in vmi_uuids]
            async with client.post("/vm", json=ports) as answer:
                assert answer.status == 200
            told.plugged.update(vmi_uuids)
            told.count()
            if number % 2:
                told.plugged.difference_update(vmi_uuids)
                async with client.delete(f"/vm/{vm_uuid}") as answer:
                    assert answer.status == 200
                told.freed.update(vmi_uuids)


async def start_agent(folder: Path) -> tuple[asyncio.subprocess.Process, str]:
    """Starts an agent in a process of its own, and returns its socket once it listens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent_api.agent_process", str(folder), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE):
        socket = await process.stdout.readline()
    return process, socket.decode().strip()


@pytest.mark.parametrize("round_", range(3))
async def test_after_a_kill_under_load(tmp_path: Path, round_: int) -> None:
    process, socket = await start_agent(tmp_path)
    told = Acknowledged()
    connector = aiohttp.UnixConnector(socket, limit=CLIENTS)
    async with aiohttp.ClientSession("http://agent", connector=connector) as client:
        clients = [asyncio.create_task(plug_and_free(client, told)) for _ in range(CLIENTS)]
        async with asyncio.timeout(30):
            await told.enough.wait()
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()
            await asyncio.gather(*clients)
    kept = {port.vmi_uuid for port in await asyncio.to_thread(PortDirectory(str(tmp_path / "ports")).load)}
    assert told.plugged <= kept
    assert not told.freed & kept
    assert not (tmp_path / "ports" / "corrupt").exists()
