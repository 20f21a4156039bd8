"""Implements `legged-envs report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass
class ReportCfg:
    """Options of `legged-envs report`."""

    runs: Annotated[tuple[Path, ...], Positional, arg(metavar="RUN")]
    """Run folders."""
    out: Path = Path("report.html")
    """The page, .html: one file that needs no network. An existing page is replaced."""


def report(cfg: ReportCfg) -> None:
    """Write a page with the results of one or several runs.

    The page shows curves, evaluation, costs against their limits, videos, differences from the
    default configuration, versions, hardware and commit. Runs that differ only in their seed are
    drawn as one curve with their spread.
    """
    from legged_envs.evaluation.report import write_report
    from legged_envs.training.prepare import default_config

    # The evaluation must not import the training, so the default configuration is passed in.
    write_report(cfg.runs, cfg.out, default_config)
