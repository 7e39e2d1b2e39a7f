"""Take-over of pods that Contrail's kube-manager wrote: they become virtual machines of ours, with all that they have.

Only annotations are written, so vrouter agents notice nothing. Those of a pod's addresses come first, and that which
makes its virtual machine ours last: after a kill, the next start continues. Nothing is written unless all pods of the
cluster can be taken over.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from contrail_config.errors import StoreError
from contrail_config.objects import VirtualMachine
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.mapping import addresses, machines, networks
from contrail_config.vnc.mapping.routers import KIND as ROUTER
from contrail_config.vnc.mapping.upstream_pods import INTERFACE_FIELDS, UpstreamObjects, group, upstream_pod
from contrail_config.vnc.store_errors import as_store_error

log = logging.getLogger(__name__)

MAX_PARALLEL: Final = 16
"""Pods that are written at the same time."""

_MAX_NAMED: Final = 3


StaticPods = Callable[[], Awaitable[Collection[str]]]
"""Returns the uids of pods that the writer knows by another uuid, so that it would delete what is taken over."""


async def no_static_pods() -> Collection[str]:
    """There are none."""
    return ()


class Takeover:
    """Takes over the pods of one cluster, when a writer starts and before it reads anything else."""

    def __init__(self, client: VncClient, cluster: str, static_pods: StaticPods = no_static_pods) -> None:
        self._client = client
        self._cluster = cluster
        self._static_pods = static_pods

    async def run(self) -> None:
        """Takes over all pods of other programs. Raises StoreError, having written nothing, if one cannot be."""
        with as_store_error("take-over of pods"):
            listed = await self._client.list_all(machines.KIND, fields=machines.FIELDS)
            foreign = [item for item in listed if machines.is_of_another_program(item, self._cluster)]
            if not foreign:
                return
            log.info("pods to take over from another program: %d", len(foreign))
            objects = await self._read()
            pods = _mapped(foreign, objects, await self._static_pods())
            for start in range(0, len(pods), MAX_PARALLEL):
                await self._write_all(pods[start : start + MAX_PARALLEL], objects)
            log.info("pods taken over: %d", len(pods))

    async def _read(self) -> UpstreamObjects:
        return group(
            await self._client.list_all(machines.INTERFACE, fields=INTERFACE_FIELDS),
            await self._client.list_all(addresses.KIND, fields=addresses.FIELDS),
            networks=await self._client.list_all(networks.KIND, fields=networks.FIELDS),
            ipams=await self._client.list_all(networks.IPAM, fields=networks.IPAM_FIELDS),
            routers=await self._client.list_all(ROUTER, fields=["virtual_machine_refs"]),
        )

    async def _write_all(self, pods: Iterable[VirtualMachine], objects: UpstreamObjects) -> None:
        outcomes = await asyncio.gather(*(self._write(pod, objects) for pod in pods), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _write(self, pod: VirtualMachine, objects: UpstreamObjects) -> None:
        with contextlib.suppress(VncNotFoundError):  # deleted meanwhile; the caller refuses to start if that is half
            for uuid, interface in objects.addresses_of(pod):
                await self._client.set_annotations(uuid, addresses.owner_annotations(interface, self._cluster))
            await self._client.set_annotations(pod.uuid, machines.takeover_annotations(pod))


def _mapped(
    items: Iterable[Mapping[str, Any]], objects: UpstreamObjects, static_pods: Collection[str]
) -> list[VirtualMachine]:
    """Returns the pods as virtual machines of ours. Raises StoreError, which names those that cannot be."""
    pods, problems = [], []
    for item in items:
        name = item["fq_name"][-1]
        if item["uuid"] in static_pods:
            problems.append(f"{name}: is a static pod")
            continue
        try:
            pods.append(upstream_pod(item, objects))
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise StoreError(_describe(problems))
    return pods


def _describe(problems: Sequence[str]) -> str:
    named = "; ".join(sorted(problems)[:_MAX_NAMED])
    more = f"; and {len(problems) - _MAX_NAMED} more" if len(problems) > _MAX_NAMED else ""
    return (
        f"Contrail API server: pods that another program wrote cannot be taken over ({named}{more}): delete them"
        " while that program runs, then stop it and start again"
    )
