"""Everything that lives in the worker's thread: the open file, its tables, and the watchers' feed.

The rows are the truth. What the tables keep in memory (networks, address pools) is read from them when it is needed,
and dropped whole when a transaction is taken back.
"""

from collections.abc import Callable

from contrail_config.embedded.address_pools import AddressPools
from contrail_config.embedded.address_table import AddressTable
from contrail_config.embedded.database import open_database
from contrail_config.embedded.event_table import EventTable
from contrail_config.embedded.feed import Feed
from contrail_config.embedded.identity_table import IdentityTable
from contrail_config.embedded.rows import RowChange
from contrail_config.embedded.virtual_machine_table import VirtualMachineTable
from contrail_config.embedded.virtual_network_table import VirtualNetworkTable


class Engine:
    """Opens the file at `path`. Raises StoreUnavailableError. Its parts are used in the thread that made it.

    `changes` are those of the transaction that is being made, in their order.
    """

    def __init__(self, path: str, *, clock: Callable[[], float]) -> None:
        self.database = open_database(path)
        connection = self.database.connection
        self.changes: list[RowChange] = []
        self.networks = VirtualNetworkTable(connection, self.changes)
        self.pools = AddressPools(connection)
        self.addresses = AddressTable(connection, self.networks, self.pools, clock=clock)
        self.machines = VirtualMachineTable(connection, self.changes, self.addresses)
        self.events = EventTable(connection, clock=clock)
        self.identities = IdentityTable(connection)
        self.feed = Feed()

    def delete_network(self, uuid: str) -> None:
        """Deletes a network that is not in use, with its pools. Raises InUseError."""
        self.networks.delete(uuid)
        self.pools.forget(uuid)

    def forget(self) -> None:
        """Drops what was read or noted in memory."""
        self.changes.clear()
        self.networks.forget()
        self.pools.forget_all()
