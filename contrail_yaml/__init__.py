"""YAML files that people write, read by the same rules in every program: configuration, kubeconfig, manifests.

Imports no other package of the project: the plugin's daemon uses this one and shares little else with manager and
agent.
"""
