"""`docs/configuration.md`, compared with the settings and options that the programs have, in both directions."""

import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import yaml

from agent_api.configuration import AgentConfiguration
from cni_contrail.daemon.configuration import DaemonConfiguration
from cni_contrail.settings import Settings
from manager.configuration import ManagerConfiguration
from tests.support.documentation import code, page, rows

Defaults = dict[str, Any]

BIN = Path(sys.executable).parent
REQUIRED = object()
COMPUTED = object()


def keys_of(kind: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of a section and of those below it, in dots; of a section of several kinds, those of all kinds."""
    for field in msgspec.structs.fields(kind):
        key = f"{prefix}{field.encode_name}"
        sections = list(section_types(field.type))
        if not sections:
            yield key, default_of(field)
        for section in sections:
            config = section.__struct_config__
            if config.tag_field:
                yield f"{key}.{config.tag_field}", getattr(field.default, "__struct_config__", config).tag
            yield from keys_of(section, f"{key}{'[]' if is_list(field.type) else ''}.")
        if sections and is_list(field.type):
            yield key, default_of(field)


def section_types(kind: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for argument in get_args(kind):
        yield from section_types(argument)


def is_list(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) is tuple


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
        return [] if value == () else COMPUTED
    if field.default is msgspec.NODEFAULT:
        return REQUIRED
    value = field.default.value if isinstance(field.default, Enum) else field.default
    return list(value) if isinstance(value, tuple) else value


def documented(heading: str) -> Defaults:
    """The keys of a table with their defaults; prose instead of a value in backticks is `COMPUTED`."""
    return {code(row[0])[0]: documented_default(row[1]) for row in rows("configuration", heading)}


def documented_default(cell: str) -> Any:
    if cell == "required":
        return REQUIRED
    if re.fullmatch(r"`[^`]*`", cell):
        return yaml.safe_load(cell.strip("`"))
    return COMPUTED if cell else None


def of_plugin() -> Defaults:
    return {key.replace("_", "-"): value or None for key, value in Settings._field_defaults.items()}


def of_daemon() -> Defaults:
    defaults = {key.replace("_", "-"): value for key, value in DaemonConfiguration._field_defaults.items()}
    del defaults["settings"]  # those of the plugin
    return defaults


def of_agent() -> Defaults:
    return {**dict(keys_of(AgentConfiguration)), "store.kind": REQUIRED}


@pytest.mark.parametrize(
    ("heading", "defaults"),
    [
        ("Manager", dict(keys_of(ManagerConfiguration))),
        ("Agent", of_agent()),
        ("CNI plugin", of_plugin()),
        ("Daemon", of_daemon()),
    ],
)
def test_every_key_is_documented_with_its_default_and_no_other(heading: str, defaults: Defaults) -> None:
    assert documented(heading) == defaults


@pytest.mark.parametrize("heading", ["Manager", "Agent", "CNI plugin", "Daemon"])
def test_every_key_has_a_meaning(heading: str) -> None:
    assert all(len(row) == 3 and row[2] for row in rows("configuration", heading))


@pytest.mark.parametrize("program", ["contrail-manager", "contrail-agent", "contrail-cnid", "contrail-installer"])
def test_every_option_is_documented_and_no_other(program: str) -> None:
    help_text = subprocess.run([BIN / program, "--help"], check=True, capture_output=True, text=True).stdout
    options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", help_text, re.MULTILINE)) - {"--help"}
    assert {code(row[0])[0] for row in rows("configuration", f"Options of {program}")} == options


def test_the_examples_of_the_page_are_accepted() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", page("configuration"), re.DOTALL)
    manager, agent = map(yaml.safe_load, examples)
    msgspec.convert(manager, ManagerConfiguration)
    msgspec.convert(agent, AgentConfiguration)
