"""Duplicates: virtual machines of one name and different uuids, which two managers created at the same time.

Their creates have uuids, so the server lets both succeed. From then on it answers 500 to whatever names them, which
includes the creates of their interfaces, until all but one are deleted.
"""

import logging

from contrail_config.errors import ConflictError
from contrail_config.objects import VirtualMachine
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.leftovers import Leftovers
from contrail_config.vnc.mapping import machines
from contrail_config.vnc.store_errors import as_store_error

log = logging.getLogger(__name__)


class Duplicates:
    """Deletes those that nobody has committed. Callers hold no lock."""

    def __init__(self, client: VncClient, leftovers: Leftovers) -> None:
        self._client = client
        self._leftovers = leftovers

    async def resolve(self, machine: VirtualMachine) -> None:
        """Deletes others of the name, so that the next write succeeds.

        Raises ConflictError, with its holder, if one of them is committed or of another program; StoreError.
        """
        with as_store_error(f"virtual machine {machine.name}"):
            found = await self._client.list_named(machines.KIND, machine.name, fields=machines.FIELDS)
            for item in found:
                if item["uuid"] == machine.uuid:
                    continue
                if not machines.is_uncommitted(item, machine.cluster):
                    problem = f"virtual machine {machine.name}: already exists with uuid {item['uuid']}"
                    raise ConflictError(problem, holder=item["uuid"])
                log.warning("virtual machine %s: created twice, deleting that of uuid %s", machine.name, item["uuid"])
                await self._leftovers.delete(item["uuid"])
