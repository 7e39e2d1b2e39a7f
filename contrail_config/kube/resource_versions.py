"""Order of resourceVersions: increasing integers, by contract since Kubernetes 1.35 and in practice before.

Correctness does not depend on it if the server delivers events in order: a version of any other form counts as newer.
"""


def is_newer(version: str, known: str) -> bool:
    """Whether an event with this version is newer than the known version."""
    if not _is_number(version) or not _is_number(known):
        return version != known
    return int(version) > int(known)


def is_at_least(version: str, wanted: str) -> bool:
    """Whether it is certain that this version is not older than the wanted one."""
    return version == wanted or (_is_number(version) and _is_number(wanted) and int(version) >= int(wanted))


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit()
