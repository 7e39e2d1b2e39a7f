"""Last known good values: a file that is read while it is being rewritten is not used, and read again later."""

from pathlib import Path

import pytest

from contrail_config.kube.client_config import ClientCertificate, Credential
from contrail_config.kube.configuration.credentials import ConfiguredCredentials
from contrail_config.kube.configuration.tls import RotatingTls
from contrail_config.kube.configuration.value_source import FileValue
from contrail_config.kube.errors import KubeConfigurationError
from tests.contrail_config.kube.tls import text

AUTHORITY = text("authority.pem")
OTHER_AUTHORITY = text("other-authority.pem")


def write(file: Path, content: str) -> None:
    file.write_text(content)


def half(content: str) -> str:
    return content[: len(content) // 2]


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return tmp_path / "token"


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    return tmp_path / "ca.crt"


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return tmp_path / "tls.crt"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "tls.key"


@pytest.fixture
def by_token(token: Path) -> ConfiguredCredentials:
    return ConfiguredCredentials(token=FileValue(str(token), "token"))


@pytest.fixture
def by_certificate(chain: Path, key: Path) -> ConfiguredCredentials:
    return ConfiguredCredentials(certificate=(FileValue(str(chain), "certificate"), FileValue(str(key), "key")))


@pytest.fixture
def tls(authority: Path) -> RotatingTls:
    return RotatingTls(FileValue(str(authority), "authority"))


async def trusted(tls: RotatingTls) -> set[str]:
    """Returns the serial numbers of the trusted authorities."""
    context = await tls.context(None)
    return {str(found["serialNumber"]) for found in context.get_ca_certs()}


async def test_an_invalid_token_is_read_again_for_the_next_request(
    token: Path, by_token: ConfiguredCredentials
) -> None:
    write(token, "")
    with pytest.raises(KubeConfigurationError, match=rf"^token: {token}: not a token"):
        await by_token.current()
    write(token, "whole")
    assert (await by_token.current()).token == "whole"


async def test_the_previous_token_is_used_until_the_file_is_complete(
    token: Path, by_token: ConfiguredCredentials, caplog: pytest.LogCaptureFixture
) -> None:
    write(token, "old")
    credential = await by_token.current()
    by_token.invalidate(credential)
    write(token, "")
    for _ in range(3):
        assert await by_token.current() == credential
    write(token, "new")
    assert (await by_token.current()).token == "new"
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"token: {token}: using the previous contents: not a token")


async def test_an_invalid_certificate_is_read_again_for_the_next_request(
    chain: Path, key: Path, by_certificate: ConfiguredCredentials
) -> None:
    write(chain, text("client.pem"))
    write(key, half(text("client.key")))
    with pytest.raises(KubeConfigurationError, match=rf"^certificate: {chain}: certificate and key do not match"):
        await by_certificate.current()
    write(key, text("client.key"))
    assert shown(await by_certificate.current()).key == text("client.key").encode()


async def test_the_previous_certificate_is_used_until_the_new_key_is_written(
    chain: Path, key: Path, by_certificate: ConfiguredCredentials
) -> None:
    write(chain, text("client.pem"))
    write(key, text("client.key"))
    credential = await by_certificate.current()
    by_certificate.invalidate(credential)
    write(chain, text("next-client.pem"))
    assert await by_certificate.current() == credential
    write(key, text("next-client.key"))
    assert shown(await by_certificate.current()).chain == text("next-client.pem").encode()


def shown(credential: Credential) -> ClientCertificate:
    assert credential.certificate is not None
    return credential.certificate


@pytest.mark.parametrize("written", ["", half(AUTHORITY)], ids=["empty", "half"])
async def test_an_invalid_authority_is_read_again_for_the_next_request(
    authority: Path, tls: RotatingTls, written: str
) -> None:
    write(authority, written)
    with pytest.raises(KubeConfigurationError, match=rf"^authority: {authority}: not a PEM certificate"):
        await tls.context(None)
    write(authority, AUTHORITY)
    assert len(await trusted(tls)) == 1


@pytest.mark.parametrize("written", ["", half(OTHER_AUTHORITY)], ids=["empty", "half"])
async def test_the_previous_authority_is_used_until_the_file_is_complete(
    authority: Path, tls: RotatingTls, written: str
) -> None:
    write(authority, AUTHORITY)
    before = await trusted(tls)
    tls.invalidate()
    write(authority, written)
    assert await trusted(tls) == before
    write(authority, OTHER_AUTHORITY)
    assert await trusted(tls) != before
