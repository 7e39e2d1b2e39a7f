"""Deletion of instance-ips, also of one whose network was deleted while it was created.

The server refuses to delete or to change such a one. The way out is a network with the same uuid, for a moment.
"""

import contextlib

from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncExistsError, VncInUseError, VncNotFoundError, VncServerError
from contrail_config.vnc.mapping import networks
from contrail_config.vnc.mapping.addresses import KIND, AddressRecord


async def delete_address(client: VncClient, record: AddressRecord) -> None:
    """Deletes an instance-ip. Idempotent. Raises VncError."""
    try:
        await client.delete(KIND, record.uuid)
    except VncServerError:
        if await _exists(client, record.network_uuid):
            raise
        with contextlib.suppress(VncExistsError):
            await client.create(networks.KIND, networks.stand_in_body(record.network_uuid))
        await client.delete(KIND, record.uuid)
        with contextlib.suppress(VncInUseError):  # another such instance-ip: it goes with the last one
            await client.delete(networks.KIND, record.network_uuid)


async def _exists(client: VncClient, uuid: str) -> bool:
    with contextlib.suppress(VncNotFoundError):
        await client.read(networks.KIND, uuid, fields=["annotations"])
        return True
    return False
