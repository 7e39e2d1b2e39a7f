"""Typed access to a JSON object that an administrator wrote; every error names file and key.

Stricter than libcni: what a plugin would reject at its first call is rejected here.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from cni_contrail.runtime.errors import NetworkConfigurationError


class Document:
    """A JSON object, its file, and its path in that (`plugins[0].`). Methods raise NetworkConfigurationError."""

    def __init__(self, content: Mapping[str, Any], *, origin: str, path: str = "") -> None:
        self.content = content
        self._origin = origin
        self._path = path

    @classmethod
    def decode(cls, source: bytes, *, origin: str) -> "Document":
        """Parses a JSON text that must hold an object."""
        try:
            content = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise NetworkConfigurationError(f"{origin}: is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise NetworkConfigurationError(f"{origin}: must hold a JSON object")
        return cls(content, origin=origin)

    def string(self, key: str) -> str:
        """Returns a required string."""
        value = self.content.get(key)
        if not isinstance(value, str) or not value:
            self.reject(key, "must be a non-empty string" if key in self.content else "is missing")
        return value

    def flag(self, key: str) -> bool:
        """Returns a boolean, false if absent; also accepts the strings "true" and "false", as libcni does."""
        value = self.content.get(key, False)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            self.reject(key, f"must be true or false, not {value!r}")
        return value

    def flags(self, key: str) -> dict[str, bool]:
        """Returns an object of booleans, empty if absent."""
        value = self.content.get(key, {})
        if not isinstance(value, dict):
            self.reject(key, "must be an object")
        for name, flag in value.items():
            if not isinstance(flag, bool):
                self.reject(f"{key}.{name}", f"must be true or false, not {flag!r}")
        return value

    def objects(self, key: str) -> "list[Document]":
        """Returns a list of at least one object, empty if absent."""
        value = self.content.get(key, [])
        if not isinstance(value, list) or (key in self.content and not value):
            self.reject(key, "must be a list of at least one object")
        for index, content in enumerate(value):
            if not isinstance(content, dict):
                self.reject(f"{key}[{index}]", "must be an object")
        return [Document(content, origin=self._origin, path=f"{key}[{index}].") for index, content in enumerate(value)]

    def reject(self, key: str, problem: str) -> NoReturn:
        """Raises NetworkConfigurationError for one key."""
        raise NetworkConfigurationError(f"{self._origin}: key '{self._path}{key}': {problem}")
