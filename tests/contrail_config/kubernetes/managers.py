"""What the tests of several managers share: stores on one server, and a server on which writers meet each other."""

import random
from typing import Protocol

from contrail_config.kubernetes.kinds import BLOCKS, GROUP, MACHINES, NETWORKS, VERSION
from contrail_config.kubernetes.store import KubernetesStore
from tests.support.fake_apiserver.failures import StatusError
from tests.support.fake_apiserver.faults import Faults
from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.server import FakeApiServer

MACHINE_KIND = Kind(GROUP, VERSION, MACHINES.kind, MACHINES.plural, custom=True)
NETWORK_KIND = Kind(GROUP, VERSION, NETWORKS.kind, NETWORKS.plural, namespaced=False, custom=True)
BLOCK_KIND = Kind(GROUP, VERSION, BLOCKS.kind, BLOCKS.plural, namespaced=False, custom=True)

_WRITES = ("create", "update", "delete")


class OpenManager(Protocol):
    """Opens one more store."""

    async def __call__(self, *, pace: float = 0.0) -> KubernetesStore: ...


class Contention(Faults):
    """Every other write, by chance, meets another one first."""

    def __init__(self) -> None:
        super().__init__()
        self._chance = random.Random(0)

    def check_refusals(self, verb: str) -> None:
        super().check_refusals(verb)
        if verb in _WRITES and self._chance.random() < 0.5:
            self.refused += 1
            raise StatusError(409, "Conflict", "the object has been modified, on purpose")


def given_addresses(server: FakeApiServer) -> dict[tuple[str, str], str]:
    """Owners by network and address, as the server keeps them; fails if an address is in two blocks."""
    given: dict[tuple[str, str], str] = {}
    for block in server.storage.objects(BLOCK_KIND).values():
        for address, entry in block["spec"].get("addresses", {}).items():
            place = block["spec"]["network"], address
            assert place not in given
            if "heldUntil" not in entry:
                given[place] = entry["owner"]
    return given


def writes(server: FakeApiServer) -> list[str]:
    """The writes that came, as `verb plural`."""
    return [request for request in server.requests if request.split()[0] in (*_WRITES, "patch")]
