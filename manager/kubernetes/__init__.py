"""Pods and networks from a Kubernetes API server, and what is reported back to it.

From the server: `wire` defines what is decoded of an object, `objects` converts it into the manager's own, and `source`
watches all kinds in the order that the manager needs, each through an `informer`, while `pods_awaiting_namespace` holds
pods back until their namespace is known. `nad_crd` creates the CRD of NADs, `node_report_watch` reads which ports are
unplugged, `deleted_virtual_machines` which virtual machines were deleted or written, and `orphaned_virtual_machines`
finds those without a pod. To the server: `event_log` writes events, `network_status` and `status_writer` the addresses
of each pod. `cluster` composes them under the leader's lease, and `process` runs them.
"""
