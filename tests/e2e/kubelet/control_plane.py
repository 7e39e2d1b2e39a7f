"""Control plane: an API server that kubelets and pods use, with controllers and a scheduler."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.kubelet.fabric import CONTROL_PLANE, Fabric
from tests.support.real_apiserver.process import ServerProcess
from tests.support.real_apiserver.server import BINARIES, ApiServer

_RESTARTED = ("sh", "-c", 'while :; do setpriv --pdeathsig KILL "$@"; sleep 1; done', "restarted")
"""A command that runs another one again when it ends, as kubelet does: controllers end if the server is slow."""


class ClusterApiServer(ApiServer):
    """Has the address of the control plane, which is also the endpoint of the Service `kubernetes`."""

    address = CONTROL_PLANE

    def _settings(self) -> dict[str, object]:
        settings = super()._settings()
        del settings["disable-admission-plugins"]
        return settings | {
            "allow-privileged": "true",
            "endpoint-reconciler-type": "lease",
            "kubelet-preferred-address-types": "InternalIP",
        }


@contextlib.contextmanager
def control_plane(fabric: Fabric, work: Path) -> Iterator[ClusterApiServer]:
    """Runs all of it, with its files below `work`, until the context is left."""
    with contextlib.ExitStack() as stack, fabric.namespace.inside():
        server = ClusterApiServer(work, Path(os.environ[BINARIES]))
        stack.callback(server.etcd.kill)
        server.etcd.start()
        stack.callback(server.kill)
        server.start()
        for process in _controllers(server, work):
            stack.callback(process.kill)
            process.launch()
        running = stack.pop_all()
    with running:
        yield server


def _controllers(server: ClusterApiServer, work: Path) -> Iterator[ServerProcess]:
    options = {
        "kube-controller-manager": (
            "--use-service-account-credentials",
            f"--service-account-private-key-file={server.service_account_key}",
            f"--root-ca-file={server.authority}",
        ),
        "kube-scheduler": (),
    }
    for name, further in options.items():
        command = *_RESTARTED, program(name), f"--kubeconfig={server.kubeconfig()}", "--leader-elect=false", *further
        # The tests wait for what they do.
        yield ServerProcess(command, work / f"{name}.log", is_ready=lambda: True)


def program(name: str) -> str:
    """Path of a program that `scripts/e2e` has in PATH."""
    found = shutil.which(name)
    assert found is not None, f"{name} is not in PATH: scripts/kubernetes builds it"
    return found
