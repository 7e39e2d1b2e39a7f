"""Exec credential plugin: a command that prints credentials (`client.authentication.k8s.io`, v1 and v1beta1).

Many clouds use one. The command runs in its own process group, without a terminal and within a deadline. Its credential
is cached until it expires or the server rejects it. Concurrent requests share one run, which continues if they give up.
"""

import asyncio
import base64
import contextlib
import os
import signal
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from contrail_config.http_client.single_flight import SingleFlight
from contrail_config.kube.client_config import ClientCertificate, Credential
from contrail_config.kube.configuration.certificates import check_certificate
from contrail_config.kube.configuration.credentials import check_token
from contrail_config.kube.configuration.schema import ExecConfig
from contrail_config.kube.configuration.value_source import ValueSource
from contrail_config.kube.decoding import NOT_JSON
from contrail_config.kube.errors import KubeConfigurationError

DEADLINE = 20.0
"""Seconds that a command may take: less than a request, which would otherwise time out first and not say why."""

_MAX_STDERR = 256


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _Status


class ExecCredentials:
    """Credentials from a command. `cluster` and `authority` describe the cluster to a plugin that asks for it."""

    def __init__(
        self,
        plugin: ExecConfig,
        *,
        command: str,
        origin: str,
        cluster: Mapping[str, Any],
        authority: ValueSource | None,
    ) -> None:
        self._plugin = plugin
        self._command = command
        self._origin = origin
        self._cluster = cluster
        self._authority = authority
        self._runs = SingleFlight(self._fetch)
        self._cached: Credential | None = None
        self._expires: datetime | None = None

    async def current(self) -> Credential:
        """Returns the credential. Raises KubeConfigurationError."""
        if self._cached is None or (self._expires is not None and datetime.now(UTC) >= self._expires):
            self._cached, self._expires = await self._runs.do()
        return self._cached

    def invalidate(self, rejected: Credential) -> bool:
        """Makes the next call run the command, unless it ran since the rejected credential was returned."""
        if self._cached is rejected:  # else another request has already refreshed it
            self._cached = None
        return True

    async def close(self) -> None:
        """Kills the command if it is running."""
        await self._runs.close()

    async def _fetch(self) -> tuple[Credential, datetime | None]:
        """Runs the command; returns its credential and when that expires."""
        return await asyncio.to_thread(self._decode, await self._run())

    async def _run(self) -> bytes:
        """Runs the command and returns its standard output."""
        environment = await self._environment()
        try:
            process = await _start_process_group(self._command, *self._plugin.args, environment=environment)
        except OSError as error:
            hint = f"; {self._plugin.install_hint}" if self._plugin.install_hint else ""
            raise self._failure(f"cannot be started: {error.strerror}{hint}") from error
        try:
            stdout, stderr = await self._communicate(process)
        except TimeoutError as error:
            raise self._failure(f"timed out after {DEADLINE:g} s") from error
        if process.returncode:
            message = stderr.decode(errors="replace").strip()[:_MAX_STDERR]
            raise self._failure(f"failed with status {process.returncode}: {message}")
        return stdout

    async def _communicate(self, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
        # kills on time-out and on cancellation alike, and never a finished command, whose pid may be reused
        async with contextlib.AsyncExitStack() as unfinished:
            unfinished.push_async_callback(_kill_process_group, process)
            async with asyncio.timeout(DEADLINE):
                output = await process.communicate()
            unfinished.pop_all()
        return output

    async def _environment(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": False}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = {**self._cluster, **await self._authority_data()}
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        own = {variable.name: variable.value for variable in self._plugin.env}
        return {**os.environ, **own, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}

    async def _authority_data(self) -> dict[str, str]:
        if self._authority is None:
            return {}
        return {"certificate-authority-data": base64.b64encode(await self._authority.read()).decode()}

    def _decode(self, stdout: bytes) -> tuple[Credential, datetime | None]:
        try:
            printed = msgspec.json.decode(stdout, type=_ExecCredential)
        except NOT_JSON as error:
            raise self._failure(f"printed no ExecCredential: {error}") from error
        if (printed.api_version, printed.kind) != (self._plugin.api_version, "ExecCredential"):
            raise self._failure(f"printed {printed.api_version} {printed.kind}, not {self._plugin.api_version}")
        status = printed.status
        token = check_token(status.token.encode(), origin=self._origin) if status.token else ""
        credential = Credential(token, self._certificate(status), self._origin if token else "")
        return credential, status.expiration_timestamp

    def _certificate(self, status: _Status) -> ClientCertificate | None:
        chain, key = status.client_certificate_data, status.client_key_data
        if bool(chain) != bool(key) or not (chain or status.token):
            raise self._failure("printed neither a token nor a certificate with its key")
        return check_certificate(ClientCertificate(chain.encode(), key.encode(), self._origin)) if chain else None

    def _failure(self, problem: str) -> KubeConfigurationError:
        return KubeConfigurationError(f"{self._origin}: command {self._command}: {problem}")


async def _start_process_group(*command: str, environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Starts a command with pipes for its output. Raises OSError.

    On cancellation it waits for the start and kills the process group: asyncio would kill only the command itself.
    """
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # also a process group, with the command's pid
        )
    )
    try:
        return await asyncio.shield(starting)  # the process may exist before the transport that would kill it
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _kill_process_group(await starting)
        raise


async def _kill_process_group(process: asyncio.subprocess.Process) -> None:
    """Kills the process group of a command and reaps the command."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
