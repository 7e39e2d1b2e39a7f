"""Metrics of addresses by network: bounded, whatever the number of networks that tenants create."""

from contrail_config.objects import FqName, VirtualNetwork
from manager.network_metrics import MAX_NETWORKS, NetworkAddresses
from tests.support.virtual_networks import make_network

POD_NETWORK = make_network("pods", "10.32.0.0/12")


def samples(networks: list[VirtualNetwork], pods: list[tuple[str, ...]]) -> dict[str, dict[tuple[str, str], float]]:
    """The values of each metric by network and family."""
    by_name: dict[FqName, VirtualNetwork] = {network.fq_name: network for network in networks}
    collected = NetworkAddresses(by_name, lambda: pods, first=POD_NETWORK.fq_name).collect()
    return {
        family.name.removeprefix("contrail_manager_network_addresses_"): {
            (sample.labels["network"].rpartition(":")[2], sample.labels["family"]): sample.value
            for sample in family.samples
        }
        for family in collected
    }


def test_each_interface_uses_one_address_per_family() -> None:
    dual = make_network("dual", "10.1.0.0/24", "fd00::/120")
    found = samples([POD_NETWORK, dual], [(POD_NETWORK.uuid, dual.uuid, dual.uuid), (POD_NETWORK.uuid,)])
    assert found["used"] == {("pods", "ipv4"): 2, ("dual", "ipv4"): 2, ("dual", "ipv6"): 2}
    assert found["free"] == {("pods", "ipv4"): 2**20 - 5, ("dual", "ipv4"): 251, ("dual", "ipv6"): 252}


def test_the_fullest_networks_have_series_of_their_own() -> None:
    networks = [make_network(f"n{number}", "10.1.0.0/24") for number in range(3 * MAX_NETWORKS)]
    fullest = networks[-1]
    found = samples([*networks, POD_NETWORK], [(fullest.uuid,)] * 100)["free"]
    assert len(found) == MAX_NETWORKS + 1
    assert found["pods", "ipv4"] == 2**20 - 3
    assert found[fullest.fq_name[2], "ipv4"] == 153
    assert found["other", "ipv4"] == (3 * MAX_NETWORKS - (MAX_NETWORKS - 1)) * 253


def test_a_network_that_shrank_below_its_use_has_no_free_addresses() -> None:
    tiny = make_network("tiny", "10.1.0.0/30")
    assert samples([tiny], [(tiny.uuid, tiny.uuid)])["free"] == {("tiny", "ipv4"): 0}
