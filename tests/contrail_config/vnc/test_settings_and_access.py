"""VncSettings and load_access: what operators write, and one clear error for each key that cannot be used."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from contrail_config.vnc.access import load_access
from contrail_config.vnc.authentication import BasicAuthentication
from contrail_config.vnc.errors import VncConfigurationError
from contrail_config.vnc.settings import VncSettings, setting_problems
from tests.contrail_config.kube.tls import path

KEYSTONE = {"url": "https://keystone:5000/v3", "user": "admin", "password-file": "/absent"}


def settings(**keys: Any) -> VncSettings:
    document = {"kind": "vnc", "url": "http://192.0.2.1:8082", **{k.replace("_", "-"): v for k, v in keys.items()}}
    return msgspec.convert(document, VncSettings)


def test_one_server_or_several_are_accepted() -> None:
    assert settings().urls == ("http://192.0.2.1:8082",)
    several = settings(url=["https://one:8082", "https://[2001:db8::2]:8082/"], keystone=KEYSTONE, ca_file="/ca.pem")
    assert several.urls == ("https://one:8082", "https://[2001:db8::2]:8082/")
    assert list(setting_problems(several)) == []


@pytest.mark.parametrize(
    ("keys", "key", "problem"),
    [
        ({"url": []}, "url", "at least one is required"),
        ({"url": "192.0.2.1:8082"}, "url", "'192.0.2.1:8082' is not http://HOST:PORT or https://HOST:PORT"),
        ({"url": ["http://one:8082", "ftp://two"]}, "url", "'ftp://two' is not http://HOST:PORT"),
        ({"url": "http://one:8082/path"}, "url", "is not http://HOST:PORT"),
        ({"url": "http://user:secret@one:8082"}, "url", "is not http://HOST:PORT"),
        ({"url": "http://one:99999"}, "url", "is not http://HOST:PORT"),
        ({"ca_file": "/ca.pem"}, "ca-file", "needs a url that begins with https://"),
        ({"url": "https://one", "key_file": "/key.pem"}, "certificate-file", "required"),
        ({"url": "https://one", "certificate_file": "/one.pem"}, "key-file", "required"),
        (
            {"keystone": KEYSTONE, "basic": {"user": "admin", "password-file": "/absent"}},
            "basic",
            "cannot be combined with keystone",
        ),
        ({"keystone": {**KEYSTONE, "url": "https://keystone:5000/v2.0"}}, "keystone.url", "is not the URL of a v3"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(keys: dict[str, Any], key: str, problem: str) -> None:
    ((named, text),) = setting_problems(settings(**keys))
    assert named == key
    assert problem in text


def test_a_password_in_a_url_is_not_repeated() -> None:
    ((_, text),) = setting_problems(settings(url="http://admin:secret@one:8082"))
    assert "secret" not in text


async def test_a_password_is_read_from_its_file_without_the_line_end(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("open sesame\n")
    access = await load_access(settings(keystone={**KEYSTONE, "password-file": str(file), "project": "shop"}))
    assert access.keystone is not None
    assert (await access.keystone.password.current(), access.keystone.project) == ("open sesame", "shop")
    assert "sesame" not in repr(access)
    assert access.tls is None
    assert access.keystone_tls is not None
    basic = await load_access(settings(basic={"user": "admin", "password-file": str(file)}))
    assert isinstance(basic.authentication, BasicAuthentication)


@pytest.mark.parametrize("content", [b"", b"\n", b"first\nsecond\n", b"\xff\xfe", b"x" * 5000])
async def test_a_file_that_holds_no_password_is_named_but_not_shown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    with pytest.raises(VncConfigurationError) as caught:
        await load_access(settings(basic={"user": "admin", "password-file": str(file)}))
    assert str(caught.value).startswith(f"basic.password-file: {file}: ")
    assert "second" not in str(caught.value)


async def test_a_missing_password_file_is_named() -> None:
    with pytest.raises(VncConfigurationError, match=r"^keystone\.password-file: /absent: No such file or directory$"):
        await load_access(settings(keystone=KEYSTONE))


async def test_certificates_are_read_and_unusable_ones_named(tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    own = {"certificate_file": path("client.pem"), "key_file": path("client.key")}
    good = await load_access(settings(url="https://one:8082", ca_file=path("authority.pem"), **own))
    assert good.tls is not None
    with pytest.raises(VncConfigurationError, match=rf"^ca-file: {nonsense}: not a PEM certificate"):
        await load_access(settings(url="https://one:8082", ca_file=str(nonsense)))
    unusable = {"certificate_file": str(nonsense), "key_file": str(nonsense)}
    with pytest.raises(VncConfigurationError, match=rf"^certificate-file: {nonsense}: certificate and key do not"):
        await load_access(settings(url="https://one:8082", **unusable))
    password = tmp_path / "password"
    password.write_text("secret")
    keystone = {**KEYSTONE, "password-file": str(password), "ca-file": str(nonsense)}
    with pytest.raises(VncConfigurationError, match=rf"^keystone\.ca-file: {nonsense}: "):
        await load_access(settings(keystone=keystone))
