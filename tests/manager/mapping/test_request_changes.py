"""Rule 5: a pod's request that differs from its virtual machine is detected."""

import json
import re

import pytest

from contrail_config.objects import InterfaceAddress, interface_uuid
from manager.configuration import ManagerConfiguration, PodNetworkSettings
from manager.mapping.interface_resolution import resolve_interfaces
from manager.mapping.request_changes import describe_change
from manager.mapping.virtual_machine import build_virtual_machine
from manager.source import Nad, Pod
from tests.support.catalogues import DEFAULTS, build, make_catalogue, resolve
from tests.support.pods import make_nad, make_pod, reference

NADS = (
    make_nad("net-a"),
    make_nad("net-b", cidr="10.2.0.0/16"),
    make_nad("net-d", cidr="10.4.0.0/16,fd00:4::/64"),
)
TO_A = reference("k8s-blue", "k8s-net-a-pod-network")
TO_B = reference("k8s-blue", "k8s-net-b-pod-network")


def one(**described: object) -> str:
    return json.dumps([{"name": "net-a", **described}])


@pytest.mark.parametrize(
    ("before", "after", "description"),
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
        (
            make_pod(networks="net-d"),
            make_pod(networks='[{"name": "net-d", "ips": ["fd00:4::99", "10.4.0.99"]}]'),
            "index 1: ips fd00:4::99 10.4.0.99 instead of none",
        ),
        (make_pod(networks="net-a"), make_pod(networks=one(mac="02:00:00:00:00:07")), "mac 02:00:00:00:00:07"),
        (make_pod(networks="net-a"), make_pod(networks="net-a", default_gw="net-a"), "default-gw true instead of none"),
        (
            make_pod(networks="net-a", default_gw="net-a"),
            make_pod(networks="net-a", default_gw="eth0"),
            "index 0: default-gw true instead of none",
        ),
        (
            make_pod(networks=one(**{"default-route": ["10.1.9.9"]})),
            make_pod(networks=one(**{"default-route": ["10.1.9.8"]})),
            "index 1: default-route 10.1.9.8 instead of none",
        ),
        (
            make_pod(default_network="net-a"),
            make_pod(),
            "index 0: network .*k8s-default-pod-network instead of blue/net-a",
        ),
        (make_pod(), make_pod(network=TO_B), "index 0: network .*k8s-net-b-pod-network instead of .*k8s-default-pod"),
    ],
)
def test_a_change_is_described(before: Pod, after: Pod, description: str) -> None:
    change = describe_change(build(before, *NADS), resolve(after, *NADS).interfaces)
    assert change is not None
    assert re.search(description, change), change


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (make_pod(networks="net-a,net-b"), make_pod(networks="blue/net-a , net-b")),
        (make_pod(networks="net-a"), make_pod(networks='[{"name": "net-a"}]')),
        (make_pod(networks=one(ips=["10.1.9.9"])), make_pod(networks=one(ips=["10.1.9.9/16"]))),
        (make_pod(networks=one(ips=["10.1.9.9"])), make_pod(networks="net-a")),
    ],
)
def test_another_notation_of_the_same_request_is_no_change(before: Pod, after: Pod) -> None:
    assert describe_change(build(before, *NADS), resolve(after, *NADS).interfaces) is None


@pytest.mark.parametrize(
    "changed", [make_nad("net-a", config='{"type": "contrail-k8s-cni", "mtu": 1400, "name": "renamed"}')]
)
def test_a_change_of_a_network_is_no_change_of_the_request(changed: Nad) -> None:
    pod = make_pod(networks="net-a")
    assert describe_change(build(pod, *NADS), resolve(pod, changed).interfaces) is None


class TestChangesOfOtherObjects:
    """These cause no event when they happen, so they must cause none when the manager restarts."""

    DUAL = ManagerConfiguration(pod_network=PodNetworkSettings(subnets=("10.32.0.0/12", "fd00:32::/64")))

    @pytest.mark.parametrize(
        "pod",
        [
            make_pod(networks="net-a", default_gw="eth1"),
            make_pod(networks="net-a", default_gw="eth0"),
            make_pod(networks=one(**{"default-route": ["10.1.9.9"]})),
            make_pod(networks=one(**{"default-route": []})),
            make_pod(networks="net-a"),
        ],
    )
    def test_a_new_family_of_the_pod_network_is_ignored(self, pod: Pod) -> None:
        assert describe_change(build(pod, *NADS), resolve(pod, *NADS, configuration=self.DUAL).interfaces) is None

    @pytest.mark.parametrize(("before", "after"), [(None, TO_B), (TO_B, None), (TO_B, TO_A)])
    def test_another_choice_of_the_namespace_is_ignored(self, before: str | None, after: str | None) -> None:
        pod = make_pod(networks="net-a")
        catalogue = make_catalogue(*NADS)
        specs = []
        for chosen in (before, after):
            catalogue.namespaces["blue"] = {} if chosen is None else {"opencontrail.org/network": chosen}
            specs.append(resolve_interfaces(pod, catalogue=catalogue, configuration=DEFAULTS).interfaces)
        given = [(interface_uuid(pod.uid, 0), InterfaceAddress("10.2.0.2", 16, "10.2.0.1"))]
        machine = build_virtual_machine(pod, specs[0], given, cluster="k8s", default_mtu=1500)
        assert describe_change(machine, specs[1]) is None

    def test_a_changed_request_is_still_described(self) -> None:
        before, after = make_pod(networks="net-a", default_gw="eth0"), make_pod(networks="net-a", default_gw="eth1")
        machine = build(before, *NADS, configuration=self.DUAL)
        change = describe_change(machine, resolve(after, *NADS, configuration=self.DUAL).interfaces)
        assert change == "index 0: default-gw none instead of true"
