"""Capture of all frames on all links of a network namespace, in both directions."""

import os
import select
import socket

from cni_contrail.link.netns import InNetns, open_netns

_ALL_PROTOCOLS = 3  # ETH_P_ALL
_SO_RCVBUFFORCE = 33  # beyond the limit of other users
_BUFFER = 1 << 24  # bytes
_STATISTICS = 6  # PACKET_STATISTICS
_SOL_PACKET = 263


class NetworkCapture:
    """Captures from its creation on, in the namespace at `path`."""

    def __init__(self, path: str) -> None:
        netns = open_netns(path)
        try:
            with InNetns(netns):  # not bound to a link: to all of them
                self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
        finally:
            os.close(netns)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)

    def frames(self) -> list[bytes]:
        """The frames since the last call; fails if the kernel had no room for some of them."""
        found = []
        while select.select([self._socket], [], [], 0)[0]:
            found.append(self._socket.recv(65536))
        statistics = self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8)
        lost = int.from_bytes(statistics[4:], "little")
        assert lost == 0, f"{lost} frames were not captured"
        return found

    def close(self) -> None:
        """Ends the capture."""
        self._socket.close()
