"""Writes each pod's network status: once, after its list of interfaces was written, in the background.

The pod is served without it, so nothing waits for it. What cannot be written now is tried again; what a killed manager
did not get to is found missing by the next one. A pod that is gone, or another one by now, needs none.

Who writes may be refused for a moment, while credentials rotate or a server comes up, so that is tried again, too, as
the reflector does. Rights that are missing for good are told by the cluster's readiness.
"""

import logging
from collections.abc import Callable

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import (
    KubeConfigurationError,
    KubeConflictError,
    KubeError,
    KubeForbiddenError,
    KubeInvalidError,
    KubeNotFoundError,
    KubeUnauthorizedError,
    KubeUnavailableError,
)
from contrail_config.objects import VirtualMachine
from manager.kubernetes.network_status import network_status
from manager.kubernetes.wire import PODS, STATUS_KEY, PodObject
from manager.work_queue import WorkQueue

log = logging.getLogger(__name__)

_AT_ONCE = 32

_PASSING = (
    KubeUnavailableError,
    KubeConflictError,
    KubeUnauthorizedError,
    KubeForbiddenError,
    KubeConfigurationError,  # a token that is just being rotated
)


class StatusWriter:
    """`pod_of` tells which pod a machine was made for, None if it went. Belongs to one event loop."""

    def __init__(self, client: KubeClient, *, pod_of: Callable[[VirtualMachine], PodObject | None]) -> None:
        self._client = client
        self._pod_of = pod_of
        self._due: dict[str, VirtualMachine] = {}
        self.queue = WorkQueue(self._write, limit=_AT_ONCE, passing=KubeError)

    def assigned(self, machine: VirtualMachine, *, anew: bool) -> None:
        """The pod has this list, as the store holds it: since now (`anew`), or since long ago."""
        pod = self._pod_of(machine)
        if pod is not None and (anew or not _has_status(pod)):
            self._due[machine.uuid] = machine
            self.queue.add(machine.uuid)

    async def close(self) -> None:
        """Finishes what was begun and begins no more."""
        await self.queue.close()

    async def _write(self, uuid: str) -> None:
        machine = self._due.get(uuid)
        if machine is None:
            return  # told again while it was written: that was this very machine
        if (pod := self._pod_of(machine)) is not None:
            await self._patch(pod, {STATUS_KEY: network_status(machine)})
        if self._due.get(uuid) is machine:
            del self._due[uuid]

    async def _patch(self, pod: PodObject, annotations: dict[str, str]) -> None:
        """Patches that very pod: the server refuses it for one of another uid."""
        namespace, name, uid = pod.metadata.namespace, pod.metadata.name, pod.metadata.uid
        patch = {"metadata": {"uid": uid, "annotations": annotations}}
        try:
            await self._client.patch(PODS, name, patch, namespace=namespace, subresource="status")
        except _PASSING:
            raise  # and tried again, unless the pod is another one by then
        except (KubeNotFoundError, KubeInvalidError) as error:
            log.debug("pod %s/%s is gone: %s", namespace, name, error)
        except KubeError as error:
            log.warning("network status of pod %s/%s is not written: %s", namespace, name, error)


def _has_status(pod: PodObject) -> bool:
    return pod.metadata.annotations is not None and pod.metadata.annotations.status is not None
