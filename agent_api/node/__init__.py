"""Reports the state of this node to the cluster.

`reporter` writes the report. Its contents come from `unplugged` (ports that outlived their VirtualMachine) and from
recent errors and conflicts, which are kept in an `expiring_set`.
"""
