"""Writes each pod's network status: once, after its list of interfaces was written, in the background.

The pod works without it, so nothing waits for it. A failed write is retried; one that a killed manager did not reach is
found missing by the next manager. A pod that is gone or replaced needs none.

Requests may be denied for a moment, while credentials rotate or a server starts, so that is retried too, as in the
reflector. Permissions that are missing for good are reported by the cluster's readiness.
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
from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import VirtualMachine
from manager.kubernetes.network_status import network_status
from manager.kubernetes.wire import PODS, STATUS_KEY, PodObject

log = logging.getLogger(__name__)

_CONCURRENCY = 32

_TRANSIENT = (
    KubeUnavailableError,
    KubeConflictError,
    KubeUnauthorizedError,
    KubeForbiddenError,
    KubeConfigurationError,  # a token file during its rotation
)


class StatusWriter:
    """`pod_of` returns the pod of a virtual machine, None if it is gone. Belongs to one event loop."""

    def __init__(self, client: KubeClient, *, pod_of: Callable[[VirtualMachine], PodObject | None]) -> None:
        self._client = client
        self._pod_of = pod_of
        self._due: dict[str, VirtualMachine] = {}
        self.queue = WorkQueue(self._write, limit=_CONCURRENCY, transient=KubeError)

    def on_assigned(self, vm: VirtualMachine, *, is_new: bool) -> None:
        """Queues the pod's status, if its list was written just now (`is_new`) or it has no status."""
        pod = self._pod_of(vm)
        if pod is not None and (is_new or not _has_status(pod)):
            self._due[vm.uuid] = vm
            self.queue.add(vm.uuid)

    async def close(self) -> None:
        """Finishes the work in progress and starts no more."""
        await self.queue.close()

    async def _write(self, uuid: str) -> None:
        vm = self._due.get(uuid)
        if vm is None:
            return  # queued again during its write, which has written this very state
        if (pod := self._pod_of(vm)) is not None:
            await self._patch(pod, {STATUS_KEY: network_status(vm)})
        # Another state may have been queued during the write: that one stays due.
        if self._due.get(uuid) is vm:
            del self._due[uuid]

    async def _patch(self, pod: PodObject, annotations: dict[str, str]) -> None:
        """Patches exactly this pod: the server rejects the patch if the uid differs."""
        namespace, name, uid = pod.metadata.namespace, pod.metadata.name, pod.metadata.uid
        patch = {"metadata": {"uid": uid, "annotations": annotations}}
        try:
            await self._client.patch(PODS, name, patch, namespace=namespace, subresource="status")
        except _TRANSIENT:
            raise  # retried, unless the pod is replaced by then
        except (KubeNotFoundError, KubeInvalidError) as error:
            log.debug("pod %s/%s: gone: %s", namespace, name, error)
        except KubeError as error:
            log.warning("pod %s/%s: network status not written: %s", namespace, name, error)


def _has_status(pod: PodObject) -> bool:
    return pod.metadata.annotations is not None and pod.metadata.annotations.status is not None
