"""YAML that people wrote, read the same way wherever a program of ours starts: configuration, kubeconfig, manifests.

It stands alone, below everything else of ours: the daemon of the plugin shares nothing but this with manager and agent.
"""
