"""Real Kubernetes API server: kube-apiserver with its own etcd, on free loopback ports.

No controllers and no kubelet run: deleted namespaces stay terminating, tests bind pods, and features that create
objects of their own are off. `build` is the Go module from which `scripts/kube-apiserver` builds both commands, and the
kube-proxy of this version (`scripts/kube-proxy`).
"""
