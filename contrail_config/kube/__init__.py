"""Kubernetes client: verbs, list and watch, and leader election, as far as manager and agents need them.

Built on aiohttp and msgspec: generated clients take milliseconds to decode a pod, a struct with only the fields that
are read takes microseconds, and none of those clients lists and watches without losing events.
"""
