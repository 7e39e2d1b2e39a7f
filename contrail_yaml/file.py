"""YAML files: read and checked as a whole, at start."""

from typing import Any, TextIO

import yaml

from contrail_yaml.duplicate_keys import reject_duplicate_keys
from contrail_yaml.errors import DuplicateKeyError, YamlError


def read_yaml(path: str) -> Any:
    """Returns the content of the file's single document, None for an empty file. Raises YamlError."""
    try:
        with open(path, encoding="utf-8") as file:
            return _read(file)
    except OSError as error:
        raise YamlError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise YamlError(f"{path}: not UTF-8 text") from error
    except DuplicateKeyError as error:
        raise YamlError(f"{path}: {error}") from error
    except (
        yaml.YAMLError,
        ValueError,
        KeyError,
        RecursionError,
    ) as error:  # ValueError and KeyError: an explicit tag that does not fit
        raise YamlError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error


def _read(file: TextIO) -> Any:
    loader = yaml.CSafeLoader(file)
    try:
        document = loader.get_single_node()
        if document is None:
            return None
        reject_duplicate_keys(document)
        return loader.construct_document(document)
    finally:
        loader.dispose()
