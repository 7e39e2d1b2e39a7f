"""Finds a network configuration by its name in a directory, in the order of libcni.

All lists (`.conflist`) by file name, then all single configurations (`.conf`, `.json`) by file name: the first one of
that name. A file in the way that cannot be used is an error, as with libcni: which network a name means must not
depend on a broken file.
"""

import os

from cni_contrail.runtime.configuration import NetworkList, load_file
from cni_contrail.runtime.errors import ConfigurationError

_LISTS = (".conflist",)
_SINGLES = (".conf", ".json")


def find_network(directory: str, name: str) -> NetworkList:
    """Returns the configuration of this name. Raises ConfigurationError if there is none or a file is broken."""
    for endings in (_LISTS, _SINGLES):
        for path in _configuration_files(directory, endings):
            network = load_file(path)
            if network.name == name:
                return network
    raise ConfigurationError(f"{directory}: holds no network configuration named {name!r}")


def _configuration_files(directory: str, endings: tuple[str, ...]) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        raise ConfigurationError(f"{directory}: cannot be read: {error.strerror}") from error
    paths = (os.path.join(directory, name) for name in names if os.path.splitext(name)[1] in endings)
    return [path for path in paths if not os.path.isdir(path)]
