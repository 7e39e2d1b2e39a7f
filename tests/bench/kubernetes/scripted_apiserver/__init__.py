"""Lightweight Kubernetes API server process for benchmarks of its clients.

It generates the given number of pods while they are listed, stores writes and sends them to watches, as a real server
does. It checks nothing: no conflicts, schemas or access rights.
`python -m tests.bench.kubernetes.scripted_apiserver PODS` prints its port and exits at the end of stdin.
"""
