"""The operations on addresses, planned on a draft of the ledger: giving and freeing."""

from collections.abc import Callable, Collection, Mapping, Sequence

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.errors import AddressUnavailableError, ExhaustedError
from contrail_config.kubernetes.blocks import AddressKey, Pool
from contrail_config.kubernetes.change_set import ChangeSet
from contrail_config.objects import InterfaceAddress, VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, AddressRequest

FindNetwork = Callable[[str], VirtualNetwork]
"""Gives the network of a uuid. Raises NotFoundError."""


def give(draft: ChangeSet, requests: Sequence[AddressRequest], find_network: FindNetwork) -> list[InterfaceAddress]:
    """Gives an address for each request. Raises NotFoundError, AddressUnavailableError or ExhaustedError."""
    return [_grant(draft, request, find_network(request.network_uuid)) for request in requests]


def free(draft: ChangeSet, owners: Mapping[str, Collection[str]], *, hold: float) -> set[str]:
    """Frees what the owners have but for some addresses of each, and shortens the holds of what they had.

    Returns the uuids of the networks.
    """
    places = [place for owner, kept in owners.items() for place in draft.ledger.places(owner) if place.text not in kept]
    for place in places:
        draft.free(place, hold=hold)
    return {place.pool.network_uuid for place in places}


def shorten_holds(draft: ChangeSet, owners: Collection[str], *, hold: float) -> None:
    """Shortens the holds of what the owners had."""
    for owner in owners:
        for place in draft.ledger.places(owner):
            if not draft.ledger.is_given(place):
                draft.free(place, hold=hold)


def _grant(draft: ChangeSet, request: AddressRequest, network: VirtualNetwork) -> InterfaceAddress:
    choice = draft.ledger.choice(network, request.family)
    owned = draft.ledger.given(request.owner, Pool(network.uuid, request.family))
    if request.address is not None:
        place = _wished(draft, request, request.address, network, owned)
    else:
        place = owned[0] if owned else _next(draft, request, network)
    if place not in owned:
        draft.give(place, request.owner)
    if request.address is not None:
        for other in owned:
            if other != place:
                draft.free(other, hold=DEFAULT_HOLD)
    draft.rely_on(place)
    return _answer(place, network, choice)


def _next(draft: ChangeSet, request: AddressRequest, network: VirtualNetwork) -> AddressKey:
    pool = Pool(network.uuid, request.family)
    address = draft.ledger.choice(network, request.family).next_free()
    if address is None:
        end = draft.ledger.next_end(pool)
        wait = None if end is None else max(0.0, end - draft.now)
        raise ExhaustedError(network.name, request.family, next_free_in=wait)
    return AddressKey(pool, address)


def _wished(
    draft: ChangeSet, request: AddressRequest, requested: str, network: VirtualNetwork, owned: Sequence[AddressKey]
) -> AddressKey:
    try:
        place = AddressKey(Pool(network.uuid, request.family), parse_address(requested, family=request.family))
    except ValueError as error:
        raise AddressUnavailableError(requested, network.name, f"it is no IPv{request.family} address") from error
    refusal = None if place in owned else draft.ledger.choice(network, request.family).unavailable_reason(place.address)
    if refusal is not None:
        entry = draft.ledger.entry(place)
        held = None if entry is None else entry.held
        wait = None if held is None else max(0.0, held.until - draft.now)
        raise AddressUnavailableError(requested, network.name, refusal, free_in=wait)
    return place


def _answer(place: AddressKey, network: VirtualNetwork, choice: AddressPool) -> InterfaceAddress:
    bounds = choice.bounds(place.address)
    return InterfaceAddress(
        address=place.text,
        prefix_length=bounds.prefix_length,
        gateway=bounds.gateway,
        dns=tuple(server for server in network.dns if family_of(server) == place.pool.family),
    )
