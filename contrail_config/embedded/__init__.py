"""The store of one machine without a cluster: a SQLite file, owned by one process, that survives kill -9.

`SqliteStore` in `store` is the way in. One thread owns the file (`worker`), and runs there what the tables do
(`networks`, `machines`, `addresses`, `events`, `identities`), many operations in one transaction (`group_commit`);
what was committed goes to the watchers (`feed` in that thread, `watcher` in the loop).
"""
