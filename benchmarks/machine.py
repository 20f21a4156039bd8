"""Describes the machine and the versions on which the results of a benchmark depend."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("mujoco", "torch", "numpy", "gymnasium")
"""Packages with versions that matter."""


def machine() -> dict[str, Any]:
    """Return processor, cores and versions, and how busy the machine is."""
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "system": platform.system(),
        "load_average": round(os.getloadavg()[0], 2),
        "torch_threads": torch.get_num_threads(),
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        facts[package] = version(package)
    return facts


def _processor() -> str:
    """Return the name of the processor, where the system knows it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
