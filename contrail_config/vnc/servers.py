"""API servers of one cluster: which of them is used."""

from collections.abc import Sequence


class Servers:
    """One server is used until it fails: fewer stale caches there, and fewer races between our own requests."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = tuple(url.rstrip("/") for url in urls)
        self._current = 0

    @property
    def current(self) -> str:
        """URL of the server to use, without a slash at the end."""
        return self._urls[self._current]

    def failed(self, url: str) -> None:
        """Moves on to the next server, unless another request has done so since."""
        if url == self.current:
            self._current = (self._current + 1) % len(self._urls)
