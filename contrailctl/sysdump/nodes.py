"""Nodes of a dump: what agent and daemon serve about themselves, and what is wrong in their kernels."""

import asyncio
import re
from collections.abc import Mapping, Sequence

import msgspec

from contrail_config.kubernetes.pods import Pod
from contrailctl.check.commands import CommandError, answer_of, kubectl_exec
from contrailctl.check.findings import Checked
from contrailctl.check.node_commands import kubectl_command
from contrailctl.cluster.objects import DAEMON_CONTAINER
from contrailctl.sysdump.archive import DumpFolder
from contrailctl.sysdump.node_pages import NodePages
from contrailctl.sysdump.redaction import redacted, redacted_text

_CONCURRENT = 8
_TIMEOUT = 60.0  # seconds for each command
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_MAX_QUOTED = 64


async def dump_nodes(
    pods: Mapping[str, Pod], folder: DumpFolder, *, kubectl: Sequence[str], limit: float | None
) -> None:
    """Runs commands in the contrail-node pods, which are by node; what fails is a problem of the folder.

    `kubectl` are options of that command, `limit` seconds for each.
    """
    slots = asyncio.Semaphore(_CONCURRENT)

    async def dump(node: str, pod: Pod) -> None:
        async with slots:
            await _dump_pages(node, pod, folder, kubectl, limit or _TIMEOUT)
            await _dump_check(node, pod, folder, kubectl, limit or _TIMEOUT)

    await asyncio.gather(*(dump(node, pod) for node, pod in pods.items()))


async def _dump_pages(node: str, pod: Pod, folder: DumpFolder, kubectl: Sequence[str], limit: float) -> None:
    execute = kubectl_exec(kubectl, pod.metadata.namespace, pod.metadata.name, DAEMON_CONTAINER)
    try:
        found = await answer_of([*execute, "contrailctl", "node-pages", "--output", "json"], NodePages, limit=limit)
    except CommandError as error:
        folder.problems.append(f"nodes/{node}: {error}")
        return
    for name, text in found.pages.items():
        if _FILE_NAME.fullmatch(name):  # a damaged node writes to its own folder only
            folder.write(f"nodes/{node}/{name}", redacted_text(text))
        else:
            folder.problems.append(f"nodes/{node}: page {name[:_MAX_QUOTED]!r}: not the name of a file")
    folder.problems.extend(f"nodes/{node}: {problem}" for problem in found.problems)


async def _dump_check(node: str, pod: Pod, folder: DumpFolder, kubectl: Sequence[str], limit: float) -> None:
    command = kubectl_command(node, pod.metadata.name, pod.metadata.namespace, probes=False, client=kubectl)
    try:
        checked = await answer_of(command, Checked, limit=limit)
    except CommandError as error:
        folder.problems.append(f"nodes/{node}/check.json: {error}")
        return
    document = redacted(msgspec.to_builtins(checked))
    folder.write(f"nodes/{node}/check.json", msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
