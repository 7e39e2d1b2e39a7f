"""Listen addresses are parsed strictly, and an address in use is named."""

import re

import pytest
from aiohttp import web

from contrail_service.errors import ConfigurationError, ListenError
from contrail_service.listen import ListenAddress, parse_listen
from contrail_service.serving import serve_tcp


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8083", ListenAddress("127.0.0.1", 8083)),
        ("localhost:0", ListenAddress("localhost", 0)),
        ("[::1]:9091", ListenAddress("::1", 9091)),
    ],
)
def test_an_address_is_parsed_and_formatted_alike(text: str, address: ListenAddress) -> None:
    assert parse_listen(text, key="listen") == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "8083", ":8083", "::1:8083", "host:", "host:99999", "host:1x", "host:1\n", "http://host:1"]
)
def test_any_other_text_is_rejected_with_key_and_value(text: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^listen: {re.escape(repr(text))} is not HOST:PORT"):
        parse_listen(text, key="listen")


async def test_port_0_binds_a_free_port_and_a_port_in_use_is_named() -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    try:
        taken = await serve_tcp(runner, ListenAddress("127.0.0.1", 0))
        assert taken.port > 0
        with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{taken.port}: Address already in use$"):
            await serve_tcp(runner, taken)
    finally:
        await runner.cleanup()
