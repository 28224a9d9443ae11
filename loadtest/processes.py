"""What a server's processes use, read from /proc: CPU time and resident memory of one and its descendants (Linux)."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Usage:
    """`cpu_seconds`: of ended children, too. `rss_bytes`: a shared page counts once for each process."""

    processes: int
    cpu_seconds: float
    rss_bytes: int


def usage(pid: int) -> Usage | None:
    """Of the process and everything below it; None when it is not there."""
    found = [stat for process in _tree(pid) if (stat := _stat(process)) is not None]
    if not found:
        return None
    return Usage(len(found), sum(cpu for cpu, _ in found), sum(rss for _, rss in found))


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in (_PROC / str(pid) / "task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _tree(int(child))


def _stat(pid: int) -> tuple[float, int] | None:
    """CPU seconds and resident bytes of one process (proc_pid_stat(5))."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()  # the name in brackets may hold anything; field 3 comes first
    if fields[0] == "Z":
        return None
    return sum(map(int, fields[11:15])) / _TICKS, int(fields[21]) * _PAGE_BYTES
