"""State that the plugin keeps between calls: a record per attachment, and notifications still to be sent to the agent.

All of it is below `state-dir`, on tmpfs: no sandbox survives a reboot, so no state needs to, and nothing is synced to a
disk. Directories have mode 0700, files 0600, and files are written by atomic rename.

    <state-dir>/<container ID>/<CNI_IFNAME>.json   record of an attachment
    <state-dir>/.pending/<...>.json                pending notification
    <state-dir>/.damaged/<...>.json                unreadable record, kept for inspection
    <state-dir>/.vlan-<name>                       lock of a VLAN in nested mode, while it is held (`commands.nested`)

A call that changes a container's records holds a lock on its directory (`lock`); an ADD holds a lock on one byte of
`state-dir` for as long as it runs (`attempt_locks`). The kernel releases both when the process dies.

Nodes in network namespaces of one machine may share a `state-dir`, as long as all calls for a container come from the
namespace where it was attached: a record names that namespace, and GC and `commands.sweep` skip records of others.
"""
