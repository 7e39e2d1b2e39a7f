"""The ports that plugins have plugged: one per interface, owned by the container of its newest `POST /vm`.

`request` reads what a client posts into a `port`, `table` decides whose it is and has it kept by `directory`, in
files of upstream's format; `stale` drops those whose device went away while nobody looked.
"""
