"""A small Kubernetes client: the verbs, list and watch, and leader election that manager and agents need.

Written on aiohttp and msgspec because generated clients decode a pod in milliseconds where a struct with only the
fields that are read takes microseconds, and because none of them lists and watches in a way that loses nothing.
"""
