"""A Kubernetes API server that costs little, in a process of its own: what is measured is its client.

It serves as many pods as it is told to, which it makes up while they are listed; what is written is kept and told to
who watches, as a real server does. It checks nothing: conflicts, schemas and rights are the matter of other servers.
`python -m tests.bench.kubernetes.scripted_apiserver PODS` prints its port, and ends when its stdin does.
"""
