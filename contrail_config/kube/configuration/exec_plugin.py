"""Credentials from a command (`client.authentication.k8s.io`, v1 and v1beta1), which many clouds use.

The command runs in a process group of its own, without a terminal, and within a deadline. What it gave is kept until it
expires or the server refuses it; requests that come meanwhile wait for the one run, which goes on if they give up.
"""

import asyncio
import base64
import contextlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from contrail_config.kube.client_config import ClientCertificate, Credential
from contrail_config.kube.configuration.certificates import check_certificate
from contrail_config.kube.configuration.credentials import check_token
from contrail_config.kube.configuration.process_groups import kill, start
from contrail_config.kube.configuration.schema import Plugin
from contrail_config.kube.configuration.single_flight import SingleFlight
from contrail_config.kube.configuration.value_source import ValueSource
from contrail_config.kube.decoding import NOT_JSON
from contrail_config.kube.errors import KubeConfigurationError

DEADLINE = 20.0
"""Seconds that a command may take: fewer than a request, which would else end first and not say why."""

_LONGEST_COMPLAINT = 256


class _Given(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _Given


class PluginCredentials:
    """What `plugin` gives; `cluster` and `authority` are what it is told of the cluster if it asks for that."""

    def __init__(
        self, plugin: Plugin, *, command: str, origin: str, cluster: Mapping[str, Any], authority: ValueSource | None
    ) -> None:
        self._plugin = plugin
        self._command = command
        self._origin = origin
        self._cluster = cluster
        self._authority = authority
        self._given = SingleFlight(self._ask)
        self._kept: Credential | None = None
        self._expires: datetime | None = None

    async def current(self) -> Credential:
        """Returns the credential. Raises KubeConfigurationError."""
        if self._kept is None or (self._expires is not None and datetime.now(UTC) >= self._expires):
            self._kept, self._expires = await self._given.outcome()
        return self._kept

    def forget(self, refused: Credential) -> bool:
        """Has the command run anew, unless that was done since the refused one."""
        if self._kept is refused:
            self._kept = None
        return True

    async def end(self) -> None:
        """Ends the command if it runs."""
        await self._given.end()

    async def _ask(self) -> tuple[Credential, datetime | None]:
        """Returns what the command gives, and when that expires."""
        return await asyncio.to_thread(self._read, await self._run())

    async def _run(self) -> bytes:
        """Runs the command and returns what it prints."""
        environment = await self._environment()
        try:
            process = await start(self._command, *self._plugin.args, environment=environment)
        except OSError as error:
            hint = f"; {self._plugin.install_hint}" if self._plugin.install_hint else ""
            raise self._failure(f"cannot be started: {error.strerror}{hint}") from error
        try:
            printed, complaint = await self._communicate(process)
        except TimeoutError as error:
            raise self._failure(f"did not end within {DEADLINE:g} s") from error
        if process.returncode:
            said = complaint.decode(errors="replace").strip()[:_LONGEST_COMPLAINT]
            raise self._failure(f"failed with status {process.returncode}: {said}")
        return printed

    async def _communicate(self, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
        async with contextlib.AsyncExitStack() as unfinished:
            unfinished.push_async_callback(kill, process)
            async with asyncio.timeout(DEADLINE):
                answer = await process.communicate()
            unfinished.pop_all()
        return answer

    async def _environment(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": False}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = {**self._cluster, **await self._authority_data()}
        asked = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        own = {variable.name: variable.value for variable in self._plugin.env}
        return {**os.environ, **own, "KUBERNETES_EXEC_INFO": msgspec.json.encode(asked).decode()}

    async def _authority_data(self) -> dict[str, str]:
        if self._authority is None:
            return {}
        return {"certificate-authority-data": base64.b64encode(await self._authority.read()).decode()}

    def _read(self, printed: bytes) -> tuple[Credential, datetime | None]:
        try:
            answer = msgspec.json.decode(printed, type=_Answer)
        except NOT_JSON as error:
            raise self._failure(f"printed no ExecCredential: {error}") from error
        if (answer.api_version, answer.kind) != (self._plugin.api_version, "ExecCredential"):
            raise self._failure(f"printed {answer.api_version} {answer.kind}, not {self._plugin.api_version}")
        given = answer.status
        token = check_token(given.token.encode(), origin=self._origin) if given.token else ""
        expires = given.expiration_timestamp
        return Credential(token, self._certificate(given)), expires

    def _certificate(self, given: _Given) -> ClientCertificate | None:
        chain, key = given.client_certificate_data, given.client_key_data
        if bool(chain) != bool(key) or not (chain or given.token):
            raise self._failure("gave neither a token nor a certificate with its key")
        return check_certificate(ClientCertificate(chain.encode(), key.encode(), self._origin)) if chain else None

    def _failure(self, what: str) -> KubeConfigurationError:
        return KubeConfigurationError(f"{self._origin}: command {self._command}: {what}")
