"""Pods and networks from a folder of YAML and JSON manifests: what stands in for a cluster where there is none.

From the disk to the manager: `watching` wakes, `scanning` lists, `settling` waits until a file is at rest, `documents`
and `decoding` read it, `inventory` knows which file holds which object, and `ledger` tells what changed. `source` ties
them together.
"""
