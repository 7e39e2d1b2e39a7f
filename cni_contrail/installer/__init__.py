"""Node installer: puts the plugin, its settings and the network configuration on a node, and keeps them there.

A process of its own, in a container with the node's directories and without rights. What it installs:

    /opt/cni/bin/contrail-k8s-cni               the native shim
    /opt/cni/bin/contrail-loopback, loopback    the plugin `loopback` and a link to it, if the node has none
    /etc/contrail/cni.json                      node-wide settings
    /etc/cni/net.d/10-contrail.conflist         network configuration list

The list comes last, and only when an ADD would succeed: with it a runtime reports the node as ready for pods. It then
stays: a runtime that loses it can no longer remove the network of its pods. Files are replaced atomically, what
somebody removes or edits is put back, and files of other plugins are not touched. One process at a time works on a node
(`lock`); an uninstaller holds the lock, so that nothing puts back what it has removed.
"""
