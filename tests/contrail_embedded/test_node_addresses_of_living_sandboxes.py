"""The addresses of a pod deleted while its sandbox lives stay allocated until its ports are unplugged."""

import json
import urllib.request
from typing import Any

from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write


def _plug(node: EmbeddedProcess, name: str, *, container: str) -> str:
    """Plugs the interfaces of a pod as a plugin does and returns its VirtualMachine's uuid."""
    items: list[dict[str, Any]] = node.get(f"/vm-cfg/k8s__demo__{name}")
    ports = [
        {
            "vm-uuid": item["vm-uuid"],
            "vmi-uuid": item["id"],
            "vn-uuid": item["vn-id"],
            "vm-name": f"k8s__demo__{name}",
            "host-ifname": f"tap{index}",
            "vm-id": container,
        }
        for index, item in enumerate(items)
    ]
    _send(node, "POST", "/vm", json.dumps(ports).encode())
    return str(items[0]["vm-uuid"])


def _send(node: EmbeddedProcess, method: str, path: str, body: bytes | None = None) -> None:
    request = urllib.request.Request(f"http://{node.listen}{path}", data=body, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert json.load(answer) == {}


def test_the_next_pod_waits_for_the_sandbox_not_for_the_manifest(node: EmbeddedProcess) -> None:
    write(node.manifests / "nads.yaml", nad("tiny", cidr="10.9.0.0/30"))
    write(node.manifests / "old.yaml", pod("old", networks="tiny"))
    node.command = [*node.command, "--tcp-writes"]
    node.start()
    vm_uuid = _plug(node, "old", container="c1")
    write(node.manifests / "new.yaml", pod("new", networks="tiny"))
    node.wait_until(lambda: node.pod_states().get("demo/new") == "Waiting", what="waiting")
    (node.manifests / "old.yaml").unlink()
    node.wait_until(lambda: "demo/old" not in node.pod_states(), what="deleted")
    (event,) = node.items("events", "?namespace=demo&name=new")
    assert event["reason"] == "AddressesExhausted"
    assert "k8s-tiny-pod-network" in event["message"]

    _send(node, "DELETE", f"/vm/{vm_uuid}?vm-id=c1")
    node.wait_until(lambda: node.pod_states()["demo/new"] == "Ready", what="ready")
    (_, second) = node.get("/vm-cfg/k8s__demo__new")
    assert second["ip-address"] == "10.9.0.2"
