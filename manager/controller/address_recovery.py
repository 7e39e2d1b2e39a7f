"""Addresses that machines bear though the store knows of nobody who has any: somebody removed what told of them.

Where addresses and machines are objects of their own, either kind may be deleted while the other stays. What a running
pod uses must not be given to another one, so it is given to its machine again before any pod is worked on.

Not noticed: an interface that lost its address in one family, and has the one in the other.
"""

import asyncio
import logging
from collections.abc import Sequence

from contrail_config.errors import AddressUnavailableError, NotFoundError
from contrail_config.objects import VirtualMachine
from contrail_config.store import AddressRequest, Store

log = logging.getLogger(__name__)

_AT_ONCE = 1024
"""Machines: as many as share a block, and more."""


async def recover_addresses(store: Store, machines: Sequence[VirtualMachine]) -> None:
    """Has the addresses of these machines given to them, as far as nobody has them and their networks are there.

    Raises StoreError.
    """
    owners = await store.address_owners()
    robbed = [machine for machine in machines if _missing(machine, owners)]
    if robbed:
        log.warning("addresses of %d machines are nobody's: they are given to them again", len(robbed))
    for first in range(0, len(robbed), _AT_ONCE):
        work = (_give_again(store, machine, owners) for machine in robbed[first : first + _AT_ONCE])
        await asyncio.gather(*work)


async def _give_again(store: Store, machine: VirtualMachine, owners: set[str]) -> None:
    try:
        await store.allocate(_missing(machine, owners))
    except (AddressUnavailableError, NotFoundError) as error:
        log.warning("addresses of machine %s are not given to it: %s", machine.name, error)


def _missing(machine: VirtualMachine, owners: set[str]) -> list[AddressRequest]:
    return [
        AddressRequest(interface.network_uuid, address.family, interface.uuid, address=address.address)
        for interface in machine.interfaces
        if interface.uuid not in owners
        for address in interface.addresses
    ]
