"""Lines of a watch stream, however it is cut into chunks."""

import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.kube.watch import split_lines


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def lines(*chunks: bytes) -> list[bytes]:
    return [line async for line in split_lines(pieces(*chunks))]


async def test_a_line_is_yielded_when_it_is_complete() -> None:
    assert await lines(b"one\ntwo\n", b"thr", b"ee", b"\nfour") == [b"one", b"two", b"three"]


async def test_empty_lines_are_skipped() -> None:
    assert await lines(b"\n\none\n", b"\n", b"", b"two\n") == [b"one", b"two"]


@given(st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.data())
async def test_any_cut_gives_the_same_lines(written: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in written)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert await lines(*chunks) == [line for line in written if line]


@pytest.mark.parametrize("length", [524_288, 2_000_000, 8_000_000])
async def test_a_line_longer_than_any_buffer_is_yielded(length: int) -> None:
    line = b"x" * length
    chunks = [line[start : start + 1024] for start in range(0, length, 1024)]
    assert await lines(*chunks, b"\n", b"next\n") == [line, b"next"]


@pytest.mark.machine
async def test_a_long_line_in_small_chunks_takes_linear_time() -> None:
    async def seconds(count: int) -> float:
        started = time.process_time()
        await lines(*[b"x" * 16] * count, b"\n")
        return time.process_time() - started

    await seconds(1000)
    assert await seconds(200_000) < 60 * await seconds(20_000)
