"""Kubernetes store: custom resources of the group `opencontrail.org`; etcd is the engine.

The entry point is `KubernetesStore` in `store`. Networks and virtual machines are objects of their own
(`virtual_networks`, `virtual_machines`), virtual machines in system namespaces (`node_buckets`). Addresses are stored
in blocks, 64 to an object. Every writer caches all blocks (`allocation_cache`), follows the server (`informer`) and
writes by compare-and-swap, with all concurrent requests in one batch (`committer`). Next to the store are the reports
of nodes (`node_reports`): agents write them, managers watch them.
"""
