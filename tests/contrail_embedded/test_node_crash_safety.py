"""A node that is killed at any moment and restarted reaches the same state as one that was not killed."""

import random
import time
from collections import Counter
from collections.abc import Iterator

from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write

PODS = 200


def _addresses(node: EmbeddedProcess) -> Iterator[tuple[str, str]]:
    for item in node.items("interfaces"):
        for address in item["interface"]["addresses"]:
            yield item["interface"]["networkUuid"], address["address"]


def _add_pods(node: EmbeddedProcess) -> None:
    for number in range(PODS):
        write(node.manifests / f"pod-{number:03}.yaml", pod(f"web-{number:03}", networks="blue,green,blue"))


def _interfaces(node: EmbeddedProcess) -> dict[str, list[tuple[str, ...]]]:
    return {
        item["name"]: [
            (interface["uuid"], interface["mac"], *(address["address"] for address in interface["addresses"]))
            for interface in item["machine"]["interfaces"]
        ]
        for item in node.items("pods")
    }


def test_interfaces_are_complete_and_no_address_is_allocated_twice_or_leaked(node: EmbeddedProcess) -> None:
    write(node.manifests / "nads.yaml", nad("blue", cidr="10.1.0.0/16, fd00:1::/64"), nad("green", cidr="10.2.0.0/22"))
    for _ in range(4):
        node.start()
        if not (node.manifests / "pod-000.yaml").exists():
            _add_pods(node)
        node.wait_until(lambda: len(node.items("pods")) > 0, what="allocating")
        time.sleep(random.uniform(0, 0.1))  # noqa: TID251 - a random moment
        node.kill()
    node.start()
    node.wait_until(lambda: Counter(node.pod_states().values()) == {"Ready": PODS}, what="done")
    interfaces_of = _interfaces(node)
    assert {len(interfaces) for interfaces in interfaces_of.values()} == {4}
    allocated = list(_addresses(node))
    assert len(allocated) == PODS * (1 + 2 + 1 + 2)
    assert len(allocated) == len(set(allocated))


def test_a_restart_changes_no_interfaces(node: EmbeddedProcess) -> None:
    write(node.manifests / "nads.yaml", nad("blue", cidr="10.1.0.0/16"))
    write(node.manifests / "pods.yaml", *(pod(f"web-{number}", networks="blue") for number in range(20)))
    node.start()
    before = _interfaces(node)
    node.kill()
    (node.manifests / "pods.yaml").rename(node.manifests / "renamed.yaml")
    node.start()
    assert _interfaces(node) == before


def test_pods_deleted_while_it_was_down_are_released(node: EmbeddedProcess) -> None:
    write(node.manifests / "nads.yaml", nad("blue", cidr="10.1.0.0/16"))
    write(node.manifests / "one.yaml", pod("one", networks="blue"))
    write(node.manifests / "two.yaml", pod("two", networks="blue"))
    node.start()
    node.kill()
    (node.manifests / "one.yaml").unlink()
    node.start()
    node.wait_until(lambda: list(_interfaces(node)) == ["two"], what="released")
    assert node.get("/vm-cfg/k8s__demo__one") is None
    assert len(list(_addresses(node))) == 2
