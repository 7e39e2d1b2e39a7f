"""Rule 5 begins with seeing that a pod asks for something else than it was given."""

import json
import re

import pytest

from manager.mapping.changes import difference
from manager.source import Nad, Pod
from tests.support.catalogues import build, draft
from tests.support.pods import make_nad, make_pod, reference

NADS = (make_nad("net-a"), make_nad("net-b", cidr="10.2.0.0/16"))
TO_B = reference("k8s-blue", "k8s-net-b-pod-network")


def one(**described: object) -> str:
    return json.dumps([{"name": "net-a", **described}])


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (make_pod(), make_pod(networks="net-a"), "2 interfaces instead of 1"),
        (make_pod(networks="net-a"), make_pod(), "1 interfaces instead of 2"),
        (
            make_pod(networks="net-a"),
            make_pod(networks="net-b"),
            "index 1: network blue/net-b instead of blue/net-a",
        ),
        (make_pod(networks="net-a"), make_pod(networks="net-a@left"), "index 1: interface left instead of none"),
        (make_pod(networks="net-a@left"), make_pod(networks="net-a"), "index 1: interface none instead of left"),
        (make_pod(networks="net-a"), make_pod(networks=one(ips=["10.1.9.9"])), "index 1: ips 10.1.9.9"),
        (make_pod(networks="net-a"), make_pod(networks=one(mac="02:00:00:00:00:07")), "mac 02:00:00:00:00:07"),
        (make_pod(networks="net-a"), make_pod(networks="net-a", default_gw="net-a"), "default-gw true instead of none"),
        (make_pod(), make_pod(network=TO_B), "index 0: network .*k8s-net-b-pod-network instead of .*k8s-default-pod"),
    ],
)
def test_a_change_is_told(before: Pod, after: Pod, told: str) -> None:
    change = difference(build(before, *NADS), draft(after, *NADS).interfaces)
    assert change is not None
    assert re.search(told, change), change


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (make_pod(networks="net-a,net-b"), make_pod(networks="blue/net-a , net-b")),
        (make_pod(networks="net-a"), make_pod(networks='[{"name": "net-a"}]')),
        (make_pod(networks=one(ips=["10.1.9.9"])), make_pod(networks=one(ips=["10.1.9.9/16"]))),
        (make_pod(networks=one(ips=["10.1.9.9"])), make_pod(networks="net-a")),
    ],
)
def test_the_same_in_other_words_is_no_change(before: Pod, after: Pod) -> None:
    assert difference(build(before, *NADS), draft(after, *NADS).interfaces) is None


@pytest.mark.parametrize(
    "changed", [make_nad("net-a", config='{"type": "contrail-k8s-cni", "mtu": 1400, "name": "renamed"}')]
)
def test_what_a_network_changes_is_no_change_of_the_pod(changed: Nad) -> None:
    pod = make_pod(networks="net-a")
    assert difference(build(pod, *NADS), draft(pod, changed).interfaces) is None
