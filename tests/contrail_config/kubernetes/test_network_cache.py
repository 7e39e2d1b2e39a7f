"""Network cache: responses to own requests and changes of the watch arrive in any order."""

import msgspec
import pytest

from contrail_config.kube.object_cache import Added, Deleted, Listed, Modified
from contrail_config.kubernetes.kinds import FullMetadata, VirtualNetworkObject
from contrail_config.kubernetes.network_cache import NetworkCache
from tests.support.virtual_networks import make_network

NETWORK = make_network(vni=1)


def at(version: str, *, mtu: int = 1500) -> VirtualNetworkObject:
    metadata = FullMetadata(name=NETWORK.uuid, resource_version=version)
    return VirtualNetworkObject(metadata, msgspec.structs.replace(NETWORK, mtu=mtu))


@pytest.fixture
def removed() -> list[str]:
    return []


@pytest.fixture
def cache(removed: list[str]) -> NetworkCache:
    return NetworkCache(lambda network: removed.append(network.uuid))


def test_a_response_is_uncertain_after_a_list_until_the_watch_confirms_it(cache: NetworkCache) -> None:
    cache.put(at("7"))
    assert cache.is_certain(NETWORK.uuid)
    cache.apply(Listed(complete=True))
    assert not cache.is_certain(NETWORK.uuid)
    cache.apply(Added(at("7")))
    assert cache.is_certain(NETWORK.uuid)


def test_a_response_ends_the_uncertainty(cache: NetworkCache) -> None:
    cache.put(at("7"))
    cache.apply(Listed(complete=True))
    cache.put(at("7"))
    assert cache.is_certain(NETWORK.uuid)


def test_a_network_known_from_the_watch_is_certain(cache: NetworkCache) -> None:
    cache.put(at("7"))
    cache.apply(Added(at("7")))
    cache.apply(Listed(complete=True))
    assert cache.is_certain(NETWORK.uuid)


def test_a_response_older_than_the_watch_is_ignored(cache: NetworkCache) -> None:
    cache.apply(Added(at("8", mtu=1400)))
    cache.put(at("7"))
    found = cache.get(NETWORK.uuid)
    assert found is not None
    assert found.mtu == 1400


@pytest.mark.parametrize("versions", [("7", "8"), ("7", "7"), ("a", "b")])
def test_a_deletion_that_is_not_older_removes_the_network(
    cache: NetworkCache, removed: list[str], versions: tuple[str, str]
) -> None:
    cache.apply(Added(at(versions[0])))
    cache.apply(Deleted(at(versions[1])))
    assert cache.get(NETWORK.uuid) is None
    assert removed == [NETWORK.uuid]


def test_older_changes_are_ignored(cache: NetworkCache, removed: list[str]) -> None:
    cache.put(at("9", mtu=1400))
    cache.apply(Modified(at("8")))
    cache.apply(Deleted(at("8")))
    found = cache.get(NETWORK.uuid)
    assert found is not None
    assert found.mtu == 1400
    assert not removed


def test_changes_with_versions_that_are_not_numbers_are_applied(cache: NetworkCache) -> None:
    cache.apply(Added(at("b")))
    cache.apply(Modified(at("a", mtu=1400)))
    found = cache.get(NETWORK.uuid)
    assert found is not None
    assert found.mtu == 1400
