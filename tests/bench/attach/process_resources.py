"""Memory, descriptors and threads of a process."""

import os
from pathlib import Path

_MIB = 1024  # KiB


def resident(pid: int) -> dict[str, float]:
    """Current and peak memory in MiB, and numbers of descriptors and threads."""
    lines = (line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    status = {key: value.split()[0] for key, value in lines if value.strip()}
    return {
        "rss_mib": round(int(status["VmRSS"]) / _MIB, 1),
        "most_mib": round(int(status["VmHWM"]) / _MIB, 1),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(status["Threads"]),
    }
