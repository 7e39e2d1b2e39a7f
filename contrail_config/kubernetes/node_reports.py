"""The report of one node, as its agent writes it: an object of its own, named as the node.

Each write states the version that this process wrote last, so that two agents that take themselves for the same node
find out about each other. The last one to write prevails.

The object has no owner, since agents need no right to read nodes for anything else. A manager removes the reports that
nobody writes any more.
"""

import contextlib

import msgspec
from tenacity import TryAgain

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, ContrailNodeObject, KeptMetadata, NodeReport
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict


class NodeReports:
    """Writes the reports of one node, for one agent. Needs the verbs get, create and update."""

    def __init__(self, client: KubeClient, node: str) -> None:
        self._client = client
        self._node = node
        self._kept: ContrailNodeObject | None = None
        self._begun = False

    async def write(self, report: NodeReport) -> str | None:
        """Writes the report. Raises StoreError; it may be written all the same then.

        Returns the instance of another agent if that wrote since this one wrote last, else None. Who wrote before this
        one wrote first is its predecessor.
        """
        other = None
        what = f"report of node {self._node}"
        with as_store_error(what):
            async for attempt in retry_on_conflict(what, KubeConflictError, KubeExistsError):
                with attempt:
                    try:
                        self._kept = await self._put(report)
                    except (KubeConflictError, KubeExistsError):
                        self._kept = await self._find()
                        if self._begun and self._kept is not None and self._kept.status.instance != report.instance:
                            other = self._kept.status.instance
                        raise
                    except KubeNotFoundError as error:
                        if self._kept is None:
                            raise  # the kind itself is not served
                        self._kept = None
                        raise TryAgain from error
        self._begun = True
        return other

    async def _put(self, report: NodeReport) -> ContrailNodeObject:
        if self._kept is None:
            return await self._client.create(CONTRAIL_NODES, ContrailNodeObject(KeptMetadata(name=self._node), report))
        return await self._client.replace(
            CONTRAIL_NODES, self._node, msgspec.structs.replace(self._kept, status=report)
        )

    async def _find(self) -> ContrailNodeObject | None:
        with contextlib.suppress(KubeNotFoundError):
            return await self._client.get(CONTRAIL_NODES, self._node)
        return None
