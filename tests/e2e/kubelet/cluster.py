"""Cluster of two nodes, installed as the page on installation has it, and what users do with it."""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.host import temporary_host
from tests.e2e.interfaces import Interface, interfaces
from tests.e2e.kubelet.busybox_image import write_busybox_image
from tests.e2e.kubelet.checkout import IMAGE as INSTALLED_IMAGE
from tests.e2e.kubelet.checkout import Checkout
from tests.e2e.kubelet.container_runtime import versions
from tests.e2e.kubelet.control_plane import control_plane
from tests.e2e.kubelet.fabric import Fabric
from tests.e2e.kubelet.node import Node
from tests.e2e.kubelet.release import CHECKOUT, Release
from tests.e2e.polling import wait_until
from tests.support.kubectl.client import CommandError, Kubectl
from tests.support.real_apiserver.server import ApiServer

IMAGE = "CONTRAIL_IMAGE"
"""Environment variable with the archive of the image; `scripts/e2e` sets it."""

NAMESPACE = "demo"
"""Namespace of the users; it has the networks `blue`, which is dual stack, and `green`, which is IPv6 only."""

NODES = 2
TIMEOUT = "--timeout=55s"
_ROLLOUT_DEADLINE = 200.0
STATUS_KEY = "k8s.v1.cni.cncf.io/network-status"
WORKLOADS = Path(__file__).with_name("workloads")
_NAD_DEFINITION = "crd/network-attachment-definitions.k8s.cni.cncf.io"


class Pod(NamedTuple):
    """A pod, as the API server has it; `addresses` are by the names of its interfaces, in their order."""

    name: str
    uid: str
    node: str
    addresses: dict[str, list[str]]


class Cluster:
    """The running nodes. `kubectl` and `checkout` are the administrator's.

    `initial_kernel_objects` are those of the nodes before anything was installed.
    """

    def __init__(
        self, kubectl: Kubectl, checkout: Checkout, nodes: list[Node], fabric: Fabric, server: ApiServer
    ) -> None:
        self.kubectl = kubectl
        self.checkout = checkout
        self.nodes = nodes
        self.initial_kernel_objects = [node.kernel_objects() for node in nodes]
        self._fabric = fabric
        self._server = server

    def install(self) -> None:
        """Installs by the commands of the page, waits until all is ready, and creates the namespace of the users."""
        for node in self.nodes:
            node.runtime.ctr("images", "tag", f"docker.io/library/{CHECKOUT.image}", INSTALLED_IMAGE)
        self.checkout.run("install", "kubectl apply -k cluster")
        self.kubectl("wait", "--for=condition=Ready", "node", "--all", TIMEOUT)
        self.kubectl("wait", "--for=condition=established", _NAD_DEFINITION, TIMEOUT)
        self.kubectl("create", "namespace", NAMESPACE)
        self.apply("networks")

    def deploy(self, release: Release) -> None:
        """Applies the manifests of a release, and waits until all of it runs."""
        self.kubectl("apply", "-k", str(release.overlay))
        self.await_rollout()

    def await_rollout(self) -> None:
        """Waits until what was applied or changed in the namespace of the manifests is ready."""
        for each in ("daemonset/contrail-node", "deployment/contrail-manager"):
            command = ("-n", "contrail", "rollout", "status", each, "--timeout=20s")
            wait_until(
                lambda command=command: _succeeds(lambda: self.kubectl(*command)),  # type: ignore[misc]
                what=f"rolled out: {each}",
                otherwise=lambda: self.kubectl("-n", "contrail", "get", "pods,events"),
                deadline=_ROLLOUT_DEADLINE,
            )

    def images(self) -> set[str]:
        """The images of all containers of the manifests, except those that are ending."""
        pods = json.loads(self.kubectl("-n", "contrail", "get", "pods", "-o", "json"))["items"]
        remaining = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"])
        return {container["image"] for pod in remaining for container in pod["spec"]["containers"]}

    @contextlib.contextmanager
    def without_api_server(self) -> Iterator[None]:
        """The API server is killed, and started again at the end."""
        self._server.kill()
        try:
            yield
        finally:
            with self._fabric.namespace.inside():
                self._server.start()

    @contextlib.contextmanager
    def steady_pods(self) -> Iterator[list[Pod]]:
        """Yields a pod of each node, which run until the context is left."""
        # Where the runtime calls STATUS, a node may be unready while its programs are replaced, and then gets no pod.
        self.kubectl("wait", "--for=condition=Ready", "node", "--all", TIMEOUT)
        self.apply("steady")
        self("rollout", "status", "daemonset/steady", TIMEOUT)
        pods = self.addressed_pods("steady")
        assert len(pods) == len(self.nodes)
        yield pods
        self.delete("steady")

    def await_deployment(self, name: str) -> None:
        """Waits until all pods of a deployment of the users are ready, and none of its older ones is left."""
        try:
            self("rollout", "status", f"deployment/{name}", TIMEOUT)
        except CommandError as error:
            raise AssertionError(f"{error}{self('get', 'pods,events')[-5000:]}") from error

    def __call__(self, *arguments: str) -> str:
        """Runs kubectl in the namespace of the users."""
        return self.kubectl("-n", NAMESPACE, *arguments)

    def get(self, *what: str) -> Any:
        """An object of the namespace, or a list of them."""
        return json.loads(self("get", "-o", "json", *what))

    def apply(self, workload: str) -> None:
        """Creates the objects of a file."""
        self("apply", "-f", str(WORKLOADS / f"{workload}.yaml"))

    def delete(self, workload: str) -> None:
        """Deletes the objects of a file that exist, and waits until they and their pods are gone."""
        file = str(WORKLOADS / f"{workload}.yaml")
        self("delete", "-f", file, "--ignore-not-found", "--cascade=foreground", TIMEOUT)

    def pods(self, app: str) -> list[Pod]:
        """The pods of a workload, in the order of their names."""
        items = self.get("pods", "-l", f"app={app}")["items"]
        return sorted(map(_pod, items), key=lambda pod: pod.name)

    def addressed_pods(self, app: str) -> list[Pod]:
        """Waits until the pods of a workload are annotated with their addresses, and returns them."""
        wait_until(lambda: all(pod.addresses for pod in self.pods(app)), what=f"annotated: pods of {app}")
        return self.pods(app)

    def virtual_machines(self) -> list[str]:
        """The uids of all pods that have interfaces, in any namespace."""
        items = json.loads(self.kubectl("get", "virtualmachines", "-A", "-o", "json"))["items"]
        return [item["metadata"]["name"] for item in items]

    def run(self, pod: str, *command: str) -> str:
        """Runs a command in a pod; returns its output."""
        return self("exec", pod, "--", *command)

    def interfaces(self, pod: str) -> dict[str, Interface]:
        """The interfaces that a pod has."""
        return interfaces(lambda *arguments: self.run(pod, "ip", *arguments))

    def await_reachable(self, source: Pod, target: Pod) -> None:
        """Waits until echo requests to each address of the target are answered."""
        addresses = [address for each in target.addresses.values() for address in each]
        script = f"for address in {' '.join(addresses)}; do ping -c 1 -W 1 $address || exit; done"
        command = (source.name, "sh", "-c", script)
        wait_until(lambda: _succeeds(lambda: self.run(*command)), what=f"reached from {source.name}: {target}")


def _succeeds(command: Callable[[], str]) -> bool:
    try:
        command()
    except CommandError:
        return False
    return True


def _pod(item: dict[str, Any]) -> Pod:
    metadata = item["metadata"]
    status = json.loads(metadata.get("annotations", {}).get(STATUS_KEY, "[]"))
    addresses = {each["interface"]: each["ips"] for each in status}
    return Pod(metadata["name"], metadata["uid"], item["spec"].get("nodeName", ""), addresses)


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Runs a control plane and nodes, without the manifests, until the context is left."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ct-")))
        busybox = folder / "busybox.tar"
        write_busybox_image(busybox)
        images = [Path(os.environ[IMAGE]).absolute(), busybox]
        fabric = Fabric()
        stack.callback(fabric.close)
        (folder / "control-plane").mkdir()
        server = stack.enter_context(control_plane(fabric, folder / "control-plane"))
        nodes = []
        for number, containerd in zip(range(1, NODES + 1), versions(), strict=True):
            work = folder / f"node-{number}"
            work.mkdir()
            host = stack.enter_context(temporary_host())
            node = Node(number, host, fabric, work, server.kubeconfig(), containerd)
            stack.callback(node.kill)
            nodes.append(node)
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda node: node.start(images), nodes))
        enter = ("nsenter", f"--net={fabric.namespace.path}", "--")
        kubectl = Kubectl(server.kubeconfig(), enter=enter)
        yield Cluster(kubectl, Checkout(folder / "checkout", kubectl), nodes, fabric, server)
