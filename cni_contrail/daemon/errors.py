"""Why the daemon does not start, or does not serve a connection.

    DaemonError
     ├─ ConfigurationError   the configuration is refused: exit status 2
     ├─ SocketError          the socket is not to be had: exit status 2
     └─ ProtocolError        what came over the socket is no request
         └─ NoRequestError   nothing came: somebody looked whether there is a daemon

What fails while a request is served is a `PluginError`, as for the entry point: the runtime has to be told.
"""


class DaemonError(Exception):
    """The message is one line for people."""


class DaemonConfigurationError(DaemonError):
    """File and key are named."""


class SocketError(DaemonError):
    """Another daemon has it, or the directory or file in its place is not what it must be."""


class ProtocolError(DaemonError):
    """The connection is closed without an answer."""


class NoRequestError(ProtocolError):
    """It was closed before the first byte."""
