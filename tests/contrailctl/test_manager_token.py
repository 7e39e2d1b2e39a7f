"""contrailctl sends the token that a manager requires, and only to the manager."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contrailctl.cli import main
from tests.support.embedded_process import EmbeddedProcess
from tests.support.guarded_node import running_guarded_node


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    with running_guarded_node(tmp_path) as node:
        yield node


def test_the_token_of_the_environments_file_is_sent(
    guarded: EmbeddedProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--manager", f"http://{guarded.listen}", "get", "pods"]
    assert main(command) == 1
    assert "a token is required" in capsys.readouterr().err
    monkeypatch.setenv("CONTRAIL_TOKEN_FILE", str(tmp_path / "token"))
    assert main(command) == 0
    assert "web" in capsys.readouterr().out
    assert main(["--manager", f"http://{guarded.listen}", "--agent", f"http://{guarded.listen}", "status"]) == 0


@pytest.mark.parametrize("content", [None, b"two\nlines", b"\xff"])
def test_a_file_without_a_token_is_wrong_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    monkeypatch.setenv("CONTRAIL_TOKEN_FILE", str(tmp_path / "token"))
    assert main(["get", "pods"]) == 2
    assert "CONTRAIL_TOKEN_FILE: " in capsys.readouterr().err
