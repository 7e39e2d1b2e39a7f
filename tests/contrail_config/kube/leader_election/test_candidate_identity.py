"""A candidate's identity survives its process, and is never that of two living ones."""

import asyncio
import signal
import sys

from contrail_config.kube.candidate_identity import candidate_identity

CANDIDATE = """
import asyncio, sys
from contrail_config.kube.candidate_identity import candidate_identity

async def main():
    async with candidate_identity(sys.argv[1]) as identity:
        print(identity, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
DEADLINE = 30.0


class Process:
    """A candidate in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, identity: str) -> None:
        self.identity = identity
        self._process = process

    async def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            await self._process.wait()


async def start(election: str) -> Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CANDIDATE, election, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), DEADLINE)
    return Process(process, line.decode().strip())


async def test_a_process_that_follows_a_killed_one_has_its_identity() -> None:
    killed = await start("followed")
    await killed.signal(signal.SIGKILL)
    following = await start("followed")
    await following.signal(signal.SIGKILL)
    assert following.identity == killed.identity


async def test_two_living_processes_of_one_host_have_two_identities() -> None:
    first, second = await start("shared"), await start("shared")
    third = await start("shared")
    for process in (first, second, third):
        await process.signal(signal.SIGKILL)
    assert len({first.identity, second.identity, third.identity}) == 3


async def test_a_suspended_process_keeps_its_identity() -> None:
    suspended = await start("suspended")
    await suspended.signal(signal.SIGSTOP)
    another = await start("suspended")
    for process in (suspended, another):
        await process.signal(signal.SIGKILL)
    assert another.identity != suspended.identity


async def test_each_election_of_one_host_has_identities_of_its_own() -> None:
    async with (
        candidate_identity("https://a kube/manager") as one,
        candidate_identity("https://b kube/manager") as other,
    ):
        assert one != other


async def test_an_identity_that_was_given_back_is_free_for_the_next() -> None:
    async with candidate_identity("again") as before:
        pass
    async with candidate_identity("again") as after:
        assert after == before
