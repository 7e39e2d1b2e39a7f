"""Requests for the ports of pods: an annotation of a virtual machine, which the agent of its node watches anyway.

A manager writes it when somebody looks at the ports of a pod. The agent answers in the report of its node while the
request is open, and withdraws the answer then. So agents need no listener, no further watch and no further rights, and
nothing is written while nobody looks.

Clocks of nodes are not trusted: a request is open for `OPEN` seconds after the agent has seen it first. An annotation
that stays on a virtual machine is a request again for an agent that starts, which its bounds permit.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.kinds import (
    GROUP,
    VIRTUAL_MACHINE_DOCUMENTS,
    VirtualMachineObject,
    virtual_machine_object,
)
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.objects import VirtualMachine

PORTS_REQUESTED: Final = f"{GROUP}/ports-requested"
"""Annotation of a virtual machine whose ports are requested: when, which tells requests apart."""

OPEN: Final = 120.0
"""Seconds for which an agent answers a request."""

MAX_ANSWERED: Final = 8
"""Virtual machines of a node that are answered at the same time, those that were requested last."""

MAX_REQUEST_LENGTH: Final = 64  # characters
_MAX_KNOWN: Final = 256

V = TypeVar("V")


def new_request() -> str:
    """Returns the value of a request."""
    return datetime.now(UTC).isoformat()


async def write_request(client: KubeClient, virtual_machine: VirtualMachine, request: str) -> None:
    """Requests the ports of a virtual machine. Needs the verbs get and update. Raises StoreError."""
    place = virtual_machine_object(virtual_machine).metadata
    what = f"virtual machine {virtual_machine.name}"
    with as_store_error(what):
        async for attempt in retry_on_conflict(what):
            with attempt:
                found = await client.get(VIRTUAL_MACHINE_DOCUMENTS, place.name, namespace=place.namespace)
                annotations = {**found.metadata.annotations, PORTS_REQUESTED: request}
                metadata = msgspec.structs.replace(found.metadata, annotations=annotations)
                requested = msgspec.structs.replace(found, metadata=metadata)
                await client.replace(VIRTUAL_MACHINE_DOCUMENTS, place.name, requested, namespace=place.namespace)


class PortRequests:
    """Requests that an agent has seen. `clock` returns monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[str, float]] = {}  # request and when it was seen by uuid, the latest last
        self.opened = asyncio.Event()
        """Set with each request; its reader clears it."""

    def seen_by(
        self, visible: Callable[[VirtualMachineObject], V | None]
    ) -> Callable[[VirtualMachineObject], V | None]:
        """Returns `visible`, which a watch calls with each object, such that requests in visible objects are taken."""

        def visible_and_seen(item: VirtualMachineObject) -> V | None:
            found = visible(item)
            if found is not None:
                self._take(item.spec.uuid, item.metadata.annotations.get(PORTS_REQUESTED, ""))
            return found

        return visible_and_seen

    def open(self) -> dict[str, str]:
        """Returns the requests that are to be answered now by uuid of the virtual machine, the latest first."""
        since = self._clock() - OPEN
        found = [(uuid, request) for uuid, (request, seen) in reversed(self._known.items()) if seen > since]
        return dict(found[:MAX_ANSWERED])

    def _take(self, uuid: str, request: str) -> None:
        known, _ = self._known.get(uuid, ("", 0.0))
        if not 0 < len(request) <= MAX_REQUEST_LENGTH or request == known:
            return
        self._known.pop(uuid, None)
        self._known[uuid] = (request, self._clock())
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self.opened.set()
