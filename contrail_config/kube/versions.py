"""The order of resourceVersions: numbers that grow, since Kubernetes 1.35 by contract and before it in fact.

Nothing here depends on it for being right with a server that keeps its events in order: one of another form is taken
for newer than any.
"""


def is_newer(version: str, known: str) -> bool:
    """Whether an event of this version tells something that was not known at the other one."""
    if not _is_number(version) or not _is_number(known):
        return version != known
    return int(version) > int(known)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit()
