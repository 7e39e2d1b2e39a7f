"""Schema of the store's file.

An object is stored whole, as JSON, next to the columns that are searched. `addresses` has one row for each address that
is allocated or held after its release (then `held_until` is set, in seconds since the epoch). A hold outlives its
network: a network recreated under the same uuid does not reuse the address early either. Ids increase in the order of
allocation, so the last allocated address is known after a restart.
"""

from typing import Final

APPLICATION_ID: Final = 0x4374724C
"""`PRAGMA application_id` of our files."""

VERSION: Final = 1
"""Version of the statements below (`PRAGMA user_version`). A file with a newer version is not opened."""

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
        pending INTEGER NOT NULL,
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
