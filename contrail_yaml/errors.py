"""Why a YAML file cannot be used.

YamlError
 └─ EqualKeysError  a key is given twice in one mapping
"""


class YamlError(Exception):
    """One line for people; it names the file where one was read."""


class EqualKeysError(YamlError):
    """The message names the key's path and both lines."""
