"""The store of a cluster: custom resources of the group `opencontrail.org`, with etcd as the engine.

`KubernetesStore` in `store` is the way in. Networks and machines are objects by themselves (`networks`, `machines`);
addresses are kept 64 to an object, of which every writer has a copy in memory (`ledger`) that is kept in step with the
server (`mirror`) and changed by compare-and-swap, all requests of a moment at once (`clerk`). Beside the store stand
the reports of nodes (`nodes`): agents write them, managers follow them.
"""
