"""What the file holds.

Objects are kept whole, as JSON, beside the columns that are searched. `addresses` has a row for each address that is
given or (then with `held_until`, seconds since the epoch) held back after its release. A hold outlives its network: a
network that is made again under the same uuid does not give the address at once either. Its ids rise in the order in
which addresses were given, so the last given one is known after a restart.
"""

from typing import Final

APPLICATION_ID: Final = 0x4374724C
"""Marks the file as ours (`PRAGMA application_id`)."""

VERSION: Final = 1
"""Of the statements below (`PRAGMA user_version`); a file of a newer one is not opened."""

STATEMENTS: Final = (
    """CREATE TABLE networks (
        uuid TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        vni INTEGER NOT NULL UNIQUE,
        retired INTEGER NOT NULL,
        body BLOB NOT NULL
    )""",
    """CREATE TABLE machines (
        uuid TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        node TEXT NOT NULL,
        body BLOB NOT NULL
    )""",
    "CREATE INDEX machines_of_node ON machines (node, uuid)",
    """CREATE TABLE addresses (
        id INTEGER PRIMARY KEY,
        network TEXT NOT NULL,
        family INTEGER NOT NULL,
        address TEXT NOT NULL,
        owner TEXT NOT NULL,
        held_until REAL,
        UNIQUE (network, address)
    )""",
    "CREATE INDEX addresses_of_owner ON addresses (owner)",
    "CREATE INDEX given_addresses ON addresses (network) WHERE held_until IS NULL",
    "CREATE INDEX holds ON addresses (held_until) WHERE held_until IS NOT NULL",
    "CREATE INDEX holds_of_network ON addresses (network, family, held_until) WHERE held_until IS NOT NULL",
    """CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        uid TEXT NOT NULL,
        type TEXT NOT NULL,
        reason TEXT NOT NULL,
        message TEXT NOT NULL,
        count INTEGER NOT NULL,
        first_seen REAL NOT NULL,
        last_seen REAL NOT NULL,
        UNIQUE (kind, namespace, name, uid, type, reason, message)
    )""",
    "CREATE INDEX events_by_age ON events (last_seen)",
    """CREATE TABLE identities (
        kind TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        uid TEXT NOT NULL,
        PRIMARY KEY (kind, namespace, name)
    ) WITHOUT ROWID""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
