"""Pods with many interfaces in networks of many subnets cost the sum of both, not the product."""

import json
from collections.abc import Callable

from manager.mapping.interface_resolution import resolve_interfaces
from manager.mapping.network_addressing import bounds_of
from manager.mapping.virtual_machine import address_requests
from manager.source import Nad, Pod
from tests.manager.parsing.call_counting import count_calls
from tests.support.catalogues import DEFAULTS, make_catalogue
from tests.support.pods import make_nad, make_pod

SIZE = 40
LINEAR = 5.0


def large_nad(number: int, *, name: str = "large") -> Nad:
    """Has `number` subnets per family; they differ with the number, so nothing is cached."""
    cidrs = [f"10.{i // 256}.{i % 256}.0/24,fd00:{number:x}:{i:x}::/64" for i in range(number)]
    return make_nad(name, cidr=",".join(cidrs))


def calls_for(pod: Pod, *nads: Nad) -> int:
    """Returns the number of calls of the first half of the mapping."""
    catalogue = make_catalogue(*nads)

    def work() -> None:
        specs = resolve_interfaces(pod, catalogue=catalogue, configuration=DEFAULTS).interfaces
        assert address_requests(pod, specs, cluster=DEFAULTS.cluster_name)

    return count_calls(work)


def growth(calls: Callable[[int], int]) -> float:
    """Returns the factor in calls for four times the size."""
    small = calls(SIZE)
    return calls(4 * SIZE) / small


def test_requested_addresses_and_macs() -> None:
    def calls(number: int) -> int:
        last = number - 1
        elements = [
            {
                "name": "large",
                "ips": [f"10.{last // 256}.{last % 256}.{i + 9}", f"fd00:{number:x}:{last:x}::{i + 9:x}"],
                "mac": f"02:00:00:00:00:{i:02x}",
            }
            for i in range(number)
        ]
        return calls_for(make_pod(networks=json.dumps(elements)), large_nad(number))

    assert growth(calls) < LINEAR


def test_a_requested_default_gateway() -> None:
    def calls(number: int) -> int:
        pod = make_pod(networks=",".join(["large"] * number), default_gw=f"eth{number}")
        return calls_for(pod, large_nad(number))

    assert growth(calls) < LINEAR


def test_requested_gateways() -> None:
    """The gateway may be in any of the subnets."""

    def calls(number: int) -> int:
        element = {"name": "large", "default-route": [f"10.0.{number - 1}.9", f"fd00:{number:x}:{number - 1:x}::9"]}
        return calls_for(make_pod(networks=json.dumps([element])), large_nad(number))

    assert growth(calls) < LINEAR


def test_capacity_is_counted_no_further_than_needed() -> None:
    def calls(number: int) -> int:
        return calls_for(make_pod(networks="large"), make_nad("large", cidr=large_cidrs(number)))

    def large_cidrs(number: int) -> str:
        return ",".join(f"10.{number}.{i}.0/24" for i in range(number))

    bounds_of.cache_clear()
    assert growth(calls) < LINEAR
    assert bounds_of.cache_info().misses < SIZE


def test_overlapping_networks() -> None:
    def calls(number: int) -> int:
        nads = [make_nad(f"net-{i}", cidr=f"10.0.0.0/16,10.{number}.0.0/16") for i in range(number)]
        return calls_for(make_pod(networks=",".join(nad.name for nad in nads)), *nads)

    assert growth(calls) < LINEAR
