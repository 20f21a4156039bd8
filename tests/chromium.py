"""The browser of tests, where there is one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def chromium() -> str | None:
    """Return the path of a Chromium: from the environment variable CHROMIUM, of the system, or fetched by Playwright. None: there is no Chromium."""
    names = [
        os.environ.get("CHROMIUM"),
        *map(shutil.which, ("chromium", "google-chrome", "chromium-browser")),
    ]
    folder = Path(
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache" / "ms-playwright")
    )
    names += [
        str(path)
        for path in sorted(folder.glob("chromium*/*/*"))
        if path.name.startswith(("chrome", "headless"))
    ]
    return next(
        (name for name in names if name and Path(name).is_file() and os.access(name, os.X_OK)), None
    )


FLAGS = (
    "--no-sandbox",
    "--headless=shell",
    "--single-process",
    "--no-zygote",
    "--disable-dev-shm-usage",
)
FLAGS += ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
SLOWLY = "window.requestAnimationFrame = draw => setTimeout(() => draw(performance.now()), 1000)"
"""A page drawn by the processor once a second leaves some of it to the robot."""
