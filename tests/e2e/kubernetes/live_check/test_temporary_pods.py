"""Temporary pods of the live check on a real API server: how they are made, and that none is left.

No manager runs, so pods that become ready have no interface.
"""

import json
import signal
from typing import Any

import pytest

from tests.e2e.kubernetes.live_check.live_check import LiveCheck
from tests.e2e.polling import wait_until

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TOO_MANY = (
    "--live: 2 pods are needed (2 nodes, 0 networks and index 0), more than --max-pods 1: name some by --node and "
    "--network"
)
_INTERRUPTED = (130, "", "contrailctl: interrupted\n")


def findings(ended: tuple[int, str, str]) -> dict[str, str]:
    """Reasons by node of the findings, all of which are pods that are not ready."""
    status, out, err = ended
    assert (status, err) == (1, "")
    found = json.loads(out)["findings"]
    assert {each["fault"] for each in found} == {"unready"}
    assert all(each["advice"] for each in found)
    return {each["node"]: each["found"] for each in found}


def await_nothing_left(live: LiveCheck) -> None:
    """Namespaces go a moment after the command has ended, as their deletion is the controller's."""
    wait_until(lambda: live.left() == [], what="gone", otherwise=lambda: str(live.left()))


def never(_: Any) -> bool:
    return False


def test_each_node_has_a_pod_that_pod_security_admits_and_nothing_is_left(live: LiveCheck) -> None:
    assert findings(live.run()) == dict.fromkeys(("node-1", "node-2"), "no interface in the store")
    assert {pod["spec"]["nodeName"] for pod in live.seen.values()} == {"node-1", "node-2"}
    for pod in live.seen.values():
        spec = pod["spec"]
        assert spec["activeDeadlineSeconds"] > 0
        assert {"operator": "Exists"} in spec["tolerations"]
        assert spec["automountServiceAccountToken"] is False
        assert all("token" not in volume["name"] for volume in spec.get("volumes", ()))
    await_nothing_left(live)


def test_an_existing_namespace_keeps_what_it_has(live: LiveCheck, namespace: str) -> None:
    kept = {"metadata": {"name": "kept"}, "spec": {"containers": [{"name": "main", "image": "none.example/none"}]}}
    live.server.ask("POST", f"/api/v1/namespaces/{namespace}/pods", kept)
    findings(live.run("--live-namespace", namespace))
    assert {pod["metadata"]["namespace"] for pod in live.seen.values()} == {namespace}
    assert live.left() == []
    items = live.server.ask("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert [pod["metadata"]["name"] for pod in items] == ["kept"]


def test_a_pod_that_does_not_get_ready_is_named_with_the_reason(live: LiveCheck) -> None:
    def start(pod: Any) -> bool:
        if pod["spec"]["nodeName"] == "node-1":
            _warn(live, pod, "FailedCreatePodSandBox", "plugin contrail-k8s-cni: no address is free")
        else:
            waiting = {"reason": "ErrImagePull", "message": "none.example: no such host"}
            common = {"name": "check", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
            status = {"containerStatuses": [{**common, "state": {"waiting": waiting}}]}
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            live.server.ask("PATCH", f"{path}/status", {"status": status})
        return False

    live.is_started = start
    assert findings(live.run("--timeout", "5")) == {
        "node-1": "FailedCreatePodSandBox: plugin contrail-k8s-cni: no address is free",
        "node-2": "ErrImagePull: none.example: no such host",
    }
    await_nothing_left(live)


def test_a_pod_that_nobody_starts_is_named_with_its_phase(live: LiveCheck) -> None:
    live.is_started = never
    assert findings(live.run("--timeout", "2", nodes=("node-2",))) == {"node-2": "phase Pending"}
    await_nothing_left(live)


def test_pods_that_are_rejected_are_named_with_the_servers_message(live: LiveCheck, namespace: str) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    live.server.ask("POST", path, quota)
    status = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
    live.server.ask("PATCH", f"{path}/none/status", status)
    reasons = findings(live.run("--live-namespace", namespace, nodes=("node-1",)))
    assert "exceeded quota: none" in reasons["node-1"]
    assert live.seen == {}


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_an_interrupted_check_removes_everything(live: LiveCheck, number: signal.Signals) -> None:
    live.is_started = never
    process = live.start()
    live.await_pods(2)
    assert live.interrupt(process, number) == _INTERRUPTED
    assert not [name for name in live.seen if name in live.left()]
    await_nothing_left(live)


def test_what_a_killed_check_has_left_is_removed_by_the_next_one(live: LiveCheck) -> None:
    live.is_started = never
    process = live.start()
    live.await_pods(2)
    live.interrupt(process, signal.SIGKILL)
    killed = set(live.seen)
    assert killed < set(live.left())
    live.is_started = lambda _: True
    findings(live.run(nodes=("node-1",)))
    await_nothing_left(live)


def test_pods_of_a_check_that_runs_are_left_alone(live: LiveCheck) -> None:
    live.is_started = never
    first = live.start()
    try:
        live.await_pods(2)
        pods = set(live.seen)
        live.is_started = lambda pod: pod["metadata"]["name"] not in pods
        findings(live.run(nodes=("node-1",)))
        assert pods < set(live.left())
    finally:
        assert live.interrupt(first, signal.SIGTERM) == _INTERRUPTED
    await_nothing_left(live)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--network", "demo/none"), "network demo/none not found: no NAD with this namespace/name defines one"),
        (("--node", "node-9"), "node node-9 not found"),
        (("--max-pods", "1"), _TOO_MANY),
    ],
)
def test_what_cannot_be_checked_ends_with_status_2_before_anything_is_made(
    live: LiveCheck, options: tuple[str, ...], error: str
) -> None:
    assert live.run(*options) == (2, "", f"contrailctl: {error}\n")
    assert (live.seen, live.left()) == ({}, [])


def test_an_image_that_nobody_knows_ends_with_status_2(live: LiveCheck) -> None:
    message = "contrailctl: --live: no contrail-node pod in namespace contrail: name its --namespace or an --image\n"
    assert live.run("--image", "") == (2, "", message)


def test_the_image_is_that_of_the_nodes_daemon(live: LiveCheck) -> None:
    live.server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "contrail"}})
    containers = [{"name": name, "image": f"registry.example/{name}:1"} for name in ("agent", "cnid")]
    pod = {
        "metadata": {"name": "contrail-node-x", "labels": {"app.kubernetes.io/name": "contrail-node"}},
        "spec": {"nodeName": "node-1", "hostNetwork": True, "containers": containers},
    }
    live.server.ask("POST", "/api/v1/namespaces/contrail/pods", pod)
    try:
        findings(live.run("--image", ""))
    finally:
        live.server.ask("DELETE", "/api/v1/namespaces/contrail/pods/contrail-node-x", {"gracePeriodSeconds": 0})
    images = {each["spec"]["containers"][0]["image"] for each in live.seen.values()}
    assert images == {"registry.example/cnid:1"}
    await_nothing_left(live)


def test_an_operator_who_may_not_create_pods_gets_one_error(live: LiveCheck) -> None:
    _act_as(live, "reader", {})
    status, out, err = live.run()
    assert (status, out) == (2, "")
    assert "cannot create resource" in err
    assert err.count("\n") == 1
    assert (live.seen, live.left()) == ({}, [])


def test_the_documented_rights_suffice(live: LiveCheck) -> None:
    changed = ["create", "delete"]
    _act_as(live, "operator", {"pods": changed, "namespaces": changed, "events": ["list"], "services": ["get"]})
    assert findings(live.run()) == dict.fromkeys(("node-1", "node-2"), "no interface in the store")
    await_nothing_left(live)


def _act_as(live: LiveCheck, name: str, rights: dict[str, list[str]]) -> None:
    """Lets the command act as an account that may read what every check reads, and has further rights."""
    rules = [
        {"apiGroups": ["opencontrail.org"], "resources": ["*"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["list"]},
        *({"apiGroups": [""], "resources": [kind], "verbs": verbs} for kind, verbs in rights.items()),
    ]
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
    }
    access = "/apis/rbac.authorization.k8s.io/v1"
    live.server.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    live.server.ask("POST", f"{access}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    live.server.ask("POST", f"{access}/clusterrolebindings", binding)
    live.kubeconfig = live.server.kubeconfig(token=live.server.service_account_token("default", name))


def _warn(live: LiveCheck, pod: Any, reason: str, message: str) -> None:
    metadata = pod["metadata"]
    event = {
        "metadata": {"generateName": "warning-"},
        "involvedObject": {"kind": "Pod", **{key: metadata[key] for key in ("name", "namespace", "uid")}},
        "type": "Warning",
        "reason": reason,
        "message": message,
    }
    live.server.ask("POST", f"/api/v1/namespaces/{metadata['namespace']}/events", event)
