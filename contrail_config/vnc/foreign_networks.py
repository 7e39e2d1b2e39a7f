"""Foreign networks: networks that others made on the server, and that NADs, pods or namespaces name.

Others are users of the controller, and Contrail's kube-manager. Such networks are shown like ours as long as they
exist, and are never written. Only those of permitted projects are: whoever may write a pod could otherwise enter any
network of the controller. Projects of the cluster are those of its namespaces, not all whose names begin like them:
those of a cluster `k8s-prod` begin with `k8s-`, too.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from contrail_config.objects import FqName, VirtualNetwork, pod_network_name
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.ipams import read_ipams
from contrail_config.vnc.mapping import machines, networks

Project = tuple[str, str]
"""Domain and name of a project."""

NamespaceExists = Callable[[str], Awaitable[bool]]
"""Returns whether the cluster has a namespace of this name."""


async def no_namespaces(_name: str) -> bool:
    """No namespace is known."""
    return False


class ForeignNetworks:
    """Those that are named, of one cluster; `projects` are permitted beside those of the cluster's namespaces."""

    def __init__(self, client: VncClient, cluster: str, projects: Collection[Project]) -> None:
        self._client = client
        self._cluster = cluster
        self._projects = frozenset(projects)
        self._named: OrderedDict[FqName, dict[str, Mapping[str, Any]]] = OrderedDict()  # with their IPAMs, by uuid
        self._shown: set[str] = set()
        self.namespace_exists: NamespaceExists = no_namespaces

    def is_shown(self, uuid: str) -> bool:
        """Whether the network of this uuid is a foreign one that is shown."""
        return uuid in self._shown

    def taken_over(self, uuid: str) -> None:
        """Notes that the network is ours now."""
        self._shown.discard(uuid)

    def read(self, item: Mapping[str, Any]) -> VirtualNetwork | None:
        """Returns the network in an object if it is foreign and named; None if not."""
        self._shown.discard(item["uuid"])
        ipams = self._named.get(tuple(item["fq_name"]))
        if ipams is None or not networks.is_foreign(item, self._cluster):
            return None
        self._shown.add(item["uuid"])
        return networks.adopted_network(item, nad=None, ipams=ipams)

    async def permits(self, name: FqName) -> bool:
        """Whether the network of this name may be used. That of the cluster is made by us, or taken over."""
        return self.is_outside(name) or (self.may_be_of_cluster(name) and await self._is_of_cluster(name))

    def is_outside(self, name: FqName) -> bool:
        """Whether the network of this name is in a project that has nothing else of the cluster."""
        return name[:2] in self._projects

    def may_be_of_cluster(self, name: FqName) -> bool:
        """Whether the network of this name may be used if the namespace of its project exists."""
        domain, project, _ = name
        is_named_so = domain == machines.DOMAIN and project.startswith(f"{self._cluster}-")
        return is_named_so and name != pod_network_name(self._cluster)

    async def look_for(self, name: FqName) -> Mapping[str, Any] | None:
        """Shows the network of a name from now on, and returns its object; None if there is none. Raises VncError."""
        ipams = self._named.setdefault(name, {})
        self._named.move_to_end(name)
        try:
            uuid = await self._client.find_uuid(networks.KIND, name)
            item = await self._client.read(networks.KIND, uuid, fields=networks.FIELDS)
            ipams.update(await read_ipams(self._client, item))
        except VncNotFoundError:
            return None
        return item

    def forget(self, count: int, *, is_used: Callable[[FqName], bool]) -> None:
        """Forgets names beyond `count`, but not those that are used: those that were named longest ago first."""
        excess = len(self._named) - count
        for name in list(self._named) if excess > 0 else ():
            if excess > 0 and not is_used(name):
                del self._named[name]
                excess -= 1

    async def _is_of_cluster(self, name: FqName) -> bool:
        return await self.namespace_exists(name[1].removeprefix(f"{self._cluster}-"))
