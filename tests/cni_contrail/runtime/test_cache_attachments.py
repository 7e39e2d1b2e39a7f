"""The cache lists all attachments that were added and not deleted since."""

import json
import logging
from pathlib import Path

import pytest

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.chain import Runtime
from tests.support.scripted_plugins import Plugins, added, network, result

RED = network("bridge", version="1.0.0")
BLUE = RED._replace(name="blue")

A = Attachment("a", "/run/netns/a", "eth0", args=(("A", "1"), ("A", "2")), capability_args={"ips": ["10.1.0.5"]})
A_SECOND = Attachment("a", "/run/netns/a", "net1")
B = Attachment("b-a", "/run/netns/b", "eth0")


@pytest.fixture
def attached(runtime: Runtime, plugins: Plugins) -> Runtime:
    plugins.script("bridge", ADD=added())
    for red in (A, A_SECOND, B):
        runtime.add(RED, red)
    runtime.add(BLUE, A_SECOND)
    return runtime


def listed(runtime: Runtime, container_id: str | None = None) -> list[str]:
    return [f"{each.network} {each.attachment.key}" for each in runtime.attachments(container_id)]


def test_all_attachments_are_listed_by_network_container_and_interface(attached: Runtime) -> None:
    assert listed(attached) == ["blue a/net1", "net a/eth0", "net a/net1", "net b-a/eth0"]


def test_attachments_of_one_container_may_have_several_networks(attached: Runtime) -> None:
    assert listed(attached, "a") == ["blue a/net1", "net a/eth0", "net a/net1"]


def test_a_container_is_matched_by_its_whole_id(attached: Runtime) -> None:
    assert listed(attached, "b-a") == ["net b-a/eth0"]
    assert listed(attached, "b") == []


def test_attachments_have_the_parameters_of_their_add(attached: Runtime) -> None:
    assert [each.attachment for each in attached.attachments()] == [A_SECOND, A, A_SECOND, B]
    assert attached.attachments()[1].entry.result == result()
    assert attached.attachments()[1].entry.source == RED.source


def test_a_detached_attachment_is_not_listed(attached: Runtime) -> None:
    for each in attached.attachments("a"):
        attached.delete(BLUE if each.network == "blue" else RED, each.attachment)
    assert listed(attached) == ["net b-a/eth0"]


def test_a_missing_cache_lists_nothing(runtime: Runtime) -> None:
    assert runtime.attachments() == []


def test_a_failed_add_is_not_listed(runtime: Runtime, plugins: Plugins) -> None:
    plugins.script("bridge")
    with pytest.raises(Exception, match="without a result"):
        runtime.add(RED, A)
    assert runtime.attachments() == []


def test_a_temporary_file_is_not_listed(attached: Runtime, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache" / "results" / ".tmpx").write_text('{"kind": ')
    with caplog.at_level(logging.WARNING):
        assert len(attached.attachments()) == 4
    assert caplog.text == ""


ENTRY = {"kind": "cniCacheV1", "containerId": "c", "ifName": "eth0", "networkName": "net", "result": {}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is damaged"),
        ("[]", "is damaged"),
        (json.dumps(result()), "is damaged: KeyError('containerId')"),
        (json.dumps(ENTRY | {"result": 7}), "is damaged"),
        (json.dumps({key: value for key, value in ENTRY.items() if key != "networkName"}), "KeyError('networkName')"),
        (json.dumps(ENTRY | {"containerId": "a b"}), "container ID 'a b'"),
        (json.dumps(ENTRY | {"ifName": ""}), "interface name ''"),
        (json.dumps(ENTRY | {"containerId": 7}), "is damaged"),
    ],
)
def test_a_file_without_an_attachment_is_skipped_with_a_warning(
    attached: Runtime, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, message: str
) -> None:
    (tmp_path / "cache" / "results" / "net-c-eth0").write_text(text)
    with caplog.at_level(logging.WARNING):
        assert len(attached.attachments()) == 4
    assert "skipped: " in caplog.text
    assert message in caplog.text


def test_a_directory_is_skipped_with_a_warning(
    attached: Runtime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache" / "results" / "net-c-eth0").mkdir()
    with caplog.at_level(logging.WARNING):
        assert len(attached.attachments()) == 4
    assert "cannot be read: Is a directory" in caplog.text
