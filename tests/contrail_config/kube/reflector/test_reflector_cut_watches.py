"""A watch may be cut anywhere, within or between lines, cleanly or not: nothing is lost or repeated."""

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import RecordedReflector, eventually, record_reflector

AT_ONCE = ReflectorTimings(first_pause=0.0, longest_pause=0.0, short_watch=0.0)
DELIVERED = [("Added", "a"), ("Modified", "a"), ("Deleted", "a")]


def make_changes(server: FakeApiServer) -> None:
    server.put(kinds.CONFIG_MAPS, "a")
    server.put(kinds.CONFIG_MAPS, "a", data={"k": "é"})
    server.remove(kinds.CONFIG_MAPS, "a")


async def tell_by_a_new_watch(server: FakeApiServer, followed: RecordedReflector) -> list[tuple[str, str]]:
    """Makes changes for the next watch, and returns the changes yielded until that or a later watch ends."""
    followed.changes.clear()
    server.cut_watches()
    make_changes(server)
    await followed.until(lambda: ("Deleted", "a") in followed.names())
    return followed.names()


@pytest.mark.parametrize("cleanly", [False, True])
async def test_nothing_is_lost_or_repeated(client: KubeClient, server: FakeApiServer, cleanly: bool) -> None:
    server.faults.cut_cleanly = cleanly
    async with record_reflector(Reflector(client, CONFIG_MAPS, timings=AT_ONCE)) as followed:
        await followed.until_listed()
        await eventually(lambda: server.watches)
        assert await tell_by_a_new_watch(server, followed) == DELIVERED
        (length,) = (watch.sent for watch in server.watches)
        assert length > 400
        for cut in range(length + 1):
            server.faults.cuts = [cut]
            assert await tell_by_a_new_watch(server, followed) == DELIVERED
            assert server.faults.cuts == []
        assert server.requests.count("list configmaps") == 1
