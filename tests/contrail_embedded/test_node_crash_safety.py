"""Killed in the middle of its work and started again, it ends where it would have ended without."""

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


def _lists(node: EmbeddedProcess) -> dict[str, list[tuple[str, ...]]]:
    return {
        item["name"]: [
            (interface["uuid"], interface["mac"], *(address["address"] for address in interface["addresses"]))
            for interface in item["machine"]["interfaces"]
        ]
        for item in node.items("pods")
    }


def test_every_list_is_whole_no_address_is_given_twice_and_none_is_lost(node: EmbeddedProcess) -> None:
    write(node.manifests / "nads.yaml", nad("blue", cidr="10.1.0.0/16, fd00:1::/64"), nad("green", cidr="10.2.0.0/22"))
    for _ in range(4):
        node.start()
        if not (node.manifests / "pod-000.yaml").exists():
            _add_pods(node)
        node.wait_until(lambda: len(node.items("pods")) > 0, what="at work")
        time.sleep(random.uniform(0, 0.1))  # noqa: TID251 - a moment that nobody chose
        node.kill()
    node.start()
    node.wait_until(lambda: Counter(node.pod_states().values()) == {"Ready": PODS}, what="done")
    lists = _lists(node)
    assert {len(interfaces) for interfaces in lists.values()} == {4}
    given = list(_addresses(node))
    assert len(given) == PODS * (1 + 2 + 1 + 2)
    assert len(given) == len(set(given))


def test_a_restart_changes_no_list(node: EmbeddedProcess) -> None:
    write(node.manifests / "nads.yaml", nad("blue", cidr="10.1.0.0/16"))
    write(node.manifests / "pods.yaml", *(pod(f"web-{number}", networks="blue") for number in range(20)))
    node.start()
    before = _lists(node)
    node.kill()
    (node.manifests / "pods.yaml").rename(node.manifests / "renamed.yaml")
    node.start()
    assert _lists(node) == before


def test_what_disappeared_meanwhile_is_freed(node: EmbeddedProcess) -> None:
    write(node.manifests / "nads.yaml", nad("blue", cidr="10.1.0.0/16"))
    write(node.manifests / "one.yaml", pod("one", networks="blue"))
    write(node.manifests / "two.yaml", pod("two", networks="blue"))
    node.start()
    node.kill()
    (node.manifests / "one.yaml").unlink()
    node.start()
    node.wait_until(lambda: list(_lists(node)) == ["two"], what="freed")
    assert node.get("/vm-cfg/k8s__demo__one") is None
    assert len(list(_addresses(node))) == 2
