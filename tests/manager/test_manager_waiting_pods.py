"""Waiting pods are tried again only for changes that matter, and delay no others: what is resolved is counted."""

import pytest

from contrail_config.kube.work_queue import DEFERRED_WORKERS
from manager.controller import pod_reconciler
from manager.dependencies import nad_dependency
from manager.mapping.interface_resolution import ResolvedInterfaces, resolve_interfaces
from manager.source import Applied, Pod
from tests.support.pods import make_namespace, make_pod, reference
from tests.support.running_manager import RunningManager


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pods that were resolved, once for each time."""
    names: list[str] = []

    def resolve(pod: Pod, **given: object) -> ResolvedInterfaces:
        names.append(pod.name)
        return resolve_interfaces(pod, **given)  # type: ignore[arg-type]  # as the reconciler passes them

    monkeypatch.setattr(pod_reconciler, "resolve_interfaces", resolve)
    return names


@pytest.mark.parametrize("annotations", [{}, {"isolation": "true"}, {"network": reference("k8s-blue", "missing")}])
async def test_a_namespace_that_is_sent_again_unchanged_reconciles_no_waiting_pod(
    running: RunningManager, resolved: list[str], annotations: dict[str, str]
) -> None:
    namespace = make_namespace("blue", **annotations)
    await running.send_list(namespace, *(make_pod(f"waiting-{number}", networks="missing") for number in range(10)))
    resolved.clear()
    await running.send(*[Applied(namespace)] * 20)
    assert resolved == []


async def test_a_namespace_that_chooses_another_network_reconciles_its_waiting_pods(
    running: RunningManager, resolved: list[str]
) -> None:
    await running.send_list(make_namespace("blue"), make_pod("waiting", networks="missing"))
    resolved.clear()
    await running.apply(make_namespace("blue", network=reference("k8s-blue", "missing")))
    assert resolved == ["waiting"]


async def test_new_pods_do_not_wait_for_those_that_are_tried_again(
    running: RunningManager, resolved: list[str]
) -> None:
    waiting = [make_pod(f"waiting-{number}", networks="missing") for number in range(200)]
    await running.send_list(*waiting)
    resolved.clear()
    running.manager.pods.requeue_dependents(nad_dependency("blue/missing"))
    running.scripted.send(*(Applied(make_pod(pod.name, networks="missing,missing")) for pod in waiting[100:]))
    await running.apply(make_pod("new", namespace="red"))
    assert resolved.index("new") <= 2 * DEFERRED_WORKERS
    assert sorted(set(resolved)) == sorted(["new", *(pod.name for pod in waiting)])
