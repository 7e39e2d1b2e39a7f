"""Splits a stream into lines of any length.

aiohttp's own line iteration ends with an error at lines longer than its buffer (512 KiB by default), and an object may
be longer. Every byte is looked at once, in however many pieces a line comes.
"""

from collections.abc import AsyncGenerator, AsyncIterable


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Gives each line that is whole, without its end; empty ones and an unfinished last one are left out."""
    unfinished: list[bytes] = []
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            unfinished.append(line)
            joined = b"".join(unfinished)
            unfinished.clear()
            if joined:
                yield joined
        if rest:
            unfinished.append(rest)
