"""Logs of a dump: those of all containers that have begun, with bounds and without secrets."""

from pathlib import Path

from aiohttp import web

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kubernetes.pods import (
    ContainerState,
    ContainerStatus,
    CreatedMetadata,
    Pod,
    PodStatus,
    Running,
    Waiting,
)
from contrailctl.sysdump.archive import DumpFolder
from contrailctl.sysdump.logs import dump_logs
from tests.support.fake_apis import served

WAITING = ContainerState(waiting=Waiting("CrashLoopBackOff"))
RUNNING = ContainerState(running=Running())
POD = Pod(
    CreatedMetadata(name="contrail-node-x", namespace="contrail"),
    status=PodStatus(
        container_statuses=(
            ContainerStatus("agent", state=RUNNING),
            ContainerStatus("cnid", restart_count=2, state=WAITING),
            ContainerStatus("gone", state=RUNNING),
        ),
        init_container_statuses=(ContainerStatus("install", state=WAITING),),
    ),
)


async def test_each_log_is_a_file_and_a_missing_one_a_problem(tmp_path: Path) -> None:
    async def log(request: web.Request) -> web.Response:
        query = request.query
        assert int(query["limitBytes"]) <= 4 << 20
        if query["container"] == "gone":
            return web.json_response({"kind": "Status", "message": "container not found"}, status=404)
        return web.Response(text=f"{query['container']} {query['previous']} password=hunter2\n")

    folder = DumpFolder(tmp_path)
    route = web.get("/api/v1/namespaces/contrail/pods/contrail-node-x/log", log)
    async with served([route]) as url, connect(ClientConfig(url)) as client:
        await dump_logs(client, [POD], folder)
    assert texts(tmp_path) == {
        "logs/contrail-node-x/agent.log": "agent false password=<redacted>\n",
        "logs/contrail-node-x/cnid.previous.log": "cnid true password=<redacted>\n",
    }
    (problem,) = folder.problems
    assert problem.startswith("logs/contrail-node-x/gone.log: ")
    assert "container not found" in problem


def texts(folder: Path) -> dict[str, str]:
    """The files below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.log")}
