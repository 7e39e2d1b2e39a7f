"""Access to the API and the page: by allowed host names, and with the token if there is one."""

from pathlib import Path

import pytest

from contrail_service.errors import ConfigurationError
from manager.configuration import load_manager_configuration
from tests.manager.web.conftest import Serve

PATHS = ("/", "/web/app.js", "/v1/pods", "/v1/summary", "/v1/openapi.json")


@pytest.mark.parametrize("path", PATHS)
async def test_a_request_for_a_rebound_name_is_answered_with_421(serve: Serve, path: str) -> None:
    client = await serve()
    response = await client.get(path, headers={"Host": "rebound.example"})
    assert response.status == 421
    assert await response.json() == {"error": "this host name is not in api-access.allowed-hosts"}
    assert (await client.get(path)).status == 200


async def test_names_of_the_configuration_and_of_the_node_are_allowed(serve: Serve) -> None:
    client = await serve(node="node-7", **{"api-access": {"allowed-hosts": ["*.example.org"]}})
    for host in ("node-7", "contrail.example.org:8083"):
        assert (await client.get("/v1/pods", headers={"Host": host})).status == 200
    assert (await client.get("/v1/pods", headers={"Host": "node-8"})).status == 421


def test_a_name_that_is_none_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "manager.yaml"
    file.write_text("api-access: {allowed-hosts: [good.example, 'http://bad']}\n")
    with pytest.raises(ConfigurationError, match=r"api-access.allowed-hosts: 'http://bad' is neither"):
        load_manager_configuration(str(file))


async def test_the_api_needs_the_token_and_the_files_of_the_page_do_not(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("very-secret\n")
    client = await serve(**{"api-access": {"token-file": str(file)}})
    for path in ("/v1/pods", "/v1/watch", "/v1/openapi.json"):
        response = await client.get(path)
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "very-secret" not in await response.text()
    for path in ("/", "/web/app.js"):
        assert (await client.get(path)).status == 200
    for sent in ("Bearer very-secret", "bearer  very-secret"):
        assert (await client.get("/v1/pods", headers={"Authorization": sent})).status == 200


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer ", "Bearer very", "Bearer very-secret2", "Basic very-secret", "Bearer é"]
)
async def test_any_other_authorization_is_rejected(serve: Serve, tmp_path: Path, sent: str) -> None:
    file = tmp_path / "token"
    file.write_text("very-secret\n")
    client = await serve(**{"api-access": {"token-file": str(file)}})
    assert (await client.get("/v1/pods", headers={"Authorization": sent})).status == 401


@pytest.mark.parametrize("content", [None, "", " \n"])
async def test_a_token_that_cannot_be_read_or_is_empty_lets_nobody_in(
    serve: Serve, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    client = await serve(**{"api-access": {"token-file": str(file)}})
    for sent in ("", "Bearer ", "Bearer x"):
        assert (await client.get("/v1/pods", headers={"Authorization": sent})).status == 503
