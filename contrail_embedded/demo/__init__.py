"""The whole way of a pod's interfaces on one machine: manifests in, links in network namespaces out, and away again.

It plays what is missing around the embedded node: the container runtime, which makes a network namespace for each pod
and runs the plugin, and a namespace that stands for the node, so that nothing touches the machine's own links. What the
kernel then says is compared with what the manager says.

`scripts/demo` runs it; read `cli.py` first.
"""
