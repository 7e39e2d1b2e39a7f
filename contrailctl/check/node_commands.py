"""Runs `contrailctl check node` on nodes: in their pods by `kubectl exec`, or by a command of the operator.

So no process of the cluster gets a new right, and none takes orders from the network: the operator's own right to run
a command on a node is what is needed. Several nodes at a time, each with a deadline.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

import msgspec

from contrailctl.check.findings import Checked, Fault, Finding

CONCURRENT = 16
_MAX_QUOTED = 200  # characters of an error
_NOT_RUN = "see whether the command runs by hand; contrailctl check node, as root on the node, does the same"


async def check_nodes(commands: Mapping[str, Sequence[str]], *, limit: float) -> list[Checked]:
    """Runs the command of each node, `limit` seconds at most; a node that cannot be checked is a finding."""
    slots = asyncio.Semaphore(CONCURRENT)

    async def check(node: str, command: Sequence[str]) -> Checked:
        async with slots:
            return await _check(node, command, limit)

    return list(await asyncio.gather(*(check(node, command) for node, command in commands.items())))


def command_of(template: Sequence[str], node: str, *, probes: bool) -> list[str]:
    """Returns the command for a node; `template` are the words of one that runs contrailctl on the node `{node}`."""
    return [word.replace("{node}", node) for word in template] + _arguments(node, probes=probes)


def kubectl_command(node: str, pod: str, namespace: str, *, probes: bool, client: Sequence[str] = ()) -> list[str]:
    """Returns the command that runs in the daemon's container; `client` are options of kubectl."""
    execute = ["kubectl", *client, "exec", "--namespace", namespace, pod, "--container", "cnid", "--"]
    config = ["--config", "/etc/contrail-node/cnid.yaml"]
    return [*execute, "contrailctl", *_arguments(node, probes=probes), *config]


def _arguments(node: str, *, probes: bool) -> list[str]:
    return ["check", "node", "--node-name", node, "--output", "json", *([] if probes else ["--no-probes"])]


async def _check(node: str, command: Sequence[str], limit: float) -> Checked:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return _unchecked(node, f"{command[0]}: {error.strerror}")
    try:
        async with asyncio.timeout(limit):
            out, err = await process.communicate()
    except TimeoutError:
        return _unchecked(node, f"{command[0]}: timed out after {limit:g} s")
    finally:
        if process.returncode is None:  # timed out, or this process is interrupted
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        return msgspec.json.decode(out, type=Checked)
    except msgspec.DecodeError:
        text = " ".join((err or out).decode(errors="replace").split())
        return _unchecked(node, f"{command[0]}: exit status {process.returncode}: {text[:_MAX_QUOTED]}")


def _unchecked(node: str, why: str) -> Checked:
    finding = Finding(node, "", Fault.UNCHECKED, "kernel of the node", why, advice=_NOT_RUN)
    return Checked((node,), 0, (finding,))
