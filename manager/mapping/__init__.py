"""Maps a pod to its virtual machine: the interfaces, their networks, names and default routes.

Pure functions, no store, no clock: the same pod, networks and configuration give the same virtual machine.
First half: `interface_resolution.resolve_interfaces`. Second half: `virtual_machine.build_virtual_machine`. Addresses
are allocated in between.
"""
