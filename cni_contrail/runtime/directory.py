"""Finds a network configuration by its name in a directory, in the order of libcni.

All lists (`.conflist`) by file name, then all single configurations (`.conf`, `.json`) by file name: the first one of
that name. A file in the way that cannot be used is an error, as with libcni: which network a name means must not
depend on a broken file.
"""

from cni_contrail.runtime.configuration import NetworkList, load_file
from cni_contrail.runtime.errors import NetworkConfigurationError
from cni_contrail.runtime.files import configuration_files

_LISTS = (".conflist",)
_SINGLES = (".conf", ".json")


def find_network(directory: str, name: str) -> NetworkList:
    """Returns the configuration of this name. Raises ConfigurationError if there is none or a file is broken."""
    for endings in (_LISTS, _SINGLES):
        for path in configuration_files(directory, endings):
            network = load_file(path)
            if network.name == name:
                return network
    raise NetworkConfigurationError(f"{directory}: holds no network configuration named {name!r}")
