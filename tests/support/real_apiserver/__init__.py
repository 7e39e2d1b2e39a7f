"""A real Kubernetes API server: kube-apiserver on an etcd of its own, on free ports of the loopback.

No controller runs and no kubelet: namespaces that are deleted stay terminating, pods are bound by whoever tests, and
what would fill a cluster with objects of its own is off. `build` is the Go module that `scripts/kube-apiserver` makes
both commands from.
"""
