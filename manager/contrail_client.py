"""Client of a Contrail API server, as the manager's process needs it: from its settings, and with its metrics."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from contrail_config.vnc.access import load_access
from contrail_config.vnc.client import VncClient, connect, unlimited
from contrail_config.vnc.errors import VncConfigurationError
from contrail_service.client_metrics import ClientMetrics
from contrail_service.errors import ConfigurationError
from manager.configuration import ContrailStoreSettings


@asynccontextmanager
async def connect_to_contrail(
    settings: ContrailStoreSettings, registry: CollectorRegistry, *, before_write: Callable[[], float] = unlimited
) -> AsyncIterator[VncClient]:
    """Yields a client; `before_write` is that of `connect`. Raises ConfigurationError."""
    try:
        access = await load_access(settings)
    except VncConfigurationError as error:
        raise ConfigurationError(f"store.{error}") from error
    observer = ClientMetrics(
        registry,
        requests="contrail_manager_contrail_api_requests",
        request_seconds="contrail_manager_contrail_api_request_seconds",
        watch_age="contrail_manager_contrail_watch_age_seconds",
    )
    async with connect(access, before_write=before_write, observer=observer) as client:
        yield client
