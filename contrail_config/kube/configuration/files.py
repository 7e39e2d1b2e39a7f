"""Kubeconfig files, read and merged as kubectl does: the first definition of a name wins."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from contrail_config.kube.configuration.schema import Cluster, Context, Kubeconfig, User
from contrail_config.kube.errors import KubeConfigurationError
from contrail_yaml.errors import YamlError
from contrail_yaml.file import read_yaml

S = TypeVar("S")


class Entry(NamedTuple, Generic[S]):
    """An entry of a file; `origin` names it in errors, relative paths in it are relative to `folder`."""

    content: S
    origin: str
    folder: str

    def path(self, written: str) -> str:
        """Returns a path of this entry as one that can be opened."""
        return os.path.join(self.folder, written)


class MergedKubeconfig(NamedTuple):
    """All files merged; `origin` names them in errors."""

    origin: str
    clusters: dict[str, Entry[Cluster]]
    users: dict[str, Entry[User]]
    contexts: dict[str, Entry[Context]]
    current_context: str


def read_files(paths: Sequence[str]) -> MergedKubeconfig:
    """Returns the merged files, without those that do not exist. Raises KubeConfigurationError if none exists."""
    found = [(path, _read(path)) for path in paths if os.path.exists(path)]
    if not found:
        raise KubeConfigurationError(f"kubeconfig not found: {', '.join(paths)}")
    return MergedKubeconfig(
        origin=":".join(path for path, _ in found),
        clusters=_merge("clusters", [(path, [(n.name, n.cluster) for n in file.clusters]) for path, file in found]),
        users=_merge("users", [(path, [(n.name, n.user) for n in file.users]) for path, file in found]),
        contexts=_merge("contexts", [(path, [(n.name, n.context) for n in file.contexts]) for path, file in found]),
        current_context=next((file.current_context for _, file in found if file.current_context), ""),
    )


def _merge(section: str, files: Iterable[tuple[str, Iterable[tuple[str, S]]]]) -> dict[str, Entry[S]]:
    merged: dict[str, Entry[S]] = {}
    for path, entries in files:
        folder = os.path.dirname(os.path.abspath(path))  # kubectl resolves relative paths there, not in the cwd
        for name, content in entries:
            merged.setdefault(name, Entry(content, f"{path}: {section} {name!r}", folder))
    return merged


def _read(path: str) -> Kubeconfig:
    try:
        document = read_yaml(path)
    except YamlError as error:
        raise KubeConfigurationError(str(error)) from error
    try:
        return msgspec.convert({} if document is None else _without_nulls(document), Kubeconfig)
    except msgspec.ValidationError as error:
        raise KubeConfigurationError(f"{path}: {error}") from error


def _without_nulls(document: Any) -> Any:
    """Removes keys that have no value: tools write `args: null`."""
    if isinstance(document, Mapping):
        return {key: _without_nulls(value) for key, value in document.items() if value is not None}
    if isinstance(document, list):
        return [_without_nulls(value) for value in document]
    return document
