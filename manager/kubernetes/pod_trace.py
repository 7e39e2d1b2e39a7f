"""Time line of a pod's start for the API: from the API server, whenever somebody asks.

The manager's own cache of pods has no times, which would take as much memory as the rest of it. It may list pods, but
not get them, so it lists those of one name. Two time lines are read at a time: pages that show many pods must not take
the requests that assign interfaces need.
"""

import asyncio
import re
from datetime import UTC, datetime
from typing import Final

from contrail_config.kube.client import KubeClient
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.pod_moments import find_virtual_machine, lacks_sandbox, moments_of, written_at
from contrail_config.kubernetes.pods import PODS, Pod
from contrail_config.pod_timeline import longest_step, steps
from manager.api.types import PodTrace

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


AT_ONCE: Final = 2
"""Time lines that are read at the same time."""


class PodTraces:
    """Reads time lines of pods."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._reads = asyncio.Semaphore(AT_ONCE)

    async def read(self, namespace: str, name: str) -> PodTrace | None:
        """Returns the time line of a pod, None if it does not exist. Raises StoreError."""
        if not (_NAME.fullmatch(namespace) and _NAME.fullmatch(name)):
            return None  # nor could a selector hold any text
        async with self._reads:
            return await _read(self._client, namespace, name)


async def _read(client: KubeClient, namespace: str, name: str) -> PodTrace | None:
    with as_store_error(f"pod {namespace}/{name}"):
        pod = await _find(client, namespace, name)
        if pod is None:
            return None
        machine = await find_virtual_machine(client, pod)
        written = await written_at(client, pod, machine)
    now = datetime.now(UTC)
    pending = machine.pending if machine is not None and lacks_sandbox(pod) else None
    problem = f"{pending.reason}: {pending.message}" if pending is not None else ""
    found = steps(moments_of(pod, written=written, now=now), (), problem=problem)
    return PodTrace(
        namespace=namespace,
        name=name,
        uid=pod.metadata.uid,
        node=pod.spec.node_name,
        phase=pod.status.phase,
        steps=tuple(found),
        longest=longest_step(found, now=now),
    )


async def _find(client: KubeClient, namespace: str, name: str) -> Pod | None:
    found = await client.list_each(PODS, Selector(namespace=namespace, fields=f"metadata.name={name}"))
    return next((each for each in found if isinstance(each, Pod)), None)
