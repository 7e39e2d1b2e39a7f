"""Loads the client configuration from kubeconfig files or from the pod's service account.

Every problem is one KubeConfigurationError that names file and key. Not supported, and rejected by name: user name and
password, authentication providers, impersonation, SOCKS proxies.
"""
