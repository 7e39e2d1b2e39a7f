"""Networks are checked once in a process, though several readers decode them."""

import sys

import msgspec
import pytest

from contrail_config.kube.decoding import UndecodableObject, decode_object
from contrail_config.kubernetes.constraints import problem_of
from contrail_config.kubernetes.kinds import virtual_network_object
from contrail_config.kubernetes.validated import VALIDATED_NETWORKS, network_problem
from contrail_config.objects import Subnet, VirtualNetwork
from tests.support.virtual_networks import make_network


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[VirtualNetwork]:
    """The networks whose fields are checked."""
    found: list[VirtualNetwork] = []

    def note(network: VirtualNetwork) -> str | None:
        found.append(network)
        return problem_of(network)

    monkeypatch.setattr("contrail_config.kubernetes.validated.problem_of", note)
    return found


def test_equal_networks_are_checked_once(checked: list[VirtualNetwork]) -> None:
    network = make_network("checked-once", "10.1.0.0/24", vni=5)
    for _ in range(3):
        raw = msgspec.json.encode(virtual_network_object(network))
        assert not isinstance(decode_object(raw, VALIDATED_NETWORKS), UndecodableObject)
    assert checked == [network]


def test_a_changed_network_is_checked_again(checked: list[VirtualNetwork]) -> None:
    network = make_network("changed", "10.1.0.0/24", vni=5)
    invalid = msgspec.structs.replace(network, subnets=(Subnet("10.1.0.0/33", None),))
    item = virtual_network_object(network)
    for each, problem in ((network, None), (invalid, "subnets[0].cidr"), (network, None), (invalid, "subnets[0].cidr")):
        found = network_problem(msgspec.structs.replace(item, spec=each))
        assert (found or "").startswith(problem or "")
        assert (found is None) == (problem is None)
    assert checked == [network, invalid]


def test_networks_of_one_hash_are_told_apart(checked: list[VirtualNetwork]) -> None:
    network = make_network("of-one-hash", "10.1.0.0/24", vni=5)
    invalid = msgspec.structs.replace(network, vni=5 + sys.hash_info.modulus)
    assert hash(invalid) == hash(network)
    item = virtual_network_object(network)
    assert network_problem(item) is None
    found = network_problem(msgspec.structs.replace(item, spec=invalid))
    assert found is not None
    assert found.startswith("vni")
    assert checked == [network, invalid]
