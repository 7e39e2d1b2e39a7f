"""Writes each pod's network status: once, after its list of interfaces was written, in the background.

The pod is served without it, so nothing waits for it. What cannot be written now is tried again; what a killed manager
did not get to is found missing by the next one. A pod that is gone, or another one by now, needs none.
"""

import logging
from collections.abc import Callable

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import (
    KubeConflictError,
    KubeError,
    KubeInvalidError,
    KubeNotFoundError,
    KubeUnavailableError,
)
from contrail_config.objects import VirtualMachine
from manager.controller.work_queue import WorkQueue
from manager.kubernetes.network_status import network_status
from manager.kubernetes.wire import PODS, STATUS_KEY

log = logging.getLogger(__name__)

_AT_ONCE = 32


class StatusWriter:
    """`has_status` tells whether a pod, by namespace and name, bears a status. Belongs to one event loop."""

    def __init__(self, client: KubeClient, *, has_status: Callable[[str, str], bool]) -> None:
        self._client = client
        self._has_status = has_status
        self._due: dict[str, VirtualMachine] = {}
        self.queue = WorkQueue(self._write, limit=_AT_ONCE, passing=KubeError)

    def assigned(self, machine: VirtualMachine, *, anew: bool) -> None:
        """The pod has this list, as the store holds it: since now (`anew`), or from before this manager's time."""
        if anew or not self._has_status(machine.namespace, machine.pod):
            self._due[machine.uuid] = machine
            self.queue.add(machine.uuid)

    async def close(self) -> None:
        """Finishes what was begun and begins no more."""
        await self.queue.close()

    async def _write(self, uid: str) -> None:
        machine = self._due[uid]
        annotations = {STATUS_KEY: network_status(machine)}
        patch = {"metadata": {"uid": uid, "annotations": annotations}}
        try:
            await self._client.patch(PODS, machine.pod, patch, namespace=machine.namespace, subresource="status")
        except (KubeUnavailableError, KubeConflictError):
            raise  # and tried again
        except (KubeNotFoundError, KubeInvalidError) as error:
            log.debug("pod %s/%s is gone: %s", machine.namespace, machine.pod, error)
        except KubeError as error:
            log.warning("network status of pod %s/%s is not written: %s", machine.namespace, machine.pod, error)
        self._due.pop(uid, None)
