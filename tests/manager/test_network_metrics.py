"""Metrics of addresses by network: bounded, whatever the number of networks that tenants create."""

import msgspec
import pytest

from contrail_config.addressing.subnet import SubnetBounds, subnet_bounds
from contrail_config.objects import FqName, Subnet, VirtualNetwork, network_uuid
from manager import network_metrics
from manager.network_metrics import MAX_COUNTED, MAX_NETWORKS, MAX_OF_PROJECT, NEW_NAMES_BURST, NetworkAddresses
from tests.support.fake_clock import FakeClock
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


def of_tenant(number: int, name: str, cidr: str) -> VirtualNetwork:
    """A network in a namespace of its own."""
    fq_name = ("default-domain", f"k8s-tenant-{number}", f"{name}-{number}")
    return msgspec.structs.replace(make_network(name, cidr), fq_name=fq_name, uuid=network_uuid(fq_name))


def test_each_interface_uses_one_address_per_family() -> None:
    dual = make_network("dual", "10.1.0.0/24", "fd00::/120")
    found = samples([POD_NETWORK, dual], [(POD_NETWORK.uuid, dual.uuid, dual.uuid), (POD_NETWORK.uuid,)])
    assert found["used"] == {("pods", "ipv4"): 2, ("dual", "ipv4"): 2, ("dual", "ipv6"): 2}
    assert found["free"] == {("pods", "ipv4"): 2**20 - 5, ("dual", "ipv4"): 251, ("dual", "ipv6"): 252}


def test_the_fullest_networks_have_series_of_their_own() -> None:
    networks = [of_tenant(number, "n", "10.1.0.0/24") for number in range(3 * MAX_NETWORKS)]
    fullest = networks[-1]
    found = samples([*networks, POD_NETWORK], [(fullest.uuid,)] * 100)["free"]
    assert len(found) == MAX_NETWORKS + 1
    assert found["pods", "ipv4"] == 2**20 - 3
    assert found[fullest.fq_name[2], "ipv4"] == 153
    assert found["other", "ipv4"] == (3 * MAX_NETWORKS - (MAX_NETWORKS - 1)) * 253


def test_a_network_that_shrank_below_its_use_has_no_free_addresses() -> None:
    tiny = make_network("tiny", "10.1.0.0/30")
    assert samples([tiny], [(tiny.uuid, tiny.uuid)])["free"] == {("tiny", "ipv4"): 0}


def test_a_tenant_with_many_tiny_networks_hides_nobody_else() -> None:
    tiny = [make_network(f"tiny-{number}", "10.1.0.0/30") for number in range(2 * MAX_NETWORKS)]
    victim = of_tenant(1, "victim", "10.2.0.0/24")
    found = samples([POD_NETWORK, *tiny, victim], [(victim.uuid,)] * 240)["free"]
    assert found["victim-1", "ipv4"] == 13
    assert sum(name.startswith("tiny") for name, _ in found) == MAX_OF_PROJECT


def test_renamed_networks_add_few_values_of_the_label() -> None:
    clock = FakeClock()
    networks = dict[FqName, VirtualNetwork]()
    collector = NetworkAddresses(networks, list, first=POD_NETWORK.fq_name, clock=clock)
    seen = set[str]()
    for hour in range(24):
        networks.clear()
        networks.update((each.fq_name, each) for each in (make_network(f"{hour}-{n}") for n in range(9)))
        seen |= {sample.labels["network"] for family in collector.collect() for sample in family.samples}
        clock.advance(3600)
    assert len(seen - {"other"}) <= NEW_NAMES_BURST + 24
    assert "other" in seen


def test_a_network_keeps_its_series_while_it_exists() -> None:
    networks = {each.fq_name: each for each in [make_network("a"), make_network("b")]}
    collector = NetworkAddresses(networks, list, first=POD_NETWORK.fq_name, clock=FakeClock())
    for _ in range(2 * NEW_NAMES_BURST):
        (family, _) = collector.collect()
        assert len(family.samples) == 2


def test_each_scrape_counts_a_few_long_networks_and_each_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def count(subnet: Subnet) -> SubnetBounds:
        counted.append(subnet.cidr)
        return subnet_bounds(subnet)

    monkeypatch.setattr(network_metrics, "subnet_bounds", count)
    cidrs = [f"10.{number // 250}.{number % 250}.0/24" for number in range(1000)]
    networks = {each.fq_name: each for each in [make_network(f"long-{number}", *cidrs) for number in range(30)]}
    networks[POD_NETWORK.fq_name] = POD_NETWORK
    collector = NetworkAddresses(networks, list, first=POD_NETWORK.fq_name)
    counts = []
    for _ in range(5):
        counted.clear()
        _, free = collector.collect()
        counts.append(len(counted))
        assert ":".join(POD_NETWORK.fq_name) in {sample.labels["network"] for sample in free.samples}
    assert max(counts) < MAX_COUNTED + 1000
    assert (sum(counts), counts[-1]) == (30 * 1000 + 1, 0)
    changed = networks[POD_NETWORK.fq_name] = msgspec.structs.replace(
        POD_NETWORK, subnets=(Subnet("10.9.0.0/24", None),)
    )
    _, free = collector.collect()
    assert counted == [changed.subnets[0].cidr]
    assert {sample.value for sample in free.samples if sample.labels["network"].endswith("pods")} == {254}
