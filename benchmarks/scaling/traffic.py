"""What the processes of a training send in an update, and how long that takes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from legged_envs.training import processes
from legged_envs.training.mimic_options import MimicPPOCfg
from legged_envs.training.options import AlgorithmCfg, PPOCfg, TrainCfg
from legged_envs.training.prepare import agreed, prepare
from legged_envs.training.scheme_options import CTSCfg, DreamWaQCfg, EECfg, HIMCfg, LSTMCfg, TSCfg
from legged_envs.training.trainer import Trainer

NETWORKS: dict[str, tuple[str, AlgorithmCfg]] = {
    "Go2-Flat ppo": ("Legged/Go2-Flat-v0", PPOCfg()),
    "Go2-Rough ppo": ("Legged/Go2-Rough-v0", PPOCfg()),
    "G1-Flat ppo": ("Legged/G1-Flat-v0", PPOCfg()),
    "Go2-Blind ppo": ("Legged/Go2-Blind-v0", PPOCfg()),
    "Go2-Blind ee": ("Legged/Go2-Blind-v0", EECfg()),
    "Go2-Blind dreamwaq": ("Legged/Go2-Blind-v0", DreamWaQCfg()),
    "Go2-Blind him": ("Legged/Go2-Blind-v0", HIMCfg()),
    "Go2-Blind ts": ("Legged/Go2-Blind-v0", TSCfg()),
    "Go2-Blind cts": ("Legged/Go2-Blind-v0", CTSCfg()),
    "Go2-Blind lstm": ("Legged/Go2-Blind-v0", LSTMCfg()),
    "Go2-Mimic mmppo": ("Legged/Go2-Mimic-v0", MimicPPOCfg()),
}
"""Task and algorithm of each row of the table."""

GIGABIT = 125e6
"""Bytes that a link of 1 Gbit/s carries in a second."""

SUMS = ("total", "average", "average_numbers", "average_gradients")
"""Functions of :mod:`legged_envs.training.processes` that send a message each."""

OF_THE_LOOP = 2
"""Number of messages of the trainer's loop: the time, and whether to stop."""


@dataclass
class Traffic:
    """What each process of a training sends in an update, before the ring multiplies it."""

    parameters: int
    """Number of parameters with a gradient."""
    messages: int
    """Number of sums over all processes."""
    size: int
    """Number of bytes of these sums."""


@contextmanager
def counting_sums() -> Iterator[tuple[list[int], list[int]]]:
    """Count the sums over processes within the ``with`` block, in a training of one process.

    Yields:
        Lists that get the number of bytes of each sum: of gradients, and of everything else.
    """
    gradients: list[int] = []
    others: list[int] = []
    originals = {name: getattr(processes, name) for name in SUMS}

    def average_gradients(optimizer: torch.optim.Optimizer) -> None:
        found = []
        for group in optimizer.param_groups:
            found += [each.grad for each in group["params"] if each.grad is not None]
        gradients.append(sum(gradient.nbytes for gradient in found))

    def counted(name: str) -> Callable[[Any], Any]:
        def call(values: Any) -> Any:
            is_tensor = isinstance(values, torch.Tensor)
            others.append(values.nbytes if is_tensor else torch.float64.itemsize)
            return originals[name](values)

        return call

    for name in SUMS:
        setattr(processes, name, counted(name))
    processes.average_gradients = average_gradients
    try:
        yield gradients, others
    finally:
        for name, original in originals.items():
            setattr(processes, name, original)


def traffic_of(task_id: str, algo: AlgorithmCfg) -> Traffic:
    """Return what an update of a training sends, counted in an update of eight robots."""
    with tempfile.TemporaryDirectory() as folder:
        cfg = TrainCfg(
            task_id,
            num_envs=8,
            iterations=2,
            run_dir=Path(folder, "run"),
            algo=algo,
            video=False,
            threads=1,
        )
        trainer = Trainer(agreed(prepare(cfg)), Console(quiet=True))
        with counting_sums() as (gradients, others):
            trainer.iterate()
        trainer.env.env.close()
    parameters = sum(set(gradients)) // torch.float32.itemsize
    sizes = gradients + others
    return Traffic(parameters, len(sizes) + OF_THE_LOOP, sum(sizes))


def ring_seconds(traffic: Traffic, count: int, latency: float, bandwidth: float) -> float:
    """Return the time that the sums of an update take.

    Gloo sums in a ring: in 2 (k − 1) rounds, each process sends 2 (k − 1) / k of the bytes.

    Args:
        traffic: What an update sends.
        count: Number of processes.
        latency: Time of a round without bytes, s.
        bandwidth: Bytes per second between two neighbours.
    """
    rounds = 2 * (count - 1)
    return traffic.messages * rounds * latency + traffic.size * rounds / count / bandwidth


def print_traffic() -> None:
    """Print a table of the networks: parameters, messages, bytes, and time on two links."""
    print("| training | parameters | sums per update | MB per update | 1 Gbit/s | 10 Gbit/s |")
    print("|---|---|---|---|---|---|")
    for name, (task_id, algo) in NETWORKS.items():
        found = traffic_of(task_id, algo)
        slow = 1e3 * ring_seconds(found, 2, 0.0, GIGABIT)
        megabytes = f"{found.size / 1e6:.1f}"
        cells = [name, f"{found.parameters:,}", str(found.messages), megabytes]
        cells += [f"{slow:.0f} ms", f"{0.1 * slow:.0f} ms"]
        print(f"| {' | '.join(cells)} |", flush=True)
