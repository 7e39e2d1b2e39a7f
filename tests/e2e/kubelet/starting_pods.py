"""Pods of three interfaces that are created and deleted while something else happens."""

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from typing import Self

from tests.e2e.kubelet.cluster import TIMEOUT, Cluster
from tests.e2e.polling import wait_until
from tests.support.kubectl.client import CommandError

_INTERVAL = 1.0  # seconds between two pods
_AT_ONCE = 6
_DEADLINE = 150.0  # seconds: a kubelet that was killed may take a minute until it starts pods
_APP = "starting"
_SPEC = json.dumps({"spec": {"terminationGracePeriodSeconds": 1}})


class _StartingPods:
    """Creates a pod at each interval, and deletes the oldest if it is ready.

    `started` counts them; `names` are those that it has not deleted.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name="starting-pods")
        self.names: list[str] = []
        self.started = 0
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def delete(self) -> None:
        """Deletes those that are left."""
        self._cluster("delete", "pods", "-l", f"app={_APP}", TIMEOUT)

    def _guarded(self) -> None:
        try:
            while not self._ending.wait(_INTERVAL):
                self._create()
                self._delete_oldest()
        except (CommandError, subprocess.TimeoutExpired) as error:
            self.error = error

    def _create(self) -> None:
        name = f"{_APP}-{self.started}"
        annotations = "--annotations=k8s.v1.cni.cncf.io/networks=blue,green"
        options = (f"--labels=app={_APP}", annotations, "--image=busybox:1", f"--overrides={_SPEC}")
        self._cluster("run", name, *options, "--command", "--", "sleep", "1000")
        self.names.append(name)
        self.started += 1

    def _delete_oldest(self) -> None:
        if len(self.names) > _AT_ONCE and _is_ready(self._cluster, self.names[0]):
            self._cluster("delete", "pod", self.names.pop(0), "--wait=false")


@contextlib.contextmanager
def every_pod_starts(cluster: Cluster, *, at_least: int) -> Iterator[None]:
    """Starts pods until the context is left, then fails if one of them does not become ready, or was restarted."""
    pods = _StartingPods(cluster)
    try:
        with pods:
            yield
        assert pods.error is None, pods.error
        assert pods.started >= at_least
        _await_ready(cluster, pods.names)
        assert restarts(cluster, _APP) == {0}
    finally:
        pods.delete()


def _await_ready(cluster: Cluster, names: list[str]) -> None:
    wait_until(
        lambda: all(_is_ready(cluster, name) for name in names),
        what=f"ready: {names}",
        otherwise=lambda: cluster("get", "pods,events", "-o", "wide"),
        deadline=_DEADLINE,
    )


def restarts(cluster: Cluster, app: str) -> set[int]:
    """How often containers of a workload's pods were restarted."""
    pods = cluster.get("pods", "-l", f"app={app}")["items"]
    return {status["restartCount"] for pod in pods for status in pod["status"]["containerStatuses"]}


def _is_ready(cluster: Cluster, pod: str) -> bool:
    conditions = cluster.get("pod", pod)["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
