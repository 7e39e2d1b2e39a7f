"""Configuration files on disk: which there are in a directory, and what they hold."""

import os
from collections.abc import Sequence

from cni_contrail.runtime.errors import NetworkConfigurationError


def configuration_files(directory: str, endings: Sequence[str]) -> list[str]:
    """Returns the paths of the files with one of these endings, by name. Raises ConfigurationError."""
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        raise NetworkConfigurationError(f"{directory}: cannot be read: {error.strerror}") from error
    paths = (os.path.join(directory, name) for name in names if os.path.splitext(name)[1] in endings)
    return [path for path in paths if not os.path.isdir(path)]


def read_file(path: str) -> bytes:
    """Returns what a file holds. Raises ConfigurationError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise NetworkConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
