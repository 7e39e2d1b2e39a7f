"""Pods of realistic size: 4.5 kB of JSON each, of which a manager reads a few fields."""

import json
import uuid
from typing import Any

STATUS_KEY = "k8s.v1.cni.cncf.io/network-status"
NETWORKS = "shared/net-a,shared/net-b"
PODS_OF_NAMESPACE = 1000
_NODES_OF_GROUP, _PODS_OF_NODE = 50, 30

_CONTAINER = {
    "name": "app",
    "image": "registry.example.org/team/app:1.27.4",
    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
    "env": [{"name": f"SETTING_{number}", "value": f"value of setting {number}"} for number in range(8)],
    "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
    "volumeMounts": [
        {"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        {"name": "config", "readOnly": True, "mountPath": "/etc/app"},
    ],
    "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}

_SPEC = {
    "volumes": [
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}], "defaultMode": 420}},
        {"name": "config", "configMap": {"name": "app-config", "defaultMode": 420}},
    ],
    "containers": [_CONTAINER],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "app",
    "nodeName": "NODE",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "tolerations": [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ],
    "priority": 0,
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}

_STATUS = {
    "phase": "Running",
    "conditions": [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2025-05-05T05:05:05Z"}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ],
    "hostIP": "192.0.2.7",
    "podIP": "10.32.0.7",
    "startTime": "2025-05-05T05:05:05Z",
    "containerStatuses": [
        {
            "name": "app",
            "state": {"running": {"startedAt": "2025-05-05T05:05:07Z"}},
            "ready": True,
            "restartCount": 0,
            "image": "registry.example.org/team/app:1.27.4",
            "imageID": "registry.example.org/team/app@sha256:" + "0123456789abcdef" * 4,
            "containerID": "containerd://" + "fedcba9876543210" * 4,
        }
    ],
    "qosClass": "Burstable",
}


def _managed(manager: str, fields: Any) -> dict[str, Any]:
    times = {"apiVersion": "v1", "time": "2025-05-05T05:05:05Z", "fieldsType": "FieldsV1"}
    return {"manager": manager, "operation": "Update", **times, "fieldsV1": fields}


def _fields(value: Any) -> Any:
    return {f"f:{key}": _fields(inner) for key, inner in value.items()} if isinstance(value, dict) else {}


_METADATA = {
    "name": "NAME",
    "generateName": "app-5d4b8c7f9b-",
    "namespace": "NAMESPACE",
    "uid": "UID",
    "resourceVersion": "VERSION",
    "creationTimestamp": "2025-05-05T05:05:05Z",
    "labels": {"app": "app", "pod-template-hash": "5d4b8c7f9b", "tier": "backend"},
    "annotations": {
        "checksum/config": "0123456789abcdef" * 4,
        "k8s.v1.cni.cncf.io/networks": NETWORKS,
        STATUS_KEY: "STATUS",
    },
    "ownerReferences": [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "app-5d4b8c7f9b",
            "uid": "0e5f1bb4-7a41-4d8e-b0d5-9c1c3f2a6d94",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ],
    "managedFields": [
        _managed("kube-controller-manager", {"f:spec": _fields(_SPEC | {"containers": _CONTAINER})}),
        _managed("kubelet", {"f:status": _fields(_STATUS)}),
    ],
}


def _template() -> bytes:
    pod = {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS}
    text = json.dumps(pod, separators=(",", ":")).replace("%", "%%")
    text = text.replace(f',"{STATUS_KEY}":"STATUS"', "%(status)b")
    for word in ("NAME", "NAMESPACE", "UID", "VERSION", "NODE"):
        text = text.replace(f'"{word}"', f'"%({word.lower()})b"')
    return text.encode()


_TEMPLATE = _template()


def namespace_of(number: int) -> str:
    """Namespace of the pod with this number."""
    return f"ns-{number // PODS_OF_NAMESPACE}"


def _node_of(number: int) -> int:
    """Pods are spread over a group of nodes until each has its pods, then over the next group."""
    group = number // (_NODES_OF_GROUP * _PODS_OF_NODE)
    return group * _NODES_OF_GROUP + number % _NODES_OF_GROUP


def encoded_pod(number: int, *, version: int, status: bytes | None) -> bytes:
    """The pod with this number as JSON; `status` is its network status as a JSON string, if any."""
    return _TEMPLATE % {
        b"name": b"pod-%d" % number,
        b"namespace": namespace_of(number).encode(),
        b"uid": str(uuid.UUID(int=number + 1)).encode(),
        b"version": b"%d" % version,
        b"node": b"node-%d" % _node_of(number),
        b"status": b"" if status is None else b',"%b":%b' % (STATUS_KEY.encode(), status),
    }
