"""End-to-end demo on one machine: manifests in, interfaces in network namespaces out, and everything removed again.

Simulates what surrounds the embedded node: the container runtime, which creates a network namespace per pod and runs
the plugin, and a network namespace as the simulated node, so that the machine's own links stay untouched. The
kernel state is then compared with the manager's API.

Not part of the wheel: `scripts/demo` runs it from the checkout. Start reading at `cli.py`.
"""
