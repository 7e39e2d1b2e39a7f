"""What the plugin remembers between calls: a record per attachment, and notifications that the agent still has to get.

All of it lies below `state-dir`, on tmpfs: no sandbox outlives a reboot, so nothing here has to, and nothing is
synchronised to a disk. Directories are 0700, files 0600, written by atomic rename.

    <state-dir>/<container ID>/<CNI_IFNAME>.json   record of an attachment
    <state-dir>/.pending/<...>.json                notification to be sent again
    <state-dir>/.damaged/<...>.json                record that could not be read, kept for people
"""
