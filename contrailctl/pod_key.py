"""Pods as arguments: `NAMESPACE/NAME`."""

import re

from contrailctl.errors import UsageError

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_LONGEST = 63 + 1 + 253
_SHOWN = 200


def parse_pod_key(text: str) -> tuple[str, str]:
    """Returns namespace and name. Raises UsageError; names that no pod can have would change the path of a request."""
    namespace, _, name = text.partition("/")
    if not (_NAMESPACE.fullmatch(namespace) and _NAME.fullmatch(name) and len(text) <= _LONGEST):
        raise UsageError(f"{text[:_SHOWN]!r}: must be NAMESPACE/NAME")
    return namespace, name
