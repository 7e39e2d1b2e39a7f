"""Directories that the installer works with."""

from typing import NamedTuple


class Paths(NamedTuple):
    """`root` is where the node's root directory is mounted, empty if it is that of this process.

    `configuration` and `plugins` have what is to be installed; `run_dir` lock and report, `state_dir` the records of
    attachments.
    """

    root: str
    configuration: str
    plugins: str
    run_dir: str
    state_dir: str
