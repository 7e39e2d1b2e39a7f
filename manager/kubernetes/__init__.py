"""Pods and networks from a Kubernetes API server, and what is told there in return.

From the server to the manager: `wire` says what is read of an object, `objects` makes the manager's own of it, and
`source` follows all kinds in the order that the manager needs, each through `following`, with `newcomers` waiting for
their namespaces; `definition` sees to it that NADs can exist at all; `nodes` hears which ports are unplugged, `losses`
which machines go. Back to the server: `event_log` tells owners what happened, `network_status` and `status_writer` tell
a pod's readers which addresses it has. `cluster` ties them together, under the lease of the one that writes.
"""
