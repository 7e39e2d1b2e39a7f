"""From a pod to its virtual machine: which interfaces it gets, in which networks, with which names and default routes.

Pure functions, no store, no clock: the same pod, networks and configuration give the same machine.
`drafts.draft_interfaces` is the first half, `machine.build_machine` the second; between them addresses are allocated.
"""
