"""Two pods behind a Service of kube-proxy, which kubelet probes."""

from collections.abc import Iterator

import pytest

from tests.e2e.kubelet.cluster import TIMEOUT, Cluster, Pod
from tests.e2e.polling import wait_until

_CONNECTIONS = 20
"""Half of them to each pod; that all reach the same by chance is as good as impossible."""


@pytest.fixture(scope="module")
def pods(cluster: Cluster) -> Iterator[list[Pod]]:
    """The pods, on different nodes."""
    cluster.apply("web")
    cluster("rollout", "status", "deployment/web", TIMEOUT)
    yield cluster.pods("web")
    cluster.delete("web")


def test_a_service_distributes_connections_over_pods_on_both_nodes(cluster: Cluster, pods: list[Pod]) -> None:
    for client in pods:
        await_answers(cluster, client, pods)


def test_a_pod_that_fails_its_readiness_probe_leaves_the_service(cluster: Cluster, pods: list[Pod]) -> None:
    failing, other = pods
    cluster.run(failing.name, "mv", "/www/index.html", "/tmp")
    await_answers(cluster, other, [other])
    cluster.run(failing.name, "mv", "/tmp/index.html", "/www")
    await_answers(cluster, other, pods)


def test_a_pod_that_fails_its_liveness_probe_is_restarted_with_its_interfaces(
    cluster: Cluster, pods: list[Pod]
) -> None:
    name = pods[0].name
    before = cluster.interfaces(name)
    cluster.run(name, "touch", "/stuck")
    wait_until(lambda: container(cluster, name)["restartCount"] == 1, what="restarted")
    cluster("wait", "--for=condition=Ready", f"pod/{name}", TIMEOUT)
    assert cluster.interfaces(name) == before


def test_logs_of_a_pod_are_read_from_its_node(cluster: Cluster, pods: list[Pod]) -> None:
    for pod in pods:
        assert cluster("logs", pod.name) == "serving\n"


def container(cluster: Cluster, pod: str) -> dict[str, int]:
    """The status of a pod's container."""
    status: dict[str, int] = cluster.get("pod", pod)["status"]["containerStatuses"][0]
    return status


def await_answers(cluster: Cluster, client: Pod, expected: list[Pod]) -> None:
    """Waits until connections from a pod to the Service are answered by these pods, and no others."""
    address = cluster.get("service", "web")["spec"]["clusterIP"]
    # Debian's static busybox has a `wget` that crashes where no file names the services.
    request = f"printf 'GET /index.html HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {address} 80 | tail -n 1"
    script = f"for i in $(seq {_CONNECTIONS}); do {request}; done"
    answers = [""]

    def are_as_expected() -> bool:
        answers.append(cluster.run(client.name, "sh", "-c", script))
        return set(answers[-1].split()) == {pod.name for pod in expected}

    wait_until(are_as_expected, what=f"answered by {expected}", otherwise=lambda: answers[-1])
