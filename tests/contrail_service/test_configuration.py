"""Configuration files: valid as a whole, or one message that names file, key and value."""

from pathlib import Path

import msgspec
import pytest

from contrail_service.configuration import load_configuration
from contrail_service.errors import ConfigurationError


class _Store(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, frozen=True):
    kind: str = "embedded"
    max_size: int = 10


class _Schema(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, frozen=True):
    cluster_name: str = "k8s"
    store: _Store = _Store()
    subnets: list[str] = []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "manager.yaml"


def test_missing_keys_have_their_defaults(file: Path) -> None:
    file.write_text("cluster-name: prod\nstore:\n  max-size: 20\n")
    assert load_configuration(str(file), _Schema) == _Schema(cluster_name="prod", store=_Store(max_size=20))


def test_an_empty_file_is_all_defaults(file: Path) -> None:
    file.write_text("# nothing yet\n")
    assert load_configuration(str(file), _Schema) == _Schema()


def test_a_key_without_a_value_has_its_default(file: Path) -> None:
    file.write_text("cluster-name:\nstore: {kind: }\n")
    assert load_configuration(str(file), _Schema) == _Schema()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster-nam: x\n", "Object contains unknown field `cluster-nam`"),
        ("store: {max-size: many}\n", "store.max-size: Expected `int`, got `str`"),
        ("subnets: [10.0.0.0/8, 5]\n", "subnets[1]: Expected `str`, got `int`"),
        ("- a\n- b\n", "must be a mapping of keys, not list"),
        ("store:\n  kind: a\n  max-size: 1\n  kind: b\n", "store.kind: duplicate key, in line 2 and in line 4"),
        ("cluster-name: 2026-13-45\n", "not valid YAML"),
        ("cluster-name: [unclosed\n", "not valid YAML"),
        ("!!python/object/apply:os.system ['true']\n", "not valid YAML"),
    ],
)
def test_an_invalid_value_is_named_with_the_path_of_its_key(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        load_configuration(str(file), _Schema)
    assert str(raised.value).startswith(f"{file}: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.yaml: No such file or directory"):
        load_configuration(str(tmp_path / "absent.yaml"), _Schema)


def test_a_file_that_is_not_text_is_named(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="not UTF-8 text"):
        load_configuration(str(file), _Schema)
