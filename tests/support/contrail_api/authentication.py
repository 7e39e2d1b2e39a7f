"""Authentication of the double: none, tokens of its Keystone, or basic authentication as on port 8095."""

import base64
import binascii
from typing import Protocol

from aiohttp import web

from tests.support.contrail_api.api_errors import ApiError
from tests.support.contrail_api.keystone import Keystone


class Authentication(Protocol):
    """Checks requests."""

    def check(self, request: web.Request) -> None:
        """Raises ApiError if the request has no valid credential."""


class NoAuthentication:
    """`aaa_mode = no-auth`."""

    def check(self, request: web.Request) -> None:
        """Accepts everything."""


class TokenAuthentication:
    """`aaa_mode = cloud-admin`: a token with the role `admin`."""

    def __init__(self, keystone: Keystone) -> None:
        self._keystone = keystone

    def check(self, request: web.Request) -> None:
        roles = self._keystone.roles(request.headers.get("X-Auth-Token", ""))
        if roles is None:
            raise ApiError(401, "Authentication required")
        if "admin" not in roles:
            raise ApiError(403, f"Permission Denied for {roles} as None to {request.method} in {request.url}")


class BasicAuthentication:
    """User and password, as on the local port 8095."""

    def __init__(self, user: str, password: str) -> None:
        self._expected = (user, password)

    def check(self, request: web.Request) -> None:
        header = request.headers.get("Authorization", "")
        if not header.startswith("Basic "):
            raise ApiError(401, "HTTP_AUTHORIZATION header missing")
        try:
            user, _, password = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ApiError(401, "Authentication check failed") from error
        if (user, password) != self._expected:
            raise ApiError(401, "Authentication check failed")
