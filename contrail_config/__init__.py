"""Config objects and the stores that keep them.

What the manager knows of pods and networks reaches the agents as three kinds of objects: `VirtualNetwork`,
`VirtualMachine` and, inside a machine, its `VirtualMachineInterface` list. A machine is written once, as one
piece, so nobody ever sees half a pod.
"""
