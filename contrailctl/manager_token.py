"""Token of a manager that requires one: from a file, so that it is in no list of processes."""

import os

from contrailctl.errors import UsageError

_VARIABLE = "CONTRAIL_TOKEN_FILE"


def manager_token() -> str:
    """Returns the token in the file that the environment names, empty without one. Raises UsageError."""
    path = os.environ.get(_VARIABLE)
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            token = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"{_VARIABLE}: {path}: {reason}") from error
    if not (token.isascii() and token.isprintable()):
        raise UsageError(f"{_VARIABLE}: {path}: not one line of printable ASCII")
    return token
