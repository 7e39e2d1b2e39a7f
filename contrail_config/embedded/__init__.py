"""Embedded store: a SQLite file, owned by one process, that survives kill -9. For a node without a cluster.

The entry point is `SqliteStore` in `store`. One thread owns the file (`worker`) and runs the operations of the tables
there (`virtual_network_table`, `virtual_machine_table`, `address_table`, `event_table`, `identity_table`), many in one
transaction (`group_commit`). Committed changes go to the watchers (`change_feed` in the thread, `watcher` in the loop).
"""
