"""kubelet or containerd of a node is killed while its pods are created, and while they are deleted."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.e2e.host_process import HostProcess
from tests.e2e.kubelet.cluster import Cluster
from tests.e2e.kubelet.crowd import Crowd
from tests.e2e.polling import wait_until
from tests.support.kubectl.client import CommandError

_SIZE = 30
_READY_AT_KILLS = (3, 15)
_LEFT_AT_KILLS = (25, 10)
_OF_NODES = "--selector=app.kubernetes.io/name=contrail-node", "--all-containers", "--tail=-1"


class Killed(NamedTuple):
    """The program that is killed, and the number of its node: each has its own version of containerd."""

    program: str
    node: int


# A kubelet that starts waits 3 s for each control group without a task, which adds up to minutes with containerd 2.
KILLED = {"kubelet": Killed("kubelet", 1), "containerd-2": Killed("runtime", 0), "containerd-1": Killed("runtime", 1)}


@pytest.fixture(params=KILLED.values(), ids=list(KILLED))
def killed(request: pytest.FixtureRequest) -> Killed:
    killed: Killed = request.param
    return killed


@pytest.fixture
def crowd(cluster: Cluster, killed: Killed) -> Iterator[Crowd]:
    """Pods of the node."""
    crowd = Crowd(cluster, _SIZE, node=cluster.nodes[killed.node])
    yield crowd
    crowd.delete()
    crowd.await_left(0)


def test_thirty_pods_start_and_end(cluster: Cluster, crowd: Crowd, killed: Killed) -> None:
    process = getattr(cluster.nodes[killed.node], killed.program)
    crowd.create()
    for expected in _READY_AT_KILLS:
        crowd.await_ready(expected)
        restart(process)
    crowd.await_all()
    crowd.delete()
    for expected in _LEFT_AT_KILLS:
        crowd.await_left(expected)
        restart(process)
    crowd.await_left(0)
    assert [line for line in logs_of_nodes(cluster) if "another program" in line or "contrail-cnid:" in line] == []


def logs_of_nodes(cluster: Cluster) -> list[str]:
    """What agents and daemons have logged: they may take nothing that they did themselves for another's change."""
    logs = []

    def are_served() -> bool:  # a kubelet that has just started serves none
        with contextlib.suppress(CommandError):
            logs.append(cluster.kubectl("-n", "contrail", "logs", *_OF_NODES))
        return bool(logs)

    wait_until(are_served, what="served: logs of the nodes")
    return logs[0].splitlines()


def restart(process: HostProcess) -> None:
    """Kills it, and starts it."""
    process.kill()
    process.start(repeatedly=True)  # kubelet ends if containerd still reads what it has stored
