"""A TCP port for a process that a test starts."""

import socket


def free_port() -> int:
    """Returns a port of the loopback that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
