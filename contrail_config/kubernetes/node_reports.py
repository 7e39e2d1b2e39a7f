"""Writer of a node's report: an object named after the node, written by its agent.

Each write states the version that this process wrote last, so two agents that use the same node name detect each other.
The last writer wins.

The object has no owner reference: for its node's uid, agents would need permission to read nodes. A manager deletes
reports that nobody updates any more.
"""

import contextlib

import msgspec
from tenacity import TryAgain

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, ContrailNodeObject, FullMetadata, NodeReport
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict


class NodeReports:
    """Writes the reports of one node for one agent. Needs the verbs get, create and update."""

    def __init__(self, client: KubeClient, node: str) -> None:
        self._client = client
        self._node = node
        self._written: ContrailNodeObject | None = None
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
                        if (
                            self._has_written
                            and self._written is not None
                            and self._written.status.instance != report.instance
                        ):
                            other = self._written.status.instance
                        raise
                    except KubeNotFoundError as error:
                        if self._written is None:
                            raise  # the kind itself is not served
                        self._written = None
                        raise TryAgain from error  # the object was deleted: the next attempt creates it
        self._has_written = True
        return other

    async def _put(self, report: NodeReport) -> ContrailNodeObject:
        if self._written is None:
            return await self._client.create(CONTRAIL_NODES, ContrailNodeObject(FullMetadata(name=self._node), report))
        return await self._client.replace(
            CONTRAIL_NODES, self._node, msgspec.structs.replace(self._written, status=report)
        )

    async def _find(self) -> ContrailNodeObject | None:
        with contextlib.suppress(KubeNotFoundError):
            return await self._client.get(CONTRAIL_NODES, self._node)
        return None
