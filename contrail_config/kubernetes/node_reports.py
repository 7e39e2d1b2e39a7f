"""Writer of a node's report: an object named after the node, written by its agent.

Each write states the version that this process wrote last, so two agents that use the same node name detect each other.
The last writer wins. Fields of a newer release, whose agent ran here before a rollback, stay as that one left them.

The object has no owner reference: for its node's uid, agents would need permission to read nodes. A manager deletes
reports that nobody updates any more.
"""

import contextlib

import msgspec
from tenacity import TryAgain

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.kinds import (
    CONTRAIL_NODE_DOCUMENTS,
    ContrailNodeObject,
    Document,
    FullMetadata,
    NodeReport,
)
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.unknown_fields import with_unknown_fields


class NodeReports:
    """Writes the reports of one node for one agent. Needs the verbs get, create and update."""

    def __init__(self, client: KubeClient, node: str) -> None:
        self._client = client
        self._node = node
        self._written: Document | None = None
        self._has_written = False

    async def write(self, report: NodeReport) -> str | None:
        """Writes the report. Returns the instance of another agent that has written since the last write, or None.

        An instance that wrote before the first write of this one is its predecessor and is not returned. Raises
        StoreError; the report may be written nevertheless.
        """
        other = None
        what = f"report of node {self._node}"
        with as_store_error(what):
            async for attempt in retry_on_conflict(what, KubeConflictError, KubeExistsError):
                with attempt:
                    try:
                        self._written = await self._put(report)
                    except (KubeConflictError, KubeExistsError):
                        self._written = await self._find()
                        other = self._other_writer(report) or other
                        raise
                    except KubeNotFoundError as error:
                        if self._written is None:
                            raise  # the kind itself is not served
                        self._written = None
                        raise TryAgain from error  # the object was deleted: the next attempt creates it
        self._has_written = True
        return other

    def _other_writer(self, report: NodeReport) -> str | None:
        """Returns the instance that wrote the report after this one wrote it, None if there is none."""
        if not self._has_written or self._written is None:
            return None
        instance = str(self._written.status.get("instance", ""))
        return instance if instance != report.instance else None

    async def _put(self, report: NodeReport) -> Document:
        if self._written is None:
            created = ContrailNodeObject(FullMetadata(name=self._node), report)
            return await self._client.create(CONTRAIL_NODE_DOCUMENTS, created)
        status = with_unknown_fields(report, self._written.status)
        replaced = msgspec.structs.replace(self._written, status=status)
        return await self._client.replace(CONTRAIL_NODE_DOCUMENTS, self._node, replaced)

    async def _find(self) -> Document | None:
        with contextlib.suppress(KubeNotFoundError):
            return await self._client.get(CONTRAIL_NODE_DOCUMENTS, self._node)
        return None
