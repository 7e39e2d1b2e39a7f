"""Writes of Contrail's kube-manager, in its order and form: a pod network, networks of NADs, and pods.

It annotates in a request of its own, leaves the choice of addresses and MACs to the server, and its uuids are random.
"""

import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.support.contrail_callers import DOMAIN, Caller, Made

CLUSTER = "k8s"


class UpstreamPod(NamedTuple):
    """Objects of a pod: its interfaces, each with its address, are in the order of their indexes."""

    machine: Made
    interfaces: tuple[Made, ...]
    addresses: tuple[Made, ...]


class UpstreamKubeManager:
    """Writes to the server that `caller` reaches."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._projects: dict[str, Made] = {}
        self._groups: dict[str, Made] = {}

    async def pod_network(self, cidr: str = "10.32.0.0/12", *, namespace: str = "default", **more: Any) -> Made:
        """Creates the cluster pod network, or that of an isolated namespace, whose subnets are those of its IPAM.

        The subnet has `more` attributes.
        """
        project = await self._project("default")
        subnets = {"subnets": [{**_subnet(cidr), **more}]}
        ipam = await self._once(
            "network-ipam",
            fq_name=[*project.fq_name, f"{CLUSTER}-pod-ipam"],
            parent_type="project",
            ipam_subnet_method="flat-subnet",
            ipam_subnets=subnets,
        )
        return await self._network(
            [*(await self._project(namespace)).fq_name, f"{CLUSTER}-{namespace}-pod-network"],
            {**ipam.reference, "attr": {"ipam_subnets": []}},
            address_allocation_mode="flat-subnet-only",
            virtual_network_properties={"forwarding_mode": "l3"},
        )

    async def nad_network(self, nad: str, cidr: str, gateway: str, *, namespace: str = "default", **more: Any) -> Made:
        """Creates the network of a NAD with an IPAM of its own. `gateway` is the last usable address.

        The subnet has `more` attributes.
        """
        project = await self._project(namespace)
        name = [*project.fq_name, f"{CLUSTER}-{nad}-pod-ipam"]
        ipam = await self._caller.create("network-ipam", fq_name=name, parent_type="project")
        subnet = {**_subnet(cidr), "default_gateway": gateway, "subnet_uuid": str(uuid.uuid4()), **more}
        return await self._network(
            [*project.fq_name, f"{CLUSTER}-{nad}-pod-network"],
            {**ipam.reference, "attr": {"ipam_subnets": [subnet]}},
            address_allocation_mode="user-defined-subnet-only",
            virtual_network_properties={"forwarding_mode": "l2_l3"},
            fabric_snat=False,
        )

    async def pod(
        self,
        name: str,
        networks: Sequence[tuple[str, Made]],
        *,
        router: Made | None,
        uid: str | None = None,
        namespace: str = "default",
        stops_after: int | None = None,
    ) -> UpstreamPod:
        """Creates a pod in networks, each with the value of the annotation `network`.

        `stops_after`: number of interfaces after which it fails, as where a network cannot be read.
        """
        project = await self._project(namespace)
        pairs = self._pairs(namespace, name)
        machine = await self._caller.create(
            "virtual-machine",
            uuid=uid or str(uuid.uuid4()),
            fq_name=[f"{CLUSTER}__{namespace}__{name}"],
            server_type="container",
        )
        await self.annotate(machine, **pairs, k8s_uuid=machine.uuid, labels=json.dumps({"app": name}))
        made: list[tuple[Made, Made]] = []
        for index, (label, network) in enumerate(networks[:stops_after]):
            interface = await self._interface(name, project, network, machine)
            await self.annotate(interface, **pairs, index=f"{index}/{len(networks)}", network=label)
            address = await self._address(name, network, interface)
            await self.annotate(address, **pairs)
            made.append((interface, address))
        if router is not None and stops_after is None:
            await self._caller.refer(router, machine)
        interfaces, addresses = zip(*made, strict=True)
        return UpstreamPod(machine, interfaces, addresses)

    async def delete_pod(self, uid: str) -> list[int]:
        """Deletes a pod by its virtual machine alone, whoever wrote it, and returns the statuses of the deletes."""
        machine = (await self._caller.get(f"/virtual-machine/{uid}"))["virtual-machine"]
        target = Made("virtual-machine", uid, machine["fq_name"])
        for link in machine.get("virtual_router_back_refs", []):
            await self._caller.refer(Made("virtual-router", link["uuid"], link["to"]), target, "DELETE")
        statuses = []
        for link in machine["virtual_machine_interface_back_refs"]:
            interface = Made("virtual-machine-interface", link["uuid"], link["to"])
            for address in (await self._caller.read(interface)).get("instance_ip_back_refs", []):
                found = Made("instance-ip", address["uuid"], address["to"])
                statuses.append((await self._caller.delete(found)).status)
            statuses.append((await self._caller.delete(interface)).status)
        statuses.append((await self._caller.delete(target)).status)
        return statuses

    async def annotate(self, made: Made, **pairs: str) -> None:
        """Sets annotations of an object."""
        updates = [
            {"field": "annotations", "operation": "set", "value": {"key": key, "value": value}}
            for key, value in pairs.items()
        ]
        answer = await self._caller.post("/prop-collection-update", {"uuid": made.uuid, "updates": updates})
        assert answer.status == 200, answer

    def _pairs(self, namespace: str, name: str) -> dict[str, str]:
        project = f"{CLUSTER}-{namespace}"
        of_pod = {"kind": "Pod", "owner": "k8s", "cluster": CLUSTER, "project": project}
        return {**of_pod, "namespace": namespace, "name": name}

    async def _interface(self, pod: str, project: Made, network: Made, machine: Made) -> Made:
        made = str(uuid.uuid1())
        return await self._caller.create(
            "virtual-machine-interface",
            uuid=made,
            fq_name=[*project.fq_name, f"{pod}__{made}"],
            parent_type="project",
            port_security_enabled=True,
            virtual_network_refs=[network.reference],
            virtual_machine_refs=[machine.reference],
            security_group_refs=[self._groups[project.uuid].reference],
        )

    async def _address(self, pod: str, network: Made, interface: Made) -> Made:
        made = str(uuid.uuid1())
        return await self._caller.create(
            "instance-ip",
            uuid=made,
            fq_name=[f"{pod}__{made}"],
            virtual_network_refs=[network.reference],
            virtual_machine_interface_refs=[interface.reference],
        )

    async def _network(self, fq_name: list[str], link: dict[str, Any], **more: Any) -> Made:
        return await self._caller.create(
            "virtual-network", fq_name=fq_name, parent_type="project", network_ipam_refs=[link], **more
        )

    async def _project(self, namespace: str) -> Made:
        if namespace not in self._projects:
            name = [DOMAIN, f"{CLUSTER}-{namespace}"]
            made = self._projects[namespace] = await self._once("project", fq_name=name, parent_type="domain")
            group = [*name, f"{CLUSTER}-{namespace}-default-sg"]
            self._groups[made.uuid] = await self._once("security-group", fq_name=group, parent_type="project")
        return self._projects[namespace]

    async def _once(self, kind: str, **body: Any) -> Made:
        """Creates an object, or returns the one of this name."""
        answer = await self._caller.try_create(kind, **body)
        if answer.status == 200:
            return self._caller.made[-1]
        found = await self._caller.post("/fqname-to-id", {"type": kind, "fq_name": body["fq_name"]})
        return Made(kind, found.json["uuid"], body["fq_name"])


def _subnet(cidr: str) -> dict[str, Any]:
    prefix, _, length = cidr.partition("/")
    return {"subnet": {"ip_prefix": prefix, "ip_prefix_len": int(length)}}
