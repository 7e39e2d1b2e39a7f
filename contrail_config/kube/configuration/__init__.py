"""Finds out how the server is reached and who asks: in-cluster files or kubeconfig.

What is wrong is one KubeConfigurationError that names file and key. Not supported, and refused by name: user name and
password, authentication providers, impersonation, SOCKS proxies.
"""
