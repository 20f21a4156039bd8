"""Command line of the benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks import scaling
from benchmarks.scaling.measurements import measure_all
from benchmarks.scaling.predictions import print_predictions
from benchmarks.scaling.traffic import GIGABIT, print_traffic


def main(words: Sequence[str] | None = None) -> None:
    """Run a subcommand."""
    assert scaling.__doc__ is not None
    parser = argparse.ArgumentParser(description=scaling.__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("traffic", help="bytes of an update, for each kind of training")
    measuring = commands.add_parser("measure", help="train with several processes")
    measuring.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    measuring.add_argument("--num-envs", type=int, default=768)
    measuring.add_argument("--updates", type=int, default=12)
    measuring.add_argument("--json", type=Path, required=True)
    predicting = commands.add_parser("predict", help="fit the model, and predict")
    predicting.add_argument("file", type=Path)
    predicting.add_argument("--processes", type=int, nargs="+", default=[1, 8, 64, 512])
    predicting.add_argument("--robots-each", type=int, nargs="+", default=[96, 384])
    predicting.add_argument("--latency", type=float, default=50e-6, help="of a round, s")
    predicting.add_argument("--bandwidth", type=float, default=GIGABIT, help="bytes/s")
    options = parser.parse_args(words)
    if options.command == "measure":
        measure_all(options.processes, options.num_envs, options.updates, options.json)
    elif options.command == "predict":
        print_predictions(
            options.file,
            options.processes,
            options.robots_each,
            options.latency,
            options.bandwidth,
        )
    else:
        print_traffic()


if __name__ == "__main__":
    main()
