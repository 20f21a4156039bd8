"""Bounds of the work that a network of a policy file asks for, before any of it is done."""

from collections.abc import Sequence

import torch

from legged_envs.policy.network import Network, Step, Value

MOST_STEPS = 10_000
"""Largest number of steps of a network. Those of this package have up to some hundreds."""

MOST_NUMBERS = 2**27
"""Largest number of elements that all steps of a network read and write, for two robots."""

NUM_ROWS = 2
"""Number of robots that the elements are counted for."""


def check_network_size(network: Network, sizes: Sequence[int]) -> None:
    """Check that a network gives its results in a bounded time and memory.

    A file of some kilobytes can describe a network that doubles a vector forty times. Its steps are
    run with tensors that have a shape and no elements.

    Args:
        network: The network.
        sizes: Sizes of its inputs.

    Raises:
        ValueError: If it has too many steps, or they have too many elements. Steps that do not fit
            each other are not reported: running them does.
    """
    if len(network.steps) > MOST_STEPS:
        raise ValueError(
            f"its network has {len(network.steps):,} steps, and at most {MOST_STEPS:,} are run"
        )
    values: dict[str, Value] = {}
    for name, weight in network.weights.items():
        values[name] = torch.empty(weight.shape, dtype=weight.dtype, device="meta")
    for name, size in zip(network.inputs, sizes, strict=True):
        values[name] = torch.empty(NUM_ROWS, size, device="meta")
    numbers = 0
    with torch.inference_mode():
        for step in network.steps:
            # Before the step: it may take a tensor apart into any number of tensors.
            numbers += sum(_count_numbers(values[name]) for name in step.sources)
            _check_numbers(numbers, step)
            result = _run_step(step, values)
            # The same step fails when the network is run, with the words of PyTorch.
            if result is None:
                return
            values[step.name] = result
            numbers += _count_numbers(result)
            _check_numbers(numbers, step)


def _check_numbers(numbers: int, step: Step) -> None:
    if numbers > MOST_NUMBERS:
        raise ValueError(
            f"its network computes with {numbers:,} numbers until step {step.name!r}, "
            f"{step.operation}, but the limit is {MOST_NUMBERS:,}"
        )


def _run_step(step: Step, values: dict[str, Value]) -> Value:
    """Return the result of a step for tensors without elements, None if its arguments are wrong.

    Raises:
        ValueError: If the result has a shape that depends on the elements.
    """
    try:
        return step.run(values)
    except NotImplementedError as error:
        raise ValueError(
            f"step {step.name!r} of its network, {step.operation}, has results of unlimited size "
            "and is not executed"
        ) from error
    # Of any kind: arguments of a file may be of any type.
    except Exception:
        return None


def _count_numbers(value: Value) -> int:
    """Return the number of elements of a tensor, or of all tensors in a tuple."""
    if isinstance(value, torch.Tensor):
        count = 1
        for size in value.shape:
            # A tensor without elements can still be taken apart into any number of tensors.
            count *= max(size, 1)
        return count
    if isinstance(value, (tuple, list)):
        return len(value) + sum(map(_count_numbers, value))
    return 0
