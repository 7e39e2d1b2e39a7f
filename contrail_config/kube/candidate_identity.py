"""Identity of a candidate of a leader election: stable over restarts, yet never that of two living processes.

A holder that was killed and restarted finds the lease in its own name and takes it back at once, instead of waiting
until it expires. That is safe only if the process that held it is dead. So the identity is the right to an abstract
Unix socket: it names the boot of the machine, the network namespace, and the election, and in one network namespace
only one process can be bound to that socket. The kernel unbinds it when the process is gone, however it ended, and not
earlier: a suspended holder keeps it. A container that is restarted in its pod, and a service that is restarted on its
host, stay in their network namespace. A process that finds the socket taken, by a second candidate of the same host for
example, has an identity of its own for this run, and waits for the lease as any other.

Writes that the dead process had sent may still be carried out. They do what those of a suspended leader do: see
`leader_election`.
"""

import asyncio
import contextlib
import errno
import hashlib
import logging
import os
import socket
import uuid
from collections.abc import AsyncIterator

log = logging.getLogger(__name__)

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_NETWORK_NAMESPACE = "/proc/self/ns/net"


@contextlib.asynccontextmanager
async def candidate_identity(election: str) -> AsyncIterator[str]:
    """Yields this process's identity until the context is left; `election` names servers, namespace and lease."""
    host = socket.gethostname()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        try:
            name = hashlib.sha256(f"{await asyncio.to_thread(_place)}\0{election}".encode()).hexdigest()[:32]
            lock.bind(f"\0contrail-leader-{name}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                log.warning("no stable identity, so after a kill the lease has to expire: %s", error)
            name = str(uuid.uuid4())
        yield f"{host}_{name}"


def _place() -> str:
    """Returns the running kernel and the network namespace, which are where the socket's name is unique."""
    with open(_BOOT_ID, encoding="ascii") as file:
        boot = file.read().strip()
    namespace = os.stat(_NETWORK_NAMESPACE)
    return f"{boot} {namespace.st_dev} {namespace.st_ino}"
