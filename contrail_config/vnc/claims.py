"""Claims of addresses: creates of instance-ips.

Without uuid in the create, the server lets one of each name and one of each address win, whoever asks.
"""

import contextlib
from enum import Enum
from typing import Final

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from contrail_config.vnc.cache import Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncAddressTakenError, VncExhaustedError, VncExistsError, VncNotFoundError
from contrail_config.vnc.mapping.addresses import FIELDS, KIND, AddressClaim, AddressRecord, claim_body, read_address
from contrail_config.vnc.store_errors import as_store_error

_IN_PROGRESS_DEADLINE: Final = 5.0
"""Seconds until a name that somebody claimed must resolve: after them, another server takes such a claim over."""


class Claimed(Enum):
    """Outcome of a claim. OWNED: the owner has an address, by a lost request or by another manager."""

    CREATED = "created"
    TAKEN = "taken"
    OWNED = "owned"


class Claims:
    """Creates and deletes instance-ips, and tells the cache."""

    def __init__(self, client: VncClient, cache: Cache, cluster: str) -> None:
        self._client = client
        self._cache = cache
        self._cluster = cluster

    async def create(self, claim: AddressClaim) -> Claimed:
        """Claims an address. Raises StoreError."""
        with as_store_error(f"network {':'.join(claim.network)}: address {claim.address}"):
            try:
                uuid = await self._client.create(KIND, claim_body(claim, self._cluster))
            except (VncAddressTakenError, VncExhaustedError):
                return Claimed.TAKEN
            except VncExistsError:
                await self._read_owned(claim)
                return Claimed.OWNED
        record = AddressRecord(uuid, claim.name, claim.network_uuid, claim.address, claim.owner)
        self._cache.addresses.wrote(uuid, record)
        return Claimed.CREATED

    async def delete(self, name: str, owner: str) -> None:
        """Deletes the instance-ip of a name. Raises StoreError."""
        for record in self._cache.addresses.of_owner(owner):
            if record.name == name:
                with as_store_error(f"address {record.address}"), contextlib.suppress(VncNotFoundError):
                    await self._client.delete(KIND, record.uuid)
                self._cache.addresses.wrote(record.uuid, None)

    async def _read_owned(self, claim: AddressClaim) -> None:
        """Has the cache know the instance-ip of the claim's name."""
        # a name does not resolve before its create is finished
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(VncNotFoundError),
            stop=stop_after_delay(_IN_PROGRESS_DEADLINE),
            wait=wait_random_exponential(multiplier=0.05, max=0.5),
            reraise=True,
        ):
            with attempt:
                uuid = await self._client.find_uuid(KIND, [claim.name])
                record = read_address(await self._client.read(KIND, uuid, fields=FIELDS), self._cluster)
                if record is None:
                    raise VncExistsError(f"instance-ip {claim.name}: made by another program")
                self._cache.addresses.wrote(uuid, record)
