"""What counts as news of a network, when requests of our own and watches tell of it in any order."""

import msgspec
import pytest

from contrail_config.kube.object_cache import Added, Deleted, Listed, Modified
from contrail_config.kubernetes.kinds import FullMetadata, VirtualNetworkObject
from contrail_config.kubernetes.network_cache import NetworkCache
from tests.support.networks import make_network

NETWORK = make_network(vni=1)


def at(version: str, *, mtu: int = 1500) -> VirtualNetworkObject:
    metadata = FullMetadata(name=NETWORK.uuid, resource_version=version)
    return VirtualNetworkObject(metadata, msgspec.structs.replace(NETWORK, mtu=mtu))


@pytest.fixture
def forgotten() -> list[str]:
    return []


@pytest.fixture
def known(forgotten: list[str]) -> NetworkCache:
    return NetworkCache(forgotten.append)


def test_a_response_is_uncertain_after_a_list_until_the_watch_confirms_it(known: NetworkCache) -> None:
    known.put(at("7"))
    assert known.is_certain(NETWORK.uuid)
    known.apply(Listed(complete=True))
    assert not known.is_certain(NETWORK.uuid)
    known.apply(Added(at("7")))
    assert known.is_certain(NETWORK.uuid)


def test_a_response_ends_the_uncertainty(known: NetworkCache) -> None:
    known.put(at("7"))
    known.apply(Listed(complete=True))
    known.put(at("7"))
    assert known.is_certain(NETWORK.uuid)


def test_a_network_known_from_the_watch_is_certain(known: NetworkCache) -> None:
    known.put(at("7"))
    known.apply(Added(at("7")))
    known.apply(Listed(complete=True))
    assert known.is_certain(NETWORK.uuid)


def test_a_response_older_than_the_watch_is_ignored(known: NetworkCache) -> None:
    known.apply(Added(at("8", mtu=1400)))
    known.put(at("7"))
    found = known.get(NETWORK.uuid)
    assert found is not None
    assert found.mtu == 1400


@pytest.mark.parametrize("versions", [("7", "8"), ("7", "7"), ("a", "b")])
def test_a_deletion_that_is_not_older_removes_the_network(
    known: NetworkCache, forgotten: list[str], versions: tuple[str, str]
) -> None:
    known.apply(Added(at(versions[0])))
    known.apply(Deleted(at(versions[1])))
    assert known.get(NETWORK.uuid) is None
    assert forgotten == [NETWORK.uuid]


def test_older_changes_are_ignored(known: NetworkCache, forgotten: list[str]) -> None:
    known.put(at("9", mtu=1400))
    known.apply(Modified(at("8")))
    known.apply(Deleted(at("8")))
    found = known.get(NETWORK.uuid)
    assert found is not None
    assert found.mtu == 1400
    assert not forgotten


def test_changes_with_versions_that_are_not_numbers_are_applied(known: NetworkCache) -> None:
    known.apply(Added(at("b")))
    known.apply(Modified(at("a", mtu=1400)))
    found = known.get(NETWORK.uuid)
    assert found is not None
    assert found.mtu == 1400
