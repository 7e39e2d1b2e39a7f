"""The limit of open files of this process. Imports the standard library only, as the node daemon uses it too."""

import resource


def raise_file_limit() -> None:
    """Raises the soft limit of open files to the hard one: each client takes a file, and shells start with 1024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
