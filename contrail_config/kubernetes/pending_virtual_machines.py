"""Pending virtual machines as objects: in the place of the complete one, which replaces them.

All writes depend on the version of the object that was read. So a pending virtual machine never replaces a complete
one, and a complete one is never deleted in its place, whichever write comes first.
"""

import contextlib

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kubernetes.bucket_namespaces import create_in_bucket
from contrail_config.kubernetes.kinds import VIRTUAL_MACHINE_DOCUMENTS, Document, replacement, virtual_machine_object
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.kubernetes.validated import valid_virtual_machine
from contrail_config.objects import VirtualMachine


class PendingVirtualMachineClient:
    """Writes and deletes pending virtual machines. All methods raise KubeError and StoreUnavailableError."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def put(self, pending: VirtualMachine) -> None:
        """Creates or replaces the pending virtual machine, unless a complete one has the uuid."""
        async for attempt in retry_on_conflict(f"pending virtual machine {pending.name}"):
            with attempt:
                await self._write(pending)

    async def delete(self, pending: VirtualMachine) -> None:
        """Deletes the virtual machine of this uuid if it is pending. Idempotent."""
        async for attempt in retry_on_conflict(f"pending virtual machine {pending.name}"):
            with attempt, contextlib.suppress(KubeNotFoundError):
                found = await self._read(pending)
                if _is_pending(found):
                    await self._delete(found)

    async def _write(self, pending: VirtualMachine) -> None:
        wanted = virtual_machine_object(pending)
        try:
            await create_in_bucket(self._client, VIRTUAL_MACHINE_DOCUMENTS, wanted)
        except KubeExistsError:
            await self._replace(pending)

    async def _replace(self, pending: VirtualMachine) -> None:
        """Replaces the existing pending virtual machine. Raises KubeConflictError also if it has been deleted."""
        try:
            found = await self._read(pending)
            if _is_pending(found):
                await self._update(found, replacement(found, virtual_machine_object(pending)))
        except KubeNotFoundError as error:  # deleted since `create` failed: the next attempt creates it
            raise KubeConflictError(str(error)) from error

    async def _read(self, pending: VirtualMachine) -> Document:
        place = virtual_machine_object(pending).metadata
        return await self._client.get(VIRTUAL_MACHINE_DOCUMENTS, place.name, namespace=place.namespace)

    async def _update(self, found: Document, wanted: Document) -> None:
        metadata = found.metadata
        await self._client.replace(VIRTUAL_MACHINE_DOCUMENTS, metadata.name, wanted, namespace=metadata.namespace)

    async def _delete(self, found: Document) -> None:
        metadata = found.metadata
        await self._client.delete(
            VIRTUAL_MACHINE_DOCUMENTS,
            metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        )


def _is_pending(document: Document) -> bool:
    virtual_machine = valid_virtual_machine(document)
    return virtual_machine is not None and virtual_machine.is_pending
