"""Free TCP ports for processes that a test starts."""

import socket


def free_port() -> int:
    """Returns a loopback port without a listener. Another process may take it before it is used."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
