"""The other side of the CNI specification: what a runtime does with network configuration lists.

What libcni does for containerd and CRI-O: loads a list, derives each plugin's configuration, runs the chain, keeps the
result, asks for readiness, collects garbage. For `contrailctl cni`, the demo and the tests; nothing here is on the path
of a plugin's own ADD or DEL.

    network = find_network("/etc/cni/net.d", "contrail-k8s-cni")
    runtime = Runtime(["/opt/cni/bin"])
    result = runtime.add(network, Attachment(container_id, "/run/netns/pod", "eth0"))
"""
