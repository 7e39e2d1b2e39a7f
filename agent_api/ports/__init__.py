"""The ports that clients have plugged: one per interface.

There are two kinds: a `container`'s, of `POST /vm`, owned by the container of its newest POST, and an `instance`'s, of
`POST /port`. `table` decides whose a port is and has it kept by `directory`, in files of upstream's formats; `stale`
drops those that nobody has any more.
"""
