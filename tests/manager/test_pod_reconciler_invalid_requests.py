"""Invalid requests: each causes exactly one event that names the cause, and leaves nothing behind."""

import json
import re
from typing import Any

import pytest

from contrail_config.objects import EventType
from manager.api.types import PodState
from manager.source import Pod
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod, reference
from tests.support.running_manager import RunningManager

NADS = (
    make_nad("net-a", cidr="10.1.0.0/16"),
    make_nad("two", cidr="10.3.0.0/16,10.4.0.0/16"),
    make_nad("tiny", cidr="10.6.0.0/30"),
    make_nad("broken", cidr="10.7.0.0/33"),
    make_nad("alias", cidr=None, network=reference("nobody", "nothing")),
    make_nad("mac", config=FOREIGN_CONFIG),
    make_nad("wide", cidr=",".join(f"10.{8 + i // 256}.{i % 256}.0/24" for i in range(1025))),
)
TWICE = json.dumps([{"name": "net-a", "ips": ["10.1.0.7"]}] * 2)
TOO_MANY = ",".join(["net-a"] * 257)


def one(**described: Any) -> Pod:
    return make_pod(networks=json.dumps([{"name": "net-a", **described}]))


@pytest.mark.parametrize(
    ("pod", "state", "reason", "culprit"),
    [
        (make_pod(networks="nope"), PodState.WAITING, "NetworkNotFound", "blue/nope not found"),
        (make_pod(networks="net-a,red/x"), PodState.WAITING, "NetworkNotFound", "red/x"),
        (make_pod(networks="alias"), PodState.WAITING, "NetworkNotFound", "default-domain:nobody:nothing"),
        (make_pod(network=reference("p", "n")), PodState.WAITING, "NetworkNotFound", "default-domain:p:n"),
        (make_pod(networks="broken"), PodState.WAITING, "NetworkUnusable", r"blue/broken .* '10\.7\.0\.0/33'"),
        (make_pod(networks="net-a,mac"), PodState.WAITING, "ForeignNetwork", "blue/mac .* 'macvlan'"),
        (make_pod(networks="net-a,,"), PodState.REFUSED, "AnnotationInvalid", "element 2"),
        (make_pod(networks='[{"name": 7}]'), PodState.REFUSED, "AnnotationInvalid", "7"),
        (make_pod(networks="net-a@eth2,net-a"), PodState.REFUSED, "AnnotationInvalid", "'eth2'"),
        (make_pod(default_gw="nope"), PodState.REFUSED, "AnnotationInvalid", "'nope'"),
        (make_pod(network="nope"), PodState.REFUSED, "AnnotationInvalid", "opencontrail.org/network: 'nope'"),
        (one(mac="ff:ff:ff:ff:ff:ff"), PodState.REFUSED, "AnnotationInvalid", "ff:ff:ff:ff:ff:ff"),
        (one(ips=["10.2.0.1"]), PodState.WAITING, "AddressUnavailable", r"10\.2\.0\.1"),
        (one(ips=["10.1.0.1"]), PodState.WAITING, "AddressUnavailable", "gateway"),
        (one(ips=["fd00::1"]), PodState.WAITING, "AddressUnavailable", "no IPv6 subnet"),
        (make_pod(networks=TWICE), PodState.REFUSED, "AddressUnavailable", "two interfaces of the pod request it"),
        (make_pod(networks=TOO_MANY), PodState.REFUSED, "AnnotationInvalid", "257 networks are too many: at most 256"),
        (make_pod(networks="wide"), PodState.WAITING, "NetworkUnusable", "1025 subnets are too many: at most 1024"),
        (one(**{"default-route": ["10.9.0.1"]}), PodState.WAITING, "AnnotationInvalid", r"10\.9\.0\.1"),
        (
            make_pod(networks='[{"name": "two", "default-route": ["10.4.0.9"]}]'),
            PodState.WAITING,
            "AnnotationInvalid",
            r"10\.4\.0\.9 cannot be the gateway of blue/two",
        ),
        (
            make_pod(networks="tiny,tiny"),
            PodState.REFUSED,
            "AddressesExhausted",
            "tiny-pod-network has capacity for 1",
        ),
    ],
)
async def test_an_invalid_request_gets_one_event_and_leaves_nothing_behind(
    running: RunningManager, pod: Pod, state: PodState, reason: str, culprit: str
) -> None:
    await running.send_list(*NADS, pod)
    ((found, message),) = await running.events_on(pod)
    assert found == reason
    assert re.search(culprit, message), message
    (event,) = await running.store.events(kind="Pod")
    assert (event.type, event.count) == (EventType.WARNING, 1)
    view = await running.view(pod)
    assert (view.state, view.reason, view.message, view.machine) == (state, reason, message, None)
    assert await running.allocated_count() == 0
    assert await running.store.virtual_machines() == []
    await running.remove(pod)
    assert running.manager.pods.records == {}


async def test_a_repeated_problem_is_recorded_once(running: RunningManager) -> None:
    pod = make_pod(networks="nope")
    await running.send_list(pod)
    await running.apply(make_nad("unrelated"), pod)
    await running.send_list(pod, make_nad("unrelated"))
    (event,) = await running.store.events(kind="Pod")
    assert event.count == 1


async def test_another_reason_is_recorded_again(running: RunningManager) -> None:
    pod = make_pod(networks="nope")
    await running.send_list(pod)
    await running.apply(make_nad("nope", cidr="nonsense"))
    assert await running.reasons(pod) == ["NetworkNotFound", "NetworkUnusable"]


async def test_a_refused_pod_is_assigned_once_its_annotation_is_corrected(running: RunningManager) -> None:
    """Nothing was assigned yet, so its annotations still count."""
    await running.send_list(*NADS, make_pod(default_gw="nope"))
    mended = make_pod(default_gw="default")
    await running.apply(mended)
    assert (await running.view(mended)).state is PodState.READY


async def test_invalid_pods_do_not_block_others(running: RunningManager) -> None:
    wrong = [make_pod(f"wrong-{number}", networks="nope") for number in range(300)]
    right = [make_pod(f"right-{number}") for number in range(20)]
    await running.send_list(*wrong, *right)
    assert len(await running.store.virtual_machines()) == 20
