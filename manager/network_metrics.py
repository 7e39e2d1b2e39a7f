"""Metrics of the addresses of networks: used and free ones, by network and family.

Tenants create networks, so the label `network` is bounded: the cluster pod network and those with the fewest free
addresses have series of their own, all others share the value `other`. A project, which is a namespace, has few of
them, and few new ones in a day, since a tenant may rename networks. Not bounded: what a tenant with as many namespaces
as there are series hides. Counted at each scrape from what is in memory.

Used addresses are those of virtual machines: each interface has one per family of its network. Held addresses of ended
pods count as free.

To count the addresses of a network with thousands of subnets and exclusions takes tenths of a second, for which nothing
else is done. So they are counted once, and a scrape counts only so many: others follow with the next ones.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from contrail_config.addressing.notation import family_of
from contrail_config.addressing.subnet import subnet_bounds
from contrail_config.objects import FqName, Subnet, VirtualNetwork
from manager.namespace_buckets import NamespaceBuckets

MAX_NETWORKS: Final = 50
"""Networks with series of their own."""

MAX_OF_PROJECT: Final = 3
"""Those of one project."""

NEW_NAMES_RATE, NEW_NAMES_BURST = 1 / 3600, 6
"""New values of the label per second, and at once, of one project."""

MAX_COUNTED: Final = 10_000
"""Subnets and exclusions that one scrape counts, or else those of a single network."""

_OTHER: Final = "other"


class _Capacity(NamedTuple):
    """The addresses of subnets that can be allocated, by family."""

    subnets: tuple[Subnet, ...]
    addresses: Counter[int]


class _Usage(NamedTuple):
    """Addresses of one family in one network."""

    network: str
    family: int
    used: int
    free: int


class NetworkAddresses(Collector):
    """`interfaces` yields the network uuids of the interfaces of each pod; `first` is always listed by itself.

    `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        networks: Mapping[FqName, VirtualNetwork],
        interfaces: Callable[[], Iterable[Iterable[str]]],
        *,
        first: FqName,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._networks = networks
        self._interfaces = interfaces
        self._first = ":".join(first)
        self._new_names = NamespaceBuckets(rate=NEW_NAMES_RATE, burst=NEW_NAMES_BURST, clock=clock)
        self._known = set[str]()  # networks that exist and had series of their own
        self._capacities: dict[str, _Capacity] = {}  # by network uuid

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields used and free addresses."""
        labels = ["network", "family"]
        used = GaugeMetricFamily("contrail_manager_network_addresses_used", "Addresses of interfaces", labels=labels)
        free = GaugeMetricFamily("contrail_manager_network_addresses_free", "Addresses left", labels=labels)
        for usage in self._bounded():
            values = [usage.network, f"ipv{usage.family}"]
            used.add_metric(values, usage.used)
            free.add_metric(values, usage.free)
        yield used
        yield free

    def _bounded(self) -> Iterator[_Usage]:
        usages = sorted(self._usages(), key=lambda usage: (usage.network != self._first, usage.free))
        listed = self._listed(dict.fromkeys(usage.network for usage in usages))
        yield from (usage for usage in usages if usage.network in listed)
        for family in (4, 6):
            others = [usage for usage in usages if usage.network not in listed and usage.family == family]
            if others:
                yield _Usage(_OTHER, family, sum(each.used for each in others), sum(each.free for each in others))

    def _listed(self, networks: Iterable[str]) -> set[str]:
        """Returns the networks with series of their own; those that come first are preferred."""
        self._known &= {network.name for network in self._networks.values()}
        listed, of_project = set[str](), Counter[str]()
        for network in networks:
            project = network.rpartition(":")[0]
            if network != self._first and (
                of_project[project] == MAX_OF_PROJECT or not self._is_known(network, project)
            ):
                continue
            of_project[project] += network != self._first
            listed.add(network)
            if len(listed) == MAX_NETWORKS:
                break
        return listed

    def _is_known(self, network: str, project: str) -> bool:
        if network not in self._known and self._new_names.of(project).take():
            self._known.add(network)
        return network in self._known

    def _usages(self) -> Iterator[_Usage]:
        self._count_capacities()
        interfaces = Counter(chain.from_iterable(self._interfaces()))
        for network in self._networks.values():
            used, counted = interfaces[network.uuid], self._capacities.get(network.uuid)
            for family, capacity in sorted(counted.addresses.items()) if counted is not None else ():
                yield _Usage(network.name, family, used, max(0, capacity - used))

    def _count_capacities(self) -> None:
        """Counts new and changed networks, those with the shortest lists first, as far as the bound permits."""
        before, self._capacities = self._capacities, {}
        uncounted = list[VirtualNetwork]()
        for network in self._networks.values():
            known = before.get(network.uuid)
            if known is not None and (known.subnets is network.subnets or known.subnets == network.subnets):
                self._capacities[network.uuid] = known._replace(subnets=network.subnets)
            else:
                uncounted.append(network)
        left = MAX_COUNTED
        for network in sorted(uncounted, key=_length):
            if left <= 0:
                break
            left -= _length(network)
            self._capacities[network.uuid] = _capacity(network)


def _length(network: VirtualNetwork) -> int:
    return sum(1 + len(subnet.excluded) for subnet in network.subnets)


def _capacity(network: VirtualNetwork) -> _Capacity:
    addresses = Counter[int]()
    for subnet in network.subnets:
        addresses[family_of(subnet.cidr)] += subnet_bounds(subnet).capacity
    return _Capacity(network.subnets, addresses)
