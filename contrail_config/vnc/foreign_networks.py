"""Foreign networks: networks that others made on the server, and that NADs, pods or namespaces name.

Others are users of the controller, and Contrail's kube-manager. Such networks are shown like ours as long as they
exist, and are never written. Only those of permitted projects are: whoever may write a pod could otherwise enter any
network of the controller.
"""

from collections.abc import Collection, Mapping
from typing import Any

from contrail_config.objects import FqName, VirtualNetwork, pod_network_name
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.ipams import read_ipams
from contrail_config.vnc.mapping import machines, networks

Project = tuple[str, str]
"""Domain and name of a project."""


class ForeignNetworks:
    """Those that are named, of one cluster; `projects` are permitted beside those of the cluster's namespaces."""

    def __init__(self, client: VncClient, cluster: str, projects: Collection[Project]) -> None:
        self._client = client
        self._cluster = cluster
        self._projects = frozenset(projects)
        self._named: set[FqName] = set()
        self._ipams: dict[str, Mapping[str, Any]] = {}
        self._shown: set[str] = set()

    def is_shown(self, uuid: str) -> bool:
        """Whether the network of this uuid is a foreign one that is shown."""
        return uuid in self._shown

    def taken_over(self, uuid: str) -> None:
        """Notes that the network is ours now."""
        self._shown.discard(uuid)

    def read(self, item: Mapping[str, Any]) -> VirtualNetwork | None:
        """Returns the network in an object if it is foreign and named; None if not."""
        self._shown.discard(item["uuid"])
        if tuple(item["fq_name"]) not in self._named or not networks.is_foreign(item, self._cluster):
            return None
        self._shown.add(item["uuid"])
        return networks.adopted_network(item, nad=None, ipams=self._ipams)

    def permits(self, name: FqName) -> bool:
        """Whether the network of this name may be used. That of the cluster is made by us, or taken over."""
        domain, project, _ = name
        is_of_cluster = domain == machines.DOMAIN and project.startswith(f"{self._cluster}-")
        return self.is_outside(name) or (is_of_cluster and name != pod_network_name(self._cluster))

    def is_outside(self, name: FqName) -> bool:
        """Whether the network of this name is in a project that has nothing else of the cluster."""
        return name[:2] in self._projects

    async def look_for(self, name: FqName) -> Mapping[str, Any] | None:
        """Shows the network of a name from now on, and returns its object; None if there is none. Raises VncError."""
        self._named.add(name)
        try:
            uuid = await self._client.find_uuid(networks.KIND, name)
            item = await self._client.read(networks.KIND, uuid, fields=networks.FIELDS)
            self._ipams.update(await read_ipams(self._client, item))
        except VncNotFoundError:
            return None
        return item
