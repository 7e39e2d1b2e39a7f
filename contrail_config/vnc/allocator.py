"""Allocator: chooses addresses, and claims each by creating an instance-ip with this address.

The server keeps addresses unique, over all its clients: a create without uuid and with an address succeeds once. The
pools of the cache only choose. What the server refuses is taken by somebody whom the cache does not know: it is left
out, and the next address is tried. When none is left, all of these are tried again.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from weakref import WeakSet

import msgspec

from contrail_config.addressing.notation import family_of, format_address, parse_address
from contrail_config.addressing.pool import ALLOCATED, AddressPool
from contrail_config.errors import AddressUnavailableError, ExhaustedError, NotFoundError
from contrail_config.objects import InterfaceAddress, VirtualNetwork, network_uuid, pod_network_name
from contrail_config.store import AddressRequest
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.claims import Claimed, Claims
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.holds import Clock
from contrail_config.vnc.mapping.addresses import AddressClaim, AddressRecord, instance_ip_name

MAX_TAKEN: Final = 64
"""Addresses that one allocation tries although others have them. The next one goes on after them."""

NEXT_TRY: Final = 2.0
"""Seconds until an allocation that found only addresses of others is worth another try."""

FORGOTTEN_AFTER: Final = 60.0
"""Seconds until an exhausted network with addresses of others is worth another try: they may have freed some."""


class _Choice(NamedTuple):
    """The address chosen for a request; `record` if the owner has it already.

    `wished`: no other address would do. `replaced` is the address that the owner had instead.
    """

    request: AddressRequest
    network: VirtualNetwork
    pool: AddressPool
    address: int
    record: AddressRecord | None
    replaced: AddressRecord | None
    wished: bool

    @property
    def text(self) -> str:
        return format_address(self.address, family=self.request.family)


_Key = tuple[str, str, int]
"""owner, network, family"""


class Allocation(NamedTuple):
    """What a call allocated: results in the order of the requests, and records that owners had before."""

    addresses: list[InterfaceAddress]
    replaced: list[AddressRecord]


class Allocator:
    """Allocates for requests, all or none. Callers hold the locks of the owners."""

    def __init__(self, client: VncClient, cache: Cache, cluster: str, clock: Clock) -> None:
        self._claims = Claims(client, cache, cluster)
        self._pod_network = pod_network_name(cluster)
        self._cache = cache
        self._clock = clock
        self._incomplete: WeakSet[AddressPool] = WeakSet()  # addresses that others have are left out of them

    async def allocate(self, requests: Sequence[AddressRequest]) -> Allocation:
        """Raises NotFoundError, AddressUnavailableError or ExhaustedError."""
        for _ in range(MAX_TAKEN):
            results, choices = self._choose(requests)
            if await self._claim([choice for choice in choices if choice.record is None]):
                replaced = [choice.replaced for choice in choices if choice.replaced is not None]
                return Allocation([_shown(choice) for choice in results], replaced)
        network = self._network(requests[0].network_uuid)
        raise ExhaustedError(network.name, requests[0].family, next_free_in=NEXT_TRY)

    def _choose(self, requests: Sequence[AddressRequest]) -> tuple[list[_Choice], list[_Choice]]:
        """Returns the choice for each request, and all choices, marked as allocated; marks none if a request fails."""
        choices: dict[_Key, _Choice] = {}
        try:
            results = [self._chosen(request, choices) for request in requests]
        except Exception:
            _unmark(choices.values())
            raise
        return results, list(choices.values())

    def _chosen(self, request: AddressRequest, choices: dict[_Key, _Choice]) -> _Choice:
        wished = request.address is not None
        pool = self._pool_uuid(request.reserved_in)
        if pool is not None and not self._cache.addresses.share_pool(request.network_uuid, pool):
            address = self._reserved(request, pool, choices).text
            request = msgspec.structs.replace(request, address=address)
        request = msgspec.structs.replace(request, reserved_in=None)
        key = (request.owner, request.network_uuid, request.family)
        if key in choices and request.address in (None, choices[key].text):
            return choices[key]
        choice = choices[key] = self._select(request, wished=wished)
        if choice.record is None:
            choice.pool.mark_allocated(choice.address)
        return choice

    def _reserved(self, request: AddressRequest, pool: str, choices: dict[_Key, _Choice]) -> _Choice:
        reservation = msgspec.structs.replace(request, network_uuid=pool, reserved_in=None)
        try:
            return self._chosen(reservation, choices)
        except (AddressUnavailableError, ExhaustedError) as error:
            raise error.of_network(self._network(request.network_uuid).name) from error

    def _pool_uuid(self, uuid: str | None) -> str | None:
        """Returns the uuid of a network of reservations: a pod network that was taken over has kept another one."""
        if uuid == network_uuid(self._pod_network):
            return next((each.uuid for each in self._cache.networks.named(":".join(self._pod_network))), uuid)
        return uuid

    def _select(self, request: AddressRequest, *, wished: bool) -> _Choice:
        network = self._network(request.network_uuid)
        pool = self._cache.addresses.pool(network, family=request.family)
        had = self._allocated(request)
        if had is not None and request.address in (None, had.address):
            address = parse_address(had.address, family=request.family)
            return _Choice(request, network, pool, address, had, None, wished)
        if request.address is not None:
            address = self._requested(request, request.address, network, pool, had)
            same = had is not None and parse_address(had.address, family=request.family) == address
            return _Choice(request, network, pool, address, had if same else None, None if same else had, wished)
        chosen = pool.next_free()
        if chosen is None:
            raise self._exhausted(request, network, pool)
        return _Choice(request, network, pool, chosen, None, None, wished)

    def _requested(
        self,
        request: AddressRequest,
        requested: str,
        network: VirtualNetwork,
        pool: AddressPool,
        had: AddressRecord | None,
    ) -> int:
        try:
            address = parse_address(requested, family=request.family)
        except ValueError as error:
            problem = f"it is not an IPv{request.family} address"
            raise AddressUnavailableError(requested, network.name, problem) from error
        if had is not None and parse_address(had.address, family=request.family) == address:
            return address
        reason = pool.unavailable_reason(address)
        if reason is not None:
            free_in = self._free_in(request.network_uuid, format_address(address, family=request.family))
            raise AddressUnavailableError(requested, network.name, reason, free_in=free_in)
        return address

    async def _claim(self, choices: Sequence[_Choice]) -> bool:
        """Creates the instance-ips; returns False, having created none, if another choice has to be made."""
        claims = [self._claim_of(choice) for choice in choices]
        creates = (self._create(choice, claim) for choice, claim in zip(choices, claims, strict=True))
        outcomes = await asyncio.gather(*creates, return_exceptions=True)
        if all(outcome is Claimed.CREATED for outcome in outcomes):
            return True
        pairs = list(zip(choices, outcomes, strict=True))
        failed = [choice for choice, outcome in pairs if isinstance(outcome, BaseException)]
        # whoever has a wished one may free it
        refused = [choice for choice, outcome in pairs if outcome is Claimed.TAKEN and choice.wished]
        _unmark([*failed, *refused])
        self._incomplete.update(choice.pool for choice, outcome in pairs if outcome is Claimed.TAKEN)
        created = [claim for claim, outcome in zip(claims, outcomes, strict=True) if outcome is Claimed.CREATED]
        await self._withdraw(created)
        if refused:
            raise AddressUnavailableError(refused[0].text, refused[0].network.name, ALLOCATED)
        _raise_first(outcomes)
        return False

    async def _withdraw(self, claims: Sequence[AddressClaim]) -> None:
        """Deletes claims. One that cannot be deleted stays its owner's, who gets it at the next try."""
        deletions = (self._claims.delete(claim.name, claim.owner) for claim in claims)
        _raise_first(await asyncio.gather(*deletions, return_exceptions=True))

    async def _create(self, choice: _Choice, claim: AddressClaim) -> Claimed:
        outcome = await self._claims.create(claim)
        if outcome is Claimed.OWNED:
            # the owner has an address already, which the cache knows now; perhaps this one
            records = self._cache.addresses.of_network(choice.network.uuid)
            if all(record.address != choice.text for record in records):
                _unmark([choice])
        return outcome

    def _claim_of(self, choice: _Choice) -> AddressClaim:
        network = choice.network
        return AddressClaim(
            network.uuid, network.fq_name, choice.text, choice.request.owner, self._generation(choice.request)
        )

    def _network(self, uuid: str) -> VirtualNetwork:
        network = self._cache.networks.get(uuid)
        if network is None:
            raise NotFoundError(f"network {uuid}: not found")
        return network

    def _allocated(self, request: AddressRequest) -> AddressRecord | None:
        return next(
            (
                record
                for record in self._cache.addresses.of_owner(request.owner)
                if record.network_uuid == request.network_uuid
                and record.family == request.family
                and record.held_until is None
            ),
            None,
        )

    def _generation(self, request: AddressRequest) -> int:
        names = {record.name for record in self._cache.addresses.of_owner(request.owner)}
        generation = 1
        while instance_ip_name(request.owner, request.network_uuid, request.family, generation) in names:
            generation += 1
        return generation

    def _exhausted(self, request: AddressRequest, network: VirtualNetwork, pool: AddressPool) -> ExhaustedError:
        """Returns the error. Addresses of others are tried again from then on."""
        wait = self._next_free_in(request)
        if pool in self._incomplete:
            self._cache.addresses.forget_pool(network)
            wait = FORGOTTEN_AFTER if wait is None else min(wait, FORGOTTEN_AFTER)
        return ExhaustedError(network.name, request.family, next_free_in=wait)

    def _next_free_in(self, request: AddressRequest) -> float | None:
        ends = [
            record.held_until
            for record in self._cache.addresses.of_network(request.network_uuid)
            if record.held_until is not None and record.family == request.family
        ]
        return max(0.0, min(ends) - self._clock()) if ends else None

    def _free_in(self, network_uuid: str, address: str) -> float | None:
        for record in self._cache.addresses.of_network(network_uuid):
            if record.address == address and record.held_until is not None:
                return max(0.0, record.held_until - self._clock())
        return None


def _raise_first(outcomes: Iterable[object]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _unmark(choices: Iterable[_Choice]) -> None:
    for choice in choices:
        if choice.record is None:
            choice.pool.mark_free(choice.address)


def _shown(choice: _Choice) -> InterfaceAddress:
    bounds = choice.pool.bounds(choice.address)
    return InterfaceAddress(
        address=choice.text,
        prefix_length=bounds.prefix_length,
        gateway=bounds.gateway,
        dns=tuple(server for server in choice.network.dns if family_of(server) == choice.request.family),
    )
