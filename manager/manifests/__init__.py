"""Source of pods and networks without a cluster: a folder of YAML and JSON manifests.

From the disk to the manager: `folder_watch` wakes, `folder_scan` lists, `debounce` waits until a file is stable,
`documents` and `decoding` parse it, `inventory` maps objects to files, and `delivered_objects` reports what changed.
`manifest_folder` and `source` tie them together.
"""
