"""Parts of a cluster that serve the temporary pods of the live check: kubelets, and the namespace controller."""

import threading
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from contrailctl.check.live.run import RUN_LABEL
from tests.support.real_apiserver.server import ApiServer

Object = dict[str, Any]

_POLL = 0.1  # seconds
_END = 60.0
_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_WITHOUT_SANDBOX = {"phase": "Succeeded", "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}]}


class PlayedKubelet:
    """Kubelet of a node, or of all (empty).

    `start` starts a pod and says whether it did; it is called again until then. `end` ends one, started or not.
    """

    def __init__(
        self, server: ApiServer, node: str, start: Callable[[Object], bool], end: Callable[[Object], None]
    ) -> None:
        fields = f"&fieldSelector=spec.nodeName%3D{node}" if node else ""
        self._query = f"/api/v1/pods?labelSelector={RUN_LABEL}{fields}"
        self._server = server
        self._start = start
        self._end = end
        self._started: set[str] = set()

    def look(self) -> None:
        """Starts and ends what is to be."""
        for pod in self._server.ask("GET", self._query)["items"]:
            if "deletionTimestamp" in pod["metadata"]:
                self._end(pod)
                self._server.ask("PATCH", f"{path_of(pod)}/status", {"status": _WITHOUT_SANDBOX})
                self._server.ask("DELETE", path_of(pod), {"gracePeriodSeconds": 0})
            elif pod["metadata"]["uid"] not in self._started and self._start(pod):
                self._server.ask("PATCH", f"{path_of(pod)}/status", {"status": _READY})
                self._started.add(pod["metadata"]["uid"])


class NamespaceController:
    """Finishes the deletion of namespaces that have no pods any more."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def look(self) -> None:
        """Finishes what can be."""
        for each in self._server.ask("GET", f"/api/v1/namespaces?labelSelector={RUN_LABEL}")["items"]:
            path = f"/api/v1/namespaces/{each['metadata']['name']}"
            if "deletionTimestamp" in each["metadata"] and not self._server.ask("GET", f"{path}/pods")["items"]:
                self._server.ask("PUT", f"{path}/finalize", {**each, "spec": {"finalizers": []}})


@contextmanager
def playing(*players: PlayedKubelet | NamespaceController) -> Iterator[None]:
    """Lets each of them look again and again."""
    stopped = threading.Event()

    def play(player: PlayedKubelet | NamespaceController) -> None:
        while not stopped.wait(_POLL):
            try:
                player.look()
            except urllib.error.HTTPError as error:
                error.close()  # somebody else was faster

    threads = [threading.Thread(target=play, args=(player,)) for player in players]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join(_END)


def path_of(pod: Object) -> str:
    """Path of a pod in the API."""
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
