"""Errors for which the daemon does not start, or does not serve a connection.

    DaemonError
     ├─ DaemonConfigurationError   the configuration is invalid: exit status 2
     ├─ SocketError                the socket cannot be bound: exit status 2
     └─ ProtocolError              the bytes on the socket are not a request
         └─ NoRequestError         the connection was closed without one: somebody probed the daemon

A failure while a request is served is a `PluginError`, as in the entry point: the runtime receives it.
"""


class DaemonError(Exception):
    """The message is one line for people."""


class DaemonConfigurationError(DaemonError):
    """The message names file and key."""


class SocketError(DaemonError):
    """Another daemon holds the socket, or its directory or the file in its place is not acceptable."""


class ProtocolError(DaemonError):
    """The connection is closed without a response."""


class NoRequestError(ProtocolError):
    """The connection was closed before the first byte."""
