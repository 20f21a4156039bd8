"""Several processes that train one policy: how they find each other, and what they average.

``torchrun`` starts the processes, on one machine or on several. Each process simulates its share of
the robots, and all have the same networks: they start from the same random numbers, and each step
of an optimizer uses the mean of the gradients of all processes. PyTorch's ``torch.distributed``
moves the numbers: Gloo between CPUs, NCCL between GPUs.

In a training of one process, the functions of this module return what they are given.
"""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

TIMEOUT = timedelta(seconds=45)
"""Time after which a process that waits for the others in an update gives up."""

PATIENCE = timedelta(hours=1)
"""Time for which the other processes wait while the first one evaluates or saves.

If the first process dies, they notice at once. If its machine is cut off, torchrun ends them.
"""

_waiting: dist.ProcessGroup | None = None


def count() -> int:
    """Return the number of processes of this training, 1 without ``torchrun``."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0. Process 0 writes files, evaluates and renders
    videos."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Return True for the process that writes files, evaluates and renders videos."""
    return rank() == 0


@contextmanager
def joined() -> Iterator[None]:
    """Join the processes that ``torchrun`` started, until the ``with`` block ends.

    Without ``torchrun``, or with one process, this does nothing.

    Raises:
        ConnectionError: If the other processes do not answer.
    """
    global _waiting
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield
        return
    _pin_to_cores()
    with explaining():
        store, own_rank, size = next(rendezvous("env://", timeout=TIMEOUT))
        # torchrun starts processes again with the same store, which still has the addresses of
        # failed processes.
        prefix = f"start {_number_of_restarts()}"
        store = dist.PrefixStore(prefix, store)  # type: ignore[attr-defined]
        dist.init_process_group(store=store, rank=own_rank, world_size=size, timeout=TIMEOUT)
        _waiting = dist.new_group(timeout=PATIENCE, backend="gloo")
    try:
        yield
    finally:
        _waiting = None
        dist.destroy_process_group()


@contextmanager
def explaining() -> Iterator[None]:
    """Convert the errors of torch.distributed into a ConnectionError with a remedy."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).split(". This ")[0].splitlines()[0]
        # The last part, without the place in PyTorch's code.
        reason = reason.rpartition("] ")[2] or reason
        raise ConnectionError(
            f"another process of the training has ended or cannot be reached ({reason}); start "
            "all of them again, with --resume and the run folder if a checkpoint was written"
        ) from error


def can_restart() -> bool:
    """Return True if ``torchrun`` starts all processes again when one of them fails."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


def is_restarted() -> bool:
    """Return True if ``torchrun`` started this process after a failure."""
    return _number_of_restarts() > 0


def _number_of_restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def _pin_to_cores() -> None:
    """Let each process on this machine run on separate cores."""
    on_this_machine = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if on_this_machine < 2 or not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // on_this_machine
    if each == 0:
        warnings.warn(
            f"{on_this_machine} processes share {len(cores)} cores, and take turns on them; start "
            f"at most {len(cores)} on this machine",
            stacklevel=2,
        )
        return
    first = int(os.environ.get("LOCAL_RANK", "0")) * each
    os.sched_setaffinity(0, cores[first : first + each])


def own_cores() -> int:
    """Return the number of cores that this process has for itself, 0 if it shares the machine."""
    if count() == 1 or not hasattr(os, "sched_getaffinity"):
        return 0
    return len(os.sched_getaffinity(0))


def share_of(total: int) -> int:
    """Return the number of robots of each process.

    Args:
        total: Number of robots of the training.

    Raises:
        ValueError: If the robots cannot be shared equally.
    """
    processes = count()
    if total % processes:
        raise ValueError(
            f"--num-envs must be a multiple of the number of processes, which is {processes}, "
            f"got {total}"
        )
    return total // processes


def own_rows(values: torch.Tensor) -> torch.Tensor:
    """Return the rows of this process's robots. Shape: (robots of all processes, …)."""
    rows = len(values) // count()
    return values[rank() * rows : (rank() + 1) * rows]


def sample(distribution: Any) -> torch.Tensor:
    """Sample actions. Each robot gets the noise that it would get in a single process.

    Args:
        distribution: Normal distribution of rsl_rl, with the parameters (mean, standard deviation).

    Returns:
        Actions. Shape: (num_envs, num_actions).
    """
    if count() == 1:
        actions: torch.Tensor = distribution.sample()
        return actions
    mean, std = distribution.params
    noise = mean.new_empty(count() * len(mean), mean.shape[1]).normal_()
    return own_rows(noise) * std + mean


def uniform_like(values: torch.Tensor) -> torch.Tensor:
    """Draw uniform numbers in [0, 1). Each row gets the numbers that it would get in a single
    process.

    Args:
        values: Rows of this process. Each process has as many. Shape: (n, size).

    Returns:
        Random numbers. Shape: (n, size).
    """
    if count() == 1:
        return torch.rand_like(values)
    return own_rows(values.new_empty(count() * len(values), values.shape[1]).uniform_())


def total(values: torch.Tensor) -> torch.Tensor:
    """Return the sum over processes."""
    if count() == 1:
        return values
    values = values.clone()
    with explaining():
        dist.all_reduce(values)
    return values


def average(values: torch.Tensor) -> torch.Tensor:
    """Return the mean over processes."""
    return total(values) / count() if count() > 1 else values


def average_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Replace the gradients of an optimizer's parameters by their means over processes."""
    if count() == 1:
        return
    gradients = []
    for group in optimizer.param_groups:
        # Parameters of another optimizer have no gradient, in no process.
        gradients += [each.grad for each in group["params"] if each.grad is not None]
    # One message with all gradients takes less time than one for each.
    averaged = average(torch.cat([gradient.flatten() for gradient in gradients]))
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, values in zip(gradients, averaged.split(sizes), strict=True):
        gradient.copy_(values.view_as(gradient))


def moments(values: torch.Tensor) -> tuple[int, torch.Tensor, torch.Tensor]:
    """Return number of rows, mean and variance of each column, over all processes.

    Args:
        values: Rows of this process. Shape: (n, size).

    Returns:
        The number of rows, and mean and variance without Bessel's correction. Shapes: (1, size).
    """
    counted = total(torch.tensor(len(values), device=values.device))
    mean = total(values.sum(0, keepdim=True)) / counted
    variance = total((values - mean).square_().sum(0, keepdim=True)) / counted
    return int(counted), mean, variance


def std_mean(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return standard deviation and mean of each column, over all processes. NaN without rows.

    Args:
        values: Rows of this process. Shape: (n, size).

    Returns:
        Standard deviation, without Bessel's correction, and mean. Shapes: (size,).
    """
    if count() == 1 and len(values):
        std, mean = torch.std_mean(values, dim=0, correction=0)
        return std, mean
    _, mean, variance = moments(values)
    return variance.sqrt().squeeze(0), mean.squeeze(0)


def normalize_(advantages: torch.Tensor) -> None:
    """Bring the advantages of all processes to mean 0 and standard deviation 1, in place.

    Args:
        advantages: Advantages of this process. Shape: (num_steps, num_envs, 1).
    """
    rows, mean, variance = moments(advantages.flatten(0, 1))
    # With Bessel's correction, as in RolloutStorageMM. Equal advantages have a deviation of 0.
    std = (variance * rows / max(1, rows - 1)).sqrt()
    advantages.sub_(mean).div_(std + 1e-8)


def average_numbers(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the mean of each number over processes. All processes have the same names."""
    if count() == 1:
        return dict(numbers)
    means = average(torch.tensor(list(numbers.values()), dtype=torch.float64))
    return dict(zip(numbers, means.tolist(), strict=True))


def gather(value: Any) -> list[Any]:
    """Return an object of each process, in every process. The objects are pickled."""
    if count() == 1:
        return [value]
    values: list[Any] = [None] * count()
    with explaining():
        dist.all_gather_object(values, value)
    return values


def concatenated(values: list[Any]) -> list[Any]:
    """Return the lists of all processes as one, in the order of their ranks.

    All processes must call it, and each gets the result.
    """
    everything: list[Any] = []
    for part in gather(values):
        everything.extend(part)
    return everything


def of_first(value: float) -> float:
    """Return the number that the first process has, however long it takes to come."""
    if count() == 1:
        return value
    sent = torch.tensor(value, dtype=torch.float64)
    with explaining():
        dist.broadcast(sent, src=0, group=_waiting)
    return sent.item()


def any_is(flag: bool) -> bool:
    """Return True if ``flag`` is True in a process."""
    return bool(total(torch.tensor(int(flag))))


def check_agreement(facts: Mapping[str, Any]) -> None:
    """Check that all processes were started with the same options and software.

    Args:
        facts: Values by name, such as the task and the seed.

    Raises:
        ValueError: If a value differs between processes.
    """
    all_facts: Sequence[Mapping[str, Any]] = gather(dict(facts))
    for name in facts:
        values = [others[name] for others in all_facts]
        for number, value in enumerate(values):
            if value != values[0]:
                raise ValueError(
                    f"all processes of a training must have the same {name}: process 0 has "
                    f"{values[0]!r}, process {number} has {value!r}"
                )
