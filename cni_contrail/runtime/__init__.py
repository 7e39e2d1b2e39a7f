"""CNI runtime: executes network configuration lists, as libcni does for containerd and CRI-O.

It loads a list, derives each plugin's configuration, runs the chain, caches the result, asks for readiness and collects
garbage. For `contrailctl cni`, the demo and the tests; nothing here is on the path of the plugin's own ADD or DEL.

    network = find_network("/etc/cni/net.d", "contrail-k8s-cni")
    runtime = Runtime(["/opt/cni/bin"])
    result = runtime.add(network, Attachment(container_id, "/run/netns/pod", "eth0"))
"""
