"""YAML files: one document, or one line that names the file and the problem."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contrail_yaml.errors import YamlError
from contrail_yaml.file import read_yaml


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.yaml"


def error_of(file: Path) -> str:
    with pytest.raises(YamlError) as caught:
        read_yaml(str(file))
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert "\n" not in message
    return message.removeprefix(f"{file}: ")


def test_the_content_is_returned(file: Path) -> None:
    file.write_text("a: [1, x, null]\nb: {c: true}\n")
    assert read_yaml(str(file)) == {"a": [1, "x", None], "b": {"c": True}}


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n"])
def test_an_empty_file_is_none(file: Path, text: str) -> None:
    file.write_text(text)
    assert read_yaml(str(file)) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [b", "while parsing a flow sequence"),
        ("a: 1\n---\nb: 2\n", "expected a single document"),
        ("a: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
        ("a: 2026-13-45\n", "month must be in 1..12"),
        ("a: !!int x\n", "invalid literal"),
        ("a: !!bool x\n", "'x'"),
        ("? {a: 1}\n: b\n", "found unhashable key"),
        ("[" * 5000, ""),
    ],
)
def test_invalid_yaml_is_one_line(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    message = error_of(file)
    assert message.startswith("not valid YAML: ")
    assert said in message


def test_a_file_that_is_not_text_is_named(file: Path) -> None:
    file.write_bytes(b"a: \xff")
    assert error_of(file) == "not UTF-8 text"


def test_an_unreadable_file_is_named(file: Path) -> None:
    assert error_of(file) == os.strerror(2)
    file.mkdir()
    assert error_of(file) == os.strerror(21)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="ab:-{}[],&*!<>|?'\"#% \n\t0", max_size=40) | st.text(max_size=20))
def test_any_text_is_read_or_rejected(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    with contextlib.suppress(YamlError):
        read_yaml(str(file))
