"""Reads a YAML file, whole, at start."""

from typing import Any, TextIO

import yaml

from contrail_yaml.equal_keys import refuse_equal_keys
from contrail_yaml.errors import EqualKeysError, YamlError


def read_yaml(path: str) -> Any:
    """Returns what the file's one document holds, None if there is none. Raises YamlError."""
    try:
        with open(path, encoding="utf-8") as file:
            return _read(file)
    except OSError as error:
        raise YamlError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise YamlError(f"{path}: is not UTF-8 text") from error
    except EqualKeysError as error:
        raise YamlError(f"{path}: {error}") from error
    except (yaml.YAMLError, ValueError, KeyError, RecursionError) as error:  # the middle two from tags that do not fit
        raise YamlError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error


def _read(file: TextIO) -> Any:
    loader = yaml.CSafeLoader(file)
    try:
        document = loader.get_single_node()
        if document is None:
            return None
        refuse_equal_keys(document)
        return loader.construct_document(document)
    finally:
        loader.dispose()
