"""Slice writer: brings the network slices on the server to what the slice table says, and keeps them so.

Level-triggered: a change of the table, and a change on the server, only queue the slice's key, whose worker compares
both sides and writes the difference, if there is one. So a slice that somebody deletes or edits is put back, several
changes of one slice that come while it is written are one write, and a manager that starts rewrites nothing that is
right. Pods do not wait for slices.

A write costs the server, and each node of the network, time in proportion to all endpoints of the slice, however few
are new. So a slice that has just been written waits for its next write, and those of many pods that start on one node
are one; the first is written at once.

Writes state no version: only the leader writes, what an earlier leader writes late is reported by the watch, and a
merge patch preserves fields of a newer release. Not those in items of lists, which it replaces whole: to preserve them
each write would have to read the slice first. A leader of that release writes them again when it starts, since it
derives all slices.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeError, KubeExistsError, KubeInvalidError, KubeNotFoundError
from contrail_config.kube.object_cache import Key, Listed
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kube.work_queue import WorkQueue
from contrail_config.kubernetes.bucket_namespaces import create_in_bucket
from contrail_config.kubernetes.compared_slice import ComparedSlice, SliceState
from contrail_config.kubernetes.invalid_objects import InvalidObject, invalid_objects
from contrail_config.kubernetes.kinds import (
    NETWORK_SLICES,
    UNTRACKED,
    network_slice_name,
    network_slice_object,
)
from contrail_config.kubernetes.network_buckets import network_bucket
from contrail_config.kubernetes.slice_table import SliceKey, SliceTable
from contrail_config.kubernetes.stored_slices import StoredSlices, digest
from contrail_config.kubernetes.validated import VALIDATED_SLICES
from contrail_config.kubernetes.write_intervals import WriteIntervals
from contrail_config.objects import NetworkSlice

log = logging.getLogger(__name__)

_WRITES: Final = 8
"""Slices written at a time: their writes must not fill the server's queue, in which those of pods wait."""

INTERVAL: Final = 0.1
"""Seconds from a write of a slice to its next: short next to the time in which all nodes must know of a pod."""

_COMPARED: Final = 64
"""Slices of a list that are compared before other tasks run."""

_UUID_LENGTH: Final = 36


class SliceWriter:
    """Runs once. `queue` has namespace and name of the slices to compare."""

    def __init__(self, client: KubeClient, table: SliceTable, *, timings: ReflectorTimings | None = None) -> None:
        self._client = client
        self._table = table
        self._stored = StoredSlices()
        self._reflector = Reflector(client, VALIDATED_SLICES, timings=timings or ReflectorTimings(), cache=self._stored)
        self.queue: WorkQueue[Key] = WorkQueue(self._reconcile, limit=_WRITES, transient=KubeError)
        self._intervals = WriteIntervals(INTERVAL)
        self._is_ready = False

    def __len__(self) -> int:
        """The number of slices on the server."""
        return len(self._stored)

    @property
    def problem(self) -> str | None:
        """Why the slices on the server are not known; None if they are."""
        return self._reflector.problem

    @property
    def invalid_objects(self) -> list[InvalidObject]:
        """Invalid slices, until they are put right."""
        return invalid_objects(VALIDATED_SLICES, self._stored.undecodable.values())

    async def run(self) -> None:
        """Keeps the slices until it is cancelled. The table must be complete: slices not in it are deleted."""
        async with self._reflector.changes() as changes:
            async for change in changes:
                if isinstance(change, Listed):
                    self._is_ready = True
                    await self._compare_all()
                elif self._is_ready:
                    metadata = change.metadata if isinstance(change, UndecodableObject) else change.object.metadata
                    self._compare((metadata.namespace, metadata.name))

    def changed(self, keys: Iterable[SliceKey]) -> None:
        """Compares slices that may differ from what is on the server. No effect before all of them were listed."""
        if self._is_ready:
            for key in keys:
                self._enqueue(_object_key(key))

    def keys(self, network_uuids: Collection[str]) -> set[SliceKey]:
        """Returns those of the slices of these networks that exist, or should.

        Raises StoreUnavailableError before all slices are listed.
        """
        if not self._is_ready:
            raise StoreUnavailableError(self.problem or "network slices: not listed yet")
        keys = {key for key in self._table.keys() if key.network_uuid in network_uuids}  # noqa: SIM118 - no dict
        for namespace, name in self._stored.keys():  # noqa: SIM118 - no dict
            uuid, label = name[:_UUID_LENGTH], name[_UUID_LENGTH + 1 :]
            if uuid in network_uuids and namespace == network_bucket(uuid):
                keys.add(SliceKey(uuid, self._table.node_of_label(label) or label))
        return keys

    def compared(self, key: SliceKey) -> ComparedSlice | None:
        """Returns the slice, None if there is none, and there should be none."""
        wanted, stored = self._table.slice(key), self._stored.get(_object_key(key))
        if wanted is None:
            return None if stored is None else ComparedSlice(None, SliceState.SUPERFLUOUS)
        if stored is None:
            return ComparedSlice(wanted, SliceState.MISSING)
        if stored.digest is None:
            return ComparedSlice(wanted, SliceState.INVALID)
        is_current = stored.digest == digest(wanted)
        return ComparedSlice(wanted, SliceState.CURRENT if is_current else SliceState.DIFFERENT)

    async def close(self) -> None:
        """Finishes the writes in progress, and starts no more."""
        await self.queue.close()

    async def _compare_all(self) -> None:
        for number, key in enumerate(self._stored.keys().union(map(_object_key, self._table.keys()))):
            self._compare(key)
            if number % _COMPARED == 0:
                await asyncio.sleep(0)

    def _compare(self, key: Key) -> None:
        """Queues the slice if it differs, so that most of a list costs no task."""
        wanted, stored = self._wanted(key), self._stored.get(key)
        if (wanted is None and stored is not None) or (
            wanted is not None and (stored is None or stored.digest != digest(wanted))
        ):
            self._enqueue(key)

    def _enqueue(self, key: Key) -> None:
        """Queues the slice once it may be written again."""
        pause = self._intervals.remaining(key, now=asyncio.get_running_loop().time())
        if pause:
            self.queue.add_after(key, pause)
        else:
            self.queue.add(key)

    def _wanted(self, key: Key) -> NetworkSlice | None:
        """Returns what the object should say; None if there should be no such object."""
        bucket, name = key
        node = self._table.node_of_label(name[_UUID_LENGTH + 1 :])
        if node is None:
            return None
        wanted = SliceKey(name[:_UUID_LENGTH], node)
        return self._table.slice(wanted) if _object_key(wanted) == (bucket, name) else None

    async def _reconcile(self, key: Key) -> None:
        wanted, stored = self._wanted(key), self._stored.get(key)
        if wanted is None:
            if stored is not None:
                await self._delete(key)
        elif stored is None or stored.digest != digest(wanted):
            self._intervals.written(key, now=asyncio.get_running_loop().time())
            await (self._create(key, wanted) if stored is None else self._patch(key, wanted))

    async def _create(self, key: Key, wanted: NetworkSlice) -> None:
        try:
            created = await create_in_bucket(self._client, NETWORK_SLICES, network_slice_object(wanted))
        except KubeExistsError:  # the watch has not reported it yet
            await self._patch(key, wanted)
        else:
            self._stored.written(key, created.metadata, wanted)

    async def _patch(self, key: Key, wanted: NetworkSlice) -> None:
        bucket, name = key
        try:
            written = await self._client.patch(NETWORK_SLICES, name, _patch_of(wanted), namespace=bucket)
        except KubeNotFoundError:
            self._stored.deleted(key)
            raise  # the queue tries again, and creates it
        except KubeInvalidError:  # rules of the server may forbid to correct it, and its content is of no value
            log.warning("network slice %s/%s: cannot be corrected: recreating it", bucket, name)
            await self._delete(key)
            raise
        self._stored.written(key, written.metadata, wanted)

    async def _delete(self, key: Key) -> None:
        bucket, name = key
        with suppress(KubeNotFoundError):
            await self._client.delete(NETWORK_SLICES, name, namespace=bucket)
        self._stored.deleted(key)


def _object_key(key: SliceKey) -> Key:
    return network_bucket(key.network_uuid), network_slice_name(key.network_uuid, key.node)


def _patch_of(wanted: NetworkSlice) -> dict[str, Any]:
    """Returns a merge patch that sets all fields that this release knows, and leaves the others."""
    item = network_slice_object(wanted)
    spec = dict.fromkeys(wanted.__struct_encode_fields__) | msgspec.to_builtins(wanted)
    metadata = {"labels": item.metadata.labels, "managedFields": UNTRACKED}
    return {"metadata": metadata, "spec": spec, "status": item.status}
