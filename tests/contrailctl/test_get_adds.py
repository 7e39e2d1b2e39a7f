"""`contrailctl get adds`: the last ADDs of a pod, from the daemon of its node."""

from aiohttp import web

from tests.support.contrailctl_command import Run
from tests.support.fake_apis import served

ADD = {
    "namespace": "shop",
    "pod": "web",
    "uid": "u",
    "container": "0123456789abcdef",
    "ifname": "eth0",
    "began": 1767225600.25,
    "seconds": 1.5,
    "phases": [
        {"name": "queue", "after": 0.0, "seconds": 0.25},
        {"name": "list", "after": 0.25, "seconds": 0.5},
        {"name": "list", "after": 0.75, "seconds": 0.25},
    ],
    "code": 11,
    "message": "no interfaces",
}


async def test_adds_are_listed_with_the_seconds_of_their_phases(contrailctl: Run) -> None:
    async def adds(request: web.Request) -> web.Response:
        assert dict(request.query) == {"namespace": "shop", "pod": "web"}
        return web.json_response({"items": [ADD]})

    async with served([web.get("/adds", adds)]) as daemon:
        ended = await contrailctl("get", "adds", "--daemon", daemon, "-n", "shop", "web")
    assert (ended.status, ended.err) == (0, "")
    header, row = ended.out.splitlines()
    assert header.split() == [
        "BEGAN",
        "CONTAINER",
        "IFNAME",
        "TOOK",
        "QUEUE",
        "LIST",
        "MAKE",
        "CONNECT",
        "PLUG",
        "RESULT",
    ]
    began = "2026-01-01T00:00:00.250+00:00"
    cells = [began, "0123456789ab", "eth0", "1.500", "0.250", "0.750", "-", "-", "-"]
    assert row.split() == [*cells, "code", "11:", "no", "interfaces"]


async def test_a_pod_must_be_named(contrailctl: Run) -> None:
    ended = await contrailctl("get", "adds", "web")
    assert ended.status == 2
    assert "one pod per request" in ended.err


async def test_an_older_daemon_has_no_such_page(contrailctl: Run) -> None:
    async with served([]) as daemon:
        ended = await contrailctl("get", "adds", "--daemon", daemon, "-n", "shop", "web")
    assert (ended.status, ended.out) == (1, "")
    assert f"{daemon}/adds" in ended.err
