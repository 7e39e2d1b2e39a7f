"""Pods as arguments: `NAMESPACE/NAME`."""

from contrailctl.errors import UsageError


def parse_pod_key(text: str) -> tuple[str, str]:
    """Returns namespace and name. Raises UsageError."""
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise UsageError(f"{text!r}: must be NAMESPACE/NAME")
    return namespace, name
