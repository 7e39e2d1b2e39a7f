"""The ports that clients have plugged, one per interface. Knows no HTTP.

There are two types: `container` ports of `POST /vm`, owned by the container of the latest POST, and `instance` ports of
`POST /port`. `table` tracks ownership and persists ports through `directory`, in the file formats of the Contrail
vrouter agent; `stale` unplugs ports that are no longer in use.
"""
