"""Fake Kubernetes API server for fast tests: real HTTP, objects in memory, and injected faults.

The suite in `tests/contrail_config/kube/api_contract` verifies it against a real server. It implements only what this
project's clients rely on: schemas have only names, admission only checks namespaces, and the only controller
establishes CRDs.
"""
