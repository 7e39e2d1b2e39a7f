"""Gets a pod's addresses from the store, or tells it to wait, and sees to it that it is tried again in time.

Nothing is polled: a pod that waits for an address is tried when one of its network is released, and when the store said
that a hold would be over.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from contrail_config.errors import AddressUnavailableError, ExhaustedError
from contrail_config.objects import InterfaceAddress
from contrail_config.store import AddressRequest, Store
from manager.controller.pending_address_queue import PendingAddressQueue
from manager.dependencies import address_dependency
from manager.mapping.errors import PodWaitsError
from manager.mapping.interface_spec import InterfaceSpec
from manager.reasons import Reason

_LEAST_DELAY = 0.02
"""Seconds; the store's clock and the event loop's may differ by some."""


class AddressAllocator:
    """`retry` and `retry_later` (seconds) have a pod, named by `namespace/name`, tried again."""

    def __init__(
        self, store: Store, *, retry: Callable[[str], None], retry_later: Callable[[str, float], None]
    ) -> None:
        self._store = store
        self._retry = retry
        self._retry_later = retry_later
        self._lines = PendingAddressQueue(retry)
        self._releases: Counter[str] = Counter()  # number of releases, by network

    async def allocate(
        self, pod: str, requests: Sequence[AddressRequest], drafts: Sequence[InterfaceSpec]
    ) -> list[tuple[str, InterfaceAddress]]:
        """Returns owners with their addresses; all or none. Raises PodWaitsError, and what else the store raises."""
        networks = {draft.network.uuid: draft.network.name for draft in drafts}
        if crowded := self._lines.before(pod, networks):
            self._lines.join(crowded, pod)
            message = f"network {networks[crowded]} has no free address, and other pods came before"
            raise PodWaitsError(Reason.ADDRESSES_EXHAUSTED, message)
        releases = self._count_releases(networks)
        try:
            addresses = await self._store.allocate(requests)
        except (ExhaustedError, AddressUnavailableError) as error:
            if self._count_releases(networks) != releases:
                self._retry(pod)  # it would not hear of a release that came before it began to wait
            network = next(uuid for uuid, name in networks.items() if name == error.network)
            raise self._wait(pod, network, error) from error
        return [(request.owner, address) for request, address in zip(requests, addresses, strict=True)]

    def leave(self, pod: str) -> None:
        """The pod waits for no free address any more."""
        self._lines.leave(pod)

    def released(self, network_uuid: str) -> None:
        """An address of the network was released: who waits longest for one tries again."""
        self._releases[network_uuid] += 1
        self._lines.try_again(network_uuid)

    def _wait(self, pod: str, network_uuid: str, error: ExhaustedError | AddressUnavailableError) -> PodWaitsError:
        if isinstance(error, ExhaustedError):
            self._lines.join(network_uuid, pod)
            self._retry_in(pod, error.next_free_in)
            message = f"network {error.network} has no free IPv{error.family} address"
            return PodWaitsError(Reason.ADDRESSES_EXHAUSTED, message)
        self._retry_in(pod, error.free_in)
        return PodWaitsError(Reason.ADDRESS_UNAVAILABLE, str(error), address_dependency(network_uuid))

    def _count_releases(self, networks: dict[str, str]) -> list[int]:
        return [self._releases[uuid] for uuid in networks]

    def _retry_in(self, pod: str, seconds: float | None) -> None:
        if seconds is not None:
            self._retry_later(pod, max(seconds, _LEAST_DELAY))
