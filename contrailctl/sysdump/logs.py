"""Logs of managers and node pods, the last lines of each container and of the one before its last restart."""

import asyncio
from collections.abc import Iterator, Sequence

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeError
from contrail_config.kubernetes.pods import PODS, Pod
from contrailctl.sysdump.archive import DumpFolder
from contrailctl.sysdump.redaction import redacted_text

_CONCURRENT = 8
_BOUNDS = {"tailLines": "10000", "limitBytes": str(4 << 20), "timestamps": "true"}


async def dump_logs(client: KubeClient, pods: Sequence[Pod], folder: DumpFolder) -> None:
    """Writes one file for each container that has a log; what cannot be read is a problem of the folder."""
    slots = asyncio.Semaphore(_CONCURRENT)

    async def dump(pod: Pod, container: str, *, previous: bool) -> None:
        async with slots:
            await _dump(client, pod, container, folder, previous=previous)

    await asyncio.gather(*(dump(pod, name, previous=previous) for pod in pods for name, previous in _containers(pod)))


def _containers(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Yields the containers that have begun, and whether it is the run before the last restart."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state.waiting is None:
            yield status.name, False
        if status.restart_count:
            yield status.name, True


async def _dump(client: KubeClient, pod: Pod, container: str, folder: DumpFolder, *, previous: bool) -> None:
    name = f"logs/{pod.metadata.name}/{container}{'.previous' if previous else ''}.log"
    query = {**_BOUNDS, "container": container, "previous": str(previous).lower()}
    try:
        text = await client.read(PODS, pod.metadata.name, "log", namespace=pod.metadata.namespace, query=query)
    except KubeError as error:
        folder.problems.append(f"{name}: {error}")
        return
    folder.write(name, redacted_text(text.decode(errors="replace")))
