"""Implements `legged-envs compare`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass
class CompareCfg:
    """Options of `legged-envs compare`."""

    runs: Annotated[tuple[Path, ...], Positional, arg(metavar="RUN")]
    """Run folders."""


def compare(cfg: CompareCfg) -> None:
    """Print the results of several runs in one table.

    The table shows the options in which they differ, their progress, when they walked, and the
    results of their evaluations.
    """
    from legged_envs.evaluation.report import compare as print_comparison

    print_comparison(cfg.runs)
