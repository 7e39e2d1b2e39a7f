"""What the plugin remembers between calls: a record per attachment, and notifications that the agent still has to get.

All of it lies below `state-dir`, on tmpfs: no sandbox outlives a reboot, so nothing here has to, and nothing is
synchronised to a disk. Directories are 0700, files 0600, written by atomic rename.

    <state-dir>/<container ID>/<CNI_IFNAME>.json   record of an attachment
    <state-dir>/.pending/<...>.json                notification to be sent again
    <state-dir>/.damaged/<...>.json                record that could not be read, kept for people

Who changes a container's records holds a lock of its directory (`lock`); an ADD holds a byte of `state-dir` locked for
as long as it runs (`owners`). The kernel frees both when a process dies.

Nodes in network namespaces of one machine may share a `state-dir`, as long as a container's calls all come from the
namespace where it was attached: a record tells which that is, and what frees by itself (GC, `commands.sweep`) leaves
the others' alone.
"""
