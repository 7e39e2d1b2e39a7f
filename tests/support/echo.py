"""Echo requests between the network namespaces of tests."""

from demo import echo
from tests.support.netns import Netns


def reaches(
    namespace: Netns, address: str, *, source: str | None = None, timeout: float = 5, interval: float = 0.2
) -> bool:
    """Whether an echo request from the namespace is answered within `timeout` seconds; asks every `interval`."""
    return echo.reaches(namespace.path, address, source=source, timeout=timeout, interval=interval)
