"""What a process has taken of the machine."""

import os
from pathlib import Path

_MIB = 1024  # KiB


def resident(pid: int) -> dict[str, float]:
    """Its memory, now and at most, and how many descriptors and threads it has."""
    lines = (line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    said = {key: value.split()[0] for key, value in lines if value.strip()}
    return {
        "rss_mib": round(int(said["VmRSS"]) / _MIB, 1),
        "most_mib": round(int(said["VmHWM"]) / _MIB, 1),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(said["Threads"]),
    }
