"""A Kubernetes API server for fast tests: real HTTP, objects in memory, and faults that a real one does not show.

Held to a real one by the suite in `tests/contrail_config/kube/api_contract`. It knows what clients of ours rely on and
no more: no schemas but names, no admission but namespaces, no controllers but the one that establishes CRDs.
"""
