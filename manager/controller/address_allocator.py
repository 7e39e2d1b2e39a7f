"""Address allocator: allocates a pod's addresses in the store, or makes the pod wait until it is worth a retry.

Nothing is polled: a pod that waits for an address is requeued when an address of the network is released, and when
the hold that the store's error names ends.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from contrail_config.errors import AddressUnavailableError, ExhaustedError
from contrail_config.objects import InterfaceAddress
from contrail_config.store import AddressRequest, Store
from manager.controller.pending_address_queue import PendingAddressQueue
from manager.dependencies import address_dependency
from manager.mapping.errors import PodWaitsError
from manager.mapping.interface_spec import InterfaceSpec
from manager.reasons import Reason

_MIN_DELAY = 0.02
"""Seconds: the store's clock and the event loop's may differ slightly, so a retry at the exact end could be early."""


class AddressAllocator:
    """`requeue` and `requeue_after` (seconds) queue a pod, named by `namespace/name`, for reconciliation."""

    def __init__(
        self, store: Store, *, requeue: Callable[[str], None], requeue_after: Callable[[str, float], None]
    ) -> None:
        self._store = store
        self._requeue = requeue
        self._requeue_after = requeue_after
        self._queue = PendingAddressQueue(requeue)
        self._release_counts: Counter[str] = Counter()  # by pool
        self._shared: dict[str, str] = {}  # networks whose addresses are reserved in another network, by uuid

    @property
    def waiting(self) -> int:
        """Number of pods that wait for a free address."""
        return len(self._queue)

    async def allocate(
        self, pod: str, requests: Sequence[AddressRequest], specs: Sequence[InterfaceSpec]
    ) -> list[tuple[str, InterfaceAddress]]:
        """Returns owners with their addresses: all or none. Raises PodWaitsError, and other errors of the store."""
        for request in requests:
            if request.reserved_in is not None:
                self.share(request.network_uuid, request.reserved_in)
        pools = {resolved.network.name: self.pool_of(resolved.network.uuid) for resolved in specs}
        if contended := self._queue.blocked_by(pod, pools.values()):
            self._queue.join(contended, pod)
            name = next(name for name, pool in pools.items() if pool == contended)
            message = f"network {name}: no free address, and other pods were first"
            raise PodWaitsError(Reason.ADDRESSES_EXHAUSTED, message)
        releases = self._releases_in(pools.values())
        try:
            addresses = await self._store.allocate(requests)
        except (ExhaustedError, AddressUnavailableError) as error:
            if self._releases_in(pools.values()) != releases:
                # An address was released while the store answered, before the pod was in the queue: that release did
                # not requeue it.
                self._requeue(pod)
            # The store's error names the network; all networks of the request have different names.
            raise self._wait(pod, pools[error.network], error) from error
        return [(request.owner, address) for request, address in zip(requests, addresses, strict=True)]

    def leave(self, pod: str) -> None:
        """Removes the pod from the queue for free addresses."""
        self._queue.leave(pod)

    def released(self, network_uuid: str) -> None:
        """Requeues the first pod that waits for a free address of the network's pool: one was released."""
        pool = self.pool_of(network_uuid)
        self._release_counts[pool] += 1
        self._queue.requeue_head(pool)

    def share(self, network_uuid: str, pool: str) -> None:
        """Notes that addresses of a network are reserved in another one, its pool. Idempotent."""
        self._shared[network_uuid] = pool

    def pool_of(self, network_uuid: str) -> str:
        """Returns the uuid of the network in which addresses of this one are reserved, or its own."""
        return self._shared.get(network_uuid, network_uuid)

    def _wait(self, pod: str, pool: str, error: ExhaustedError | AddressUnavailableError) -> PodWaitsError:
        if isinstance(error, ExhaustedError):
            self._queue.join(pool, pod)
            self._retry_in(pod, error.next_free_in)
            message = f"network {error.network}: no free IPv{error.family} address"
            return PodWaitsError(Reason.ADDRESSES_EXHAUSTED, message)
        self._retry_in(pod, error.free_in)
        return PodWaitsError(Reason.ADDRESS_UNAVAILABLE, str(error), address_dependency(pool))

    def _releases_in(self, pools: Iterable[str]) -> list[int]:
        return [self._release_counts[pool] for pool in pools]

    def _retry_in(self, pod: str, seconds: float | None) -> None:
        if seconds is not None:
            self._requeue_after(pod, max(seconds, _MIN_DELAY))
