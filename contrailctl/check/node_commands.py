"""Runs `contrailctl check node` on nodes: in their pods by `kubectl exec`, or by a command of the operator.

So no process of the cluster gets a new right, and none takes orders from the network: the operator's own right to run
a command on a node is what is needed. Several nodes at a time, each with a deadline.
"""

import asyncio
from collections.abc import Mapping, Sequence

from contrailctl.check.commands import CONCURRENT, CommandError, answer_of, kubectl_exec
from contrailctl.check.findings import Checked, Fault, Finding

CNID_CONTAINER = "cnid"
"""Container of the daemon in a contrail-node pod."""

_NOT_RUN = "see whether the command runs by hand; contrailctl check node, as root on the node, does the same"


async def check_nodes(commands: Mapping[str, Sequence[str]], *, limit: float) -> list[Checked]:
    """Runs the command of each node, `limit` seconds at most; a node that cannot be checked is a finding."""
    slots = asyncio.Semaphore(CONCURRENT)

    async def check(node: str, command: Sequence[str]) -> Checked:
        async with slots:
            try:
                return await answer_of(command, Checked, limit=limit)
            except CommandError as error:
                return _unchecked(node, str(error))

    return list(await asyncio.gather(*(check(node, command) for node, command in commands.items())))


def command_of(template: Sequence[str], node: str, *, probes: bool) -> list[str]:
    """Returns the command for a node; `template` are the words of one that runs contrailctl on the node `{node}`."""
    return [word.replace("{node}", node) for word in template] + _arguments(node, probes=probes)


def kubectl_command(node: str, pod: str, namespace: str, *, probes: bool, client: Sequence[str] = ()) -> list[str]:
    """Returns the command that runs in the daemon's container; `client` are options of kubectl."""
    config = ["--config", "/etc/contrail-node/cnid.yaml"]
    return [
        *kubectl_exec(client, namespace, pod, CNID_CONTAINER),
        "contrailctl",
        *_arguments(node, probes=probes),
        *config,
    ]


def _arguments(node: str, *, probes: bool) -> list[str]:
    return ["check", "node", "--node-name", node, "--output", "json", *([] if probes else ["--no-probes"])]


def _unchecked(node: str, why: str) -> Checked:
    finding = Finding(node, "", Fault.UNCHECKED, "kernel of the node", why, advice=_NOT_RUN)
    return Checked((node,), 0, (finding,))
