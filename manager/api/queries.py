"""Queries of the manager's API: combines the manager's pod records with the objects in the store.

Each answers one page and reads only the virtual machines of its pods: all of 150,000 pods would take hundreds of MiB.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from contrail_config.errors import NotFoundError
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.objects import Event, VirtualMachine, VirtualNetwork
from contrail_config.store import EventLog, Store
from manager.api.change_publisher import count_interfaces
from manager.api.network_addresses import NetworkAddresses
from manager.api.network_slices import SliceFinder, slice_page
from manager.api.paging import MAX_LIMIT, Key, Page, PageRequest, page_token, take_page
from manager.api.types import (
    AddressView,
    InterfaceView,
    NetworkView,
    NodeView,
    PodNetworks,
    PodState,
    PodView,
    PortView,
    SliceView,
    Summary,
    interface_views,
    network_key,
)
from manager.api.views import network_view, networks_of, pod_networks, pod_view
from manager.configuration import MetaPluginSettings
from manager.controller.pod_record import PodRecord
from manager.mapping.interface_names import sandbox_names


class ItemFilter(msgspec.Struct, frozen=True):
    """Filter by namespace and name; None matches all."""

    namespace: str | None = None
    name: str | None = None

    def matches(self, *, namespace: str, name: str) -> bool:
        """Whether the object matches."""
        return self.namespace in (None, namespace) and self.name in (None, name)

    def matches_key(self, key: str) -> bool:
        """Whether the object `namespace/name` matches."""
        namespace, _, name = key.partition("/")
        return self.matches(namespace=namespace, name=name)


class PortsUnansweredError(Exception):
    """The ports of a pod are not known: its node was not asked, or did not answer in time."""


FindPorts = Callable[[VirtualMachine, Sequence[str]], Awaitable[list[PortView]]]
"""Returns the ports of a virtual machine, whose interfaces have these names, in their order.

Raises PortsUnansweredError, StoreError.
"""

_Keyed = tuple[str, PodRecord]

_READS = 32
"""Virtual machines that are read at the same time."""

_FIRST = PageRequest()


class ManagerQueries:
    """Returns pages of objects sorted by name; `records` are the pods by `namespace/name`, `reports` by node."""

    def __init__(
        self,
        records: Mapping[str, PodRecord],
        store: Store,
        event_log: EventLog,
        *,
        meta_plugin: MetaPluginSettings,
        reports: Mapping[str, NodeReport],
        store_kind: str,
    ) -> None:
        self._records = records
        self._store = store
        self._event_log = event_log
        self._meta_plugin = meta_plugin
        self._reports = reports
        self._store_kind = store_kind
        self._addresses = NetworkAddresses(store, records)

    async def summary(self) -> Summary:
        """Returns the numbers of objects. Reads no virtual machine and no event, however many there are."""
        records = self._records.values()
        states = Counter(record.state for record in records)
        return Summary(
            networks=len(await self._store.networks()),
            interfaces=sum(record.interface_count for record in records),
            pods={state: states[state] for state in PodState},
            store=self._store_kind,
        )

    async def networks(self, item_filter: ItemFilter, page: PageRequest = _FIRST) -> Page[NetworkView]:
        """Returns networks; they are found by namespace and name of their NAD.

        A network without a NAD has its own name and no namespace.
        """
        interfaces = count_interfaces(self._records.values())
        networks = [network for network in await self._store.networks() if _matches(item_filter, network)]
        views = [network_view(network, interfaces[network.uuid]) for network in networks]
        return take_page(views, _network_key, page)

    async def pods(self, item_filter: ItemFilter, page: PageRequest = _FIRST) -> Page[PodView]:
        """Returns the pods that the source delivered, with their virtual machines, if written."""
        found = take_page(self._matching(item_filter), _pod_key, page)
        records = [record for _, record in found.items]
        virtual_machines = {vm.uuid: vm for vm in await self._virtual_machines(records)}
        views = [
            self.pod_view(record, virtual_machines.get(record.pod.uid)) for record in records if record.pod is not None
        ]
        return Page(tuple(views), found.next_page)

    async def pod_networks(self, item_filter: ItemFilter, page: PageRequest = _FIRST) -> Page[PodNetworks]:
        """Returns the same pods with their networks only. Reads no virtual machine."""
        found = take_page(self._matching(item_filter), _pod_key, page)
        views = [pod_networks(record, networks_of(record)) for _, record in found.items if record.pod is not None]
        return Page(tuple(views), found.next_page)

    def all_pod_networks(self, item_filter: ItemFilter) -> Iterator[list[PodNetworks]]:
        """Yields the same for all pods, in parts: in time proportional to their number, which pages do not take.

        A pod that comes after the first part may be missing; one that goes before its part is.
        """
        keys = sorted(key for key, _ in self._matching(item_filter))
        for start in range(0, len(keys), MAX_LIMIT):
            found = (self._records.get(key) for key in keys[start : start + MAX_LIMIT])
            records = (record for record in found if record is not None and record.pod is not None)
            yield [pod_networks(record, networks_of(record)) for record in records]

    async def addresses(self, item_filter: ItemFilter, page: PageRequest = _FIRST) -> Page[AddressView]:
        """Returns the addresses that are not free, by network, in the store's order; networks are filtered as such."""
        networks = [network for network in await self._store.networks() if _matches(item_filter, network)]
        return await self._addresses.page([network.uuid for network in networks], page)

    async def nodes(self, item_filter: ItemFilter, page: PageRequest = _FIRST) -> Page[NodeView]:
        """Returns the nodes that have reported; they have no namespace."""
        views = (NodeView(node, report) for node, report in self._reports.items())
        found = (view for view in views if item_filter.matches(namespace="", name=view.name))
        return take_page(found, _node_key, page)

    async def interfaces(self, item_filter: ItemFilter, page: PageRequest = _FIRST) -> Page[InterfaceView]:
        """Returns interfaces by pod and index. A page has whole pods, at least one, and else at most `limit` items."""
        found = await self._virtual_machine_page(item_filter, page)
        views = (view for vm in found.items for view in interface_views(vm, self._names(vm)))
        return Page(tuple(views), found.next_page)

    async def ports(self, find_ports: FindPorts, item_filter: ItemFilter, page: PageRequest = _FIRST) -> Page[PortView]:
        """Returns the ports of the same interfaces, in pages as those. Raises as `find_ports`."""
        found = await self._virtual_machine_page(item_filter, page)
        views = [view for vm in found.items for view in await find_ports(vm, self._names(vm))]
        return Page(tuple(views), found.next_page)

    async def network_slices(
        self, finder: SliceFinder, item_filter: ItemFilter, page: PageRequest = _FIRST
    ) -> Page[SliceView]:
        """Returns what nodes tell each other of networks, by network and node; networks are filtered as such."""
        networks = [network for network in await self._store.networks() if _matches(item_filter, network)]
        return slice_page(finder, {network.uuid for network in networks}, page)

    async def _virtual_machine_page(self, item_filter: ItemFilter, page: PageRequest) -> Page[VirtualMachine]:
        """Returns virtual machines whose interfaces are a page: at least one of them."""
        assigned = ((key, record) for key, record in self._matching(item_filter) if record.assignment is not None)
        found = take_page(assigned, _pod_key, page)
        chosen: list[_Keyed] = []
        count = 0
        for item in found.items:
            count += item[1].interface_count
            if chosen and count > page.limit:
                break
            chosen.append(item)
        virtual_machines = await self._virtual_machines(record for _, record in chosen)
        is_cut = len(chosen) < len(found.items)
        return Page(tuple(virtual_machines), page_token(_pod_key(chosen[-1])) if is_cut else found.next_page)

    async def events(self, item_filter: ItemFilter, page: PageRequest = _FIRST) -> Page[Event]:
        """Returns the events of matching objects: those of one name oldest first, others as the event log has them."""
        if item_filter.name is not None:
            found = await self._event_log.events(namespace=item_filter.namespace, name=item_filter.name)
            return take_page(found, _event_key, page)
        token = None if page.after is None else page.after[0]
        listed = await self._event_log.event_page(namespace=item_filter.namespace, limit=page.limit, token=token)
        return Page(tuple(listed.events), None if listed.following is None else page_token((listed.following,)))

    def _matching(self, item_filter: ItemFilter) -> Iterable[_Keyed]:
        if item_filter.namespace is not None and item_filter.name is not None:
            key = f"{item_filter.namespace}/{item_filter.name}"
            return [(key, self._records[key])] if key in self._records else []
        return (item for item in self._records.items() if item_filter.matches_key(item[0]))

    def pod_view(self, record: PodRecord, machine: VirtualMachine | None) -> PodView:
        """Returns the pod of the record, which must have one, with its virtual machine."""
        return pod_view(record, machine, self._names(machine) if machine else ())

    def _names(self, virtual_machine: VirtualMachine) -> tuple[str, ...]:
        return sandbox_names(virtual_machine.interfaces, self._meta_plugin)

    async def _virtual_machines(self, records: Iterable[PodRecord]) -> list[VirtualMachine]:
        """Reads the virtual machines of these pods, in the same order."""
        reads = asyncio.Semaphore(_READS)

        async def read(uuid: str) -> VirtualMachine | None:
            async with reads:
                try:
                    return await self._store.virtual_machine(uuid)
                except NotFoundError:
                    return None  # deleted after the record was read

        uuids = [record.assignment.uuid for record in records if record.assignment is not None]
        return [vm for vm in await asyncio.gather(*map(read, uuids)) if vm is not None]


def _matches(item_filter: ItemFilter, network: VirtualNetwork) -> bool:
    namespace, name = network_key(NetworkView(network, 0))
    return item_filter.matches(namespace=namespace, name=name)


def _node_key(view: NodeView) -> Key:
    return (view.name,)


def _pod_key(item: _Keyed) -> Key:
    return tuple(item[0].split("/"))


def _network_key(view: NetworkView) -> Key:
    return (view.network.name, view.network.uuid)


def _event_key(event: Event) -> Key:
    # Seconds since the epoch have ten digits until the year 2286.
    about = (event.kind, event.namespace, event.name, event.uid)
    return (f"{event.last_seen:020.6f}", *about, event.type, event.reason, event.message)
