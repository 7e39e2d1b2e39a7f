"""State of the worker thread: the open file, its tables, and the change feed of the watchers.

The rows are the source of truth. The caches of the tables (networks, address pools) are loaded from them on demand and
cleared when a transaction is rolled back.
"""

from collections.abc import Callable

from contrail_config.embedded.address_pools import AddressPools
from contrail_config.embedded.address_table import AddressTable
from contrail_config.embedded.change_feed import ChangeFeed
from contrail_config.embedded.database import open_database
from contrail_config.embedded.event_table import EventTable
from contrail_config.embedded.identity_table import IdentityTable
from contrail_config.embedded.rows import RowChange
from contrail_config.embedded.virtual_machine_table import VirtualMachineTable
from contrail_config.embedded.virtual_network_table import VirtualNetworkTable


class Engine:
    """Opens the file at `path`. Raises StoreUnavailableError. All parts are used only in the thread that created it.

    `changes` are those of the current transaction, in order.
    """

    def __init__(self, path: str, *, clock: Callable[[], float]) -> None:
        self.database = open_database(path)
        connection = self.database.connection
        self.changes: list[RowChange] = []
        self.networks = VirtualNetworkTable(connection, self.changes)
        self.pools = AddressPools(connection)
        self.addresses = AddressTable(connection, self.networks, self.pools, clock=clock)
        self.addresses.limit_holds()
        self.virtual_machines = VirtualMachineTable(connection, self.changes, self.addresses)
        self.events = EventTable(connection, clock=clock)
        self.identities = IdentityTable(connection)
        self.feed = ChangeFeed()

    def delete_network(self, uuid: str) -> None:
        """Deletes an unused network and its pools. Raises InUseError."""
        self.networks.delete(uuid)
        self.pools.evict(uuid)

    def clear_caches(self) -> None:
        """Drops the caches and the changes of the current transaction."""
        self.changes.clear()
        self.networks.clear_cache()
        self.pools.clear()
