"""Reads the keys of a JSON object that an administrator wrote; every error names file and key.

The reading is strict where libcni's is not: what a plugin would refuse at its first call is refused here.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from cni_contrail.runtime.errors import NetworkConfigurationError


class Document:
    """A JSON object, the file it is from, and its place in that (`plugins[0].`). Methods raise ConfigurationError."""

    def __init__(self, content: Mapping[str, Any], *, origin: str, place: str = "") -> None:
        self.content = content
        self._origin = origin
        self._place = place

    @classmethod
    def decode(cls, source: bytes, *, origin: str) -> "Document":
        """The object that a JSON text holds."""
        try:
            content = json.loads(source)
        except ValueError as error:
            raise NetworkConfigurationError(f"{origin}: is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise NetworkConfigurationError(f"{origin}: must hold a JSON object")
        return cls(content, origin=origin)

    def string(self, key: str) -> str:
        """A text that must be there."""
        value = self.content.get(key)
        if not isinstance(value, str) or not value:
            self.refuse(key, "must be a string that is not empty" if key in self.content else "is missing")
        return value

    def flag(self, key: str) -> bool:
        """True or false, as such or in words, as libcni reads it; false if it is absent."""
        value = self.content.get(key, False)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            self.refuse(key, f"must be true or false, not {value!r}")
        return value

    def flags(self, key: str) -> dict[str, bool]:
        """An object of true and false; empty if it is absent."""
        value = self.content.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, "must be an object")
        for name, flag in value.items():
            if not isinstance(flag, bool):
                self.refuse(f"{key}.{name}", f"must be true or false, not {flag!r}")
        return value

    def objects(self, key: str) -> "list[Document]":
        """A list of objects, at least one; none if it is absent."""
        value = self.content.get(key, [])
        if not isinstance(value, list) or (key in self.content and not value):
            self.refuse(key, "must be a list of at least one object")
        for index, content in enumerate(value):
            if not isinstance(content, dict):
                self.refuse(f"{key}[{index}]", "must be an object")
        return [Document(content, origin=self._origin, place=f"{key}[{index}].") for index, content in enumerate(value)]

    def refuse(self, key: str, problem: str) -> NoReturn:
        """Raises the error for one key."""
        raise NetworkConfigurationError(f"{self._origin}: key '{self._place}{key}': {problem}")
