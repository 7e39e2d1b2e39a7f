"""Callers of a Contrail API server in tests: plain requests, and objects that are deleted after the test."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec

Object = dict[str, Any]

DOMAIN = "default-domain"


class Answer(NamedTuple):
    """A response, with its body as text."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.text)


class Made(NamedTuple):
    """An object that a test created."""

    kind: str
    uuid: str
    fq_name: list[str]

    @property
    def path(self) -> str:
        return f"/{self.kind}/{self.uuid}"

    @property
    def reference(self) -> Object:
        return {"to": self.fq_name, "uuid": self.uuid}


class Caller:
    """Sends requests to one server; `made` is deleted at the end, the newest first."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.url = url
        self.session = session
        self.made: list[Made] = []

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        sent = {"Content-Type": "application/json"} if body is not None else {}
        async with self.session.request(
            method,
            self.url + path,
            data=msgspec.json.encode(body) if body is not None else data,
            params=query,
            headers={**sent, **(headers or {})},
        ) as response:
            return Answer(response.status, await response.text(), response.headers)

    async def get(self, path: str, **query: str) -> Any:
        """Returns the JSON of a successful GET."""
        answer = await self.request("GET", path, query=query)
        assert answer.status == 200, answer
        return answer.json

    async def read(self, made: Made, **query: str) -> Object:
        """Returns an object."""
        return dict((await self.get(made.path, **query))[made.kind])

    async def post(self, path: str, body: Any) -> Answer:
        return await self.request("POST", path, body)

    async def put(self, made: Made, **changes: Any) -> Answer:
        return await self.request("PUT", made.path, {made.kind: changes})

    async def delete(self, made: Made) -> Answer:
        return await self.request("DELETE", made.path)

    async def try_create(self, kind: str, **body: Any) -> Answer:
        """Creates an object, to be deleted at the end if that succeeds."""
        answer = await self.post(f"/{kind}s", {kind: body})
        if answer.status == 200:
            self.made.append(_made(kind, answer))
        return answer

    async def create(self, kind: str, **body: Any) -> Made:
        """Creates an object; the test fails if that fails."""
        answer = await self.try_create(kind, **body)
        assert answer.status == 200, answer
        return _made(kind, answer)

    async def refer(self, made: Made, other: Made, operation: str = "ADD", **more: Any) -> Answer:
        """Adds or deletes a reference."""
        body = {"type": made.kind, "uuid": made.uuid, "ref-type": other.kind, "ref-uuid": other.uuid}
        return await self.post("/ref-update", {**body, "operation": operation, **more})

    async def virtual_machine(self, **more: Any) -> Made:
        return await self.create("virtual-machine", fq_name=[unique("vm")], **more)

    async def virtual_router(self, **more: Any) -> Made:
        name = ["default-global-system-config", unique("node")]
        return await self.create("virtual-router", fq_name=name, parent_type="global-system-config", **more)

    async def project(self) -> Made:
        return await self.create("project", fq_name=[DOMAIN, unique("project")], parent_type="domain")

    async def network(self, *subnets: Object, project: Made | None = None, **more: Any) -> Made:
        """Creates a network with subnets, in a project and with an IPAM of its own."""
        home = project or await self.project()
        ipam = await self.create("network-ipam", fq_name=[*home.fq_name, unique("ipam")], parent_type="project")
        link = {**ipam.reference, "attr": {"ipam_subnets": list(subnets)}}
        return await self.create(
            "virtual-network",
            fq_name=[*home.fq_name, unique("network")],
            parent_type="project",
            network_ipam_refs=[link],
            **more,
        )

    async def interface(self, network: Made, virtual_machine: Made | None = None, **more: Any) -> Made:
        """Creates an interface in the network's project."""
        machines = [virtual_machine.reference] if virtual_machine else []
        return await self.create(
            "virtual-machine-interface",
            fq_name=[*network.fq_name[:-1], unique("interface")],
            parent_type="project",
            virtual_network_refs=[network.reference],
            virtual_machine_refs=machines,
            **more,
        )

    async def try_address(self, network: Made, address: str | None = None, **more: Any) -> Answer:
        """Asks for an instance-ip of the network, with an address or without."""
        wish = {"instance_ip_address": address} if address else {}
        body = {"fq_name": [unique("address")], "virtual_network_refs": [network.reference], **wish, **more}
        return await self.try_create("instance-ip", **body)

    async def address(self, network: Made, address: str | None = None, **more: Any) -> Made:
        answer = await self.try_address(network, address, **more)
        assert answer.status == 200, answer
        return _made("instance-ip", answer)

    async def address_of(self, instance_ip: Made) -> str:
        return str((await self.read(instance_ip))["instance_ip_address"])

    async def delete_all(self) -> None:
        """Deletes what is left of `made`, in the order in which the server permits it."""
        while self.made:
            await self.delete(self.made.pop())


@asynccontextmanager
async def caller_of(url: str) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        caller = Caller(session, url)
        yield caller
        await caller.delete_all()


def subnet(cidr: str, **more: Any) -> Object:
    """Returns a subnet of an IPAM link, allocated from the bottom, with its DNS server at the gateway."""
    prefix, _, length = cidr.partition("/")
    return {"subnet": {"ip_prefix": prefix, "ip_prefix_len": int(length)}, "addr_from_start": True, **more}


def annotations(**pairs: str) -> Object:
    return {"key_value_pair": [{"key": key, "value": value} for key, value in pairs.items()]}


def unique(prefix: str) -> str:
    """Returns a name that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


async def statuses(*answers: Any) -> list[int]:
    """Returns the sorted statuses of requests that run at once."""
    return sorted(answer.status for answer in await asyncio.gather(*answers))


def _made(kind: str, answer: Answer) -> Made:
    item = answer.json[kind]
    return Made(kind, item["uuid"], item["fq_name"])
