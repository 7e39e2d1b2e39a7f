"""Errors of reading YAML and JSON that people write.

YamlError
 └─ DuplicateKeyError  a mapping has a key twice
"""


class YamlError(Exception):
    """One line for people; it names the file if one was read."""


class DuplicateKeyError(YamlError, ValueError):
    """The message names the key, in YAML with its path and both lines. A ValueError, as `json` decoders raise."""
