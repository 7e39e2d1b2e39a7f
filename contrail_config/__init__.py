"""Config objects and the stores that keep them.

The manager describes pods and networks to the agents in three kinds of objects: `VirtualNetwork`, `VirtualMachine` and,
inside a virtual machine, its list of `VirtualMachineInterface`. A virtual machine is written in one operation, so no
reader ever sees half a pod.
"""
