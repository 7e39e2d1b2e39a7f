"""Upstream's own client, as PyPI has it, runs against the double."""

import asyncio
import json
import sys
from pathlib import Path

import tests.support
from tests.support.contrail_api.server import ContrailApi

PROGRAM = Path(next(iter(tests.support.__path__))) / "upstream_vnc_client.py"


async def test_it_creates_reads_lists_refers_and_deletes_the_objects_of_a_pod(double: ContrailApi) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        str(double.port),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(50):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-3000:]
    assert json.loads(output) == {
        "uuid": "0a000000-0000-4000-8000-000000000001",
        "address": "10.10.0.252",
        "annotations": {"index": "0/1"},
        "interfaces": ["web__0"],
        "detailed": ["default-domain:k8s-shop:k8s-blue-pod-network"],
        "refused": True,
        "gone": True,
    }
