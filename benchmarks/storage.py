"""How fast the rollout buffer is, against indexing and copying the same tensors by hand.

Both sides of a comparison run in one process in alternating order. The figures are medians over the
rounds and medians of the ratios within a round::

    python -m benchmarks.storage
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.ratios import median_ratio
from legged_envs.storage import RolloutStorageMM, Transition
from legged_envs.storage.fields import BATCH_BUFFERS, TRANSITION_BUFFERS

NUM_ENVS = 4096
"""Environments of a rollout."""
NUM_STEPS = 24
"""Steps of a rollout."""
OBS_SIZE = 48
"""Size of the observations."""
REF_SIZE = 26
"""Size of the reference observations in the setting ``"everything"``."""
NUM_ACTIONS = 12
"""Size of the actions."""
NUM_COSTS = 2
"""Cost terms in the setting ``"everything"``."""
NUM_AMP = 24
"""Size of an AMP state in the setting ``"everything"``."""
NUM_MINI_BATCHES = 4
"""Batches of an epoch."""
WARM_UP_ROUNDS = 2
"""Rounds that do not count."""
BATCH_LIMIT = 1.15
"""Limit of the time of an epoch of ``mini_batch_generator``, relative to indexing by hand."""
SETTINGS: dict[str, dict[str, Any]] = {
    "PPO": {
        "ref_obs_shape": None,
        "privileged_obs_shape": None,
        "privileged_ref_obs_shape": None,
    },
    "everything": {
        "ref_obs_shape": (REF_SIZE,),
        "privileged_obs_shape": (OBS_SIZE,),
        "privileged_ref_obs_shape": (REF_SIZE,),
        "apply_dagger_actions": True,
        "rnd_state_shape": (OBS_SIZE,),
        "amp_cfg": {
            "amp_obs_extractor": "benchmarks.storage:amp_states",
            "amp_ref_obs_extractor": "benchmarks.storage:amp_reference_states",
        },
        "num_costs": NUM_COSTS,
    },
}
"""Arguments of the storage, by name of the setting."""


def amp_states(observations: torch.Tensor) -> torch.Tensor:
    """Return the first columns of the observations, as a view."""
    return observations[..., :NUM_AMP]


def amp_reference_states(
    reference: tuple[torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first columns of the reference observations, as a view, with their mask."""
    observations, mask = reference
    return observations[..., :NUM_AMP], mask


def bench_storage(
    rounds: int = 30, num_envs: int = NUM_ENVS, num_steps: int = NUM_STEPS, device: str = "cpu"
) -> list[dict[str, Any]]:
    """Measure every setting of :data:`SETTINGS`.

    Args:
        rounds: Rounds that count.
        num_envs: Environments of a rollout.
        num_steps: Steps of a rollout.
        device: Device of the storage.

    Returns:
        A row of figures for each: ``setting``, ``batches_ms`` and ``indexing_ms`` (an epoch of
        ``mini_batch_generator``, and the same by hand), ``batches_ratio``, ``add_ms`` and
        ``copies_ms`` (a rollout of ``add_transitions``, and its copies by hand) and ``add_ratio``.

    Raises:
        ValueError: If ``rounds`` is not positive.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be positive, got {rounds}")
    rows = []
    for setting in SETTINGS:
        rows.append(_bench_setting(setting, rounds, num_envs, num_steps, torch.device(device)))
    return rows


def _bench_setting(
    setting: str, rounds: int, num_envs: int, num_steps: int, device: torch.device
) -> dict[str, Any]:
    storage = RolloutStorageMM(
        training_type="rl",
        num_envs=num_envs,
        num_transitions_per_env=num_steps,
        obs_shape=(OBS_SIZE,),
        actions_shape=(NUM_ACTIONS,),
        device=device,
        **SETTINGS[setting],
    )
    transition = _random_transition(storage)
    add_ms, copies_ms, add_ratio = _compare(
        lambda: _add(storage, transition),
        lambda: _copy_by_hand(storage, transition),
        rounds,
        device,
    )
    last_values = torch.zeros(num_envs, 1, device=device)
    last_cost_values = None
    if storage.num_costs:
        last_cost_values = torch.zeros(num_envs, NUM_COSTS, device=device)
    storage.compute_returns(last_values, 0.99, 0.95, last_cost_values=last_cost_values)
    batches_ms, indexing_ms, batches_ratio = _compare(
        lambda: _run_epoch(storage), lambda: _index_by_hand(storage), rounds, device
    )
    return {
        "setting": setting,
        "num_envs": num_envs,
        "num_steps": num_steps,
        "batches_ms": batches_ms,
        "indexing_ms": indexing_ms,
        "batches_ratio": batches_ratio,
        "add_ms": add_ms,
        "copies_ms": copies_ms,
        "add_ratio": add_ratio,
    }


def _compare(
    storage_run: Callable[[], None],
    by_hand: Callable[[], None],
    rounds: int,
    device: torch.device,
) -> tuple[float, float, float]:
    """Return median times of both in ms, and the median of their ratios within a round."""
    storage_seconds: list[float] = []
    hand_seconds: list[float] = []
    sides = [(storage_run, storage_seconds), (by_hand, hand_seconds)]
    for _ in range(rounds + WARM_UP_ROUNDS):
        sides.reverse()
        for run, seconds in sides:
            begun = time.perf_counter()
            run()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            seconds.append(time.perf_counter() - begun)
    del storage_seconds[:WARM_UP_ROUNDS]
    del hand_seconds[:WARM_UP_ROUNDS]
    return (
        1e3 * statistics.median(storage_seconds),
        1e3 * statistics.median(hand_seconds),
        median_ratio(storage_seconds, hand_seconds),
    )


def _random_transition(storage: RolloutStorageMM) -> Transition:
    """Return a transition with random fields; the storage copies the fields that it keeps."""
    num_envs = storage.num_envs
    device = storage.device

    def random(size: int) -> torch.Tensor:
        return torch.rand(num_envs, size, device=device)

    reference_mask = torch.rand(num_envs, device=device) < 0.8
    return Transition(
        observations=random(OBS_SIZE),
        critic_observations=random(OBS_SIZE),
        reference_observations=random(REF_SIZE),
        reference_observations_mask=reference_mask,
        critic_reference_observations=random(REF_SIZE),
        critic_reference_observations_mask=reference_mask,
        actions=random(NUM_ACTIONS),
        dagger_actions=random(NUM_ACTIONS),
        action_mean=random(NUM_ACTIONS),
        action_sigma=random(NUM_ACTIONS),
        rewards=random(1),
        dones=random(1) < 0.02,  # one episode in fifty ends
        values=random(1),
        actions_log_prob=random(1),
        cost_rewards=random(NUM_COSTS),
        cost_values=random(NUM_COSTS),
        rnd_state=random(OBS_SIZE),
    )


def _add(storage: RolloutStorageMM, transition: Transition) -> None:
    storage.clear()
    for _ in range(storage.num_transitions_per_env):
        storage.add_transitions(transition)


def _copy_by_hand(storage: RolloutStorageMM, transition: Transition) -> None:
    copies = []
    for name, buffer_name in TRANSITION_BUFFERS.items():
        buffer = getattr(storage, buffer_name, None)
        tensor = getattr(transition, name)
        if buffer is not None and tensor is not None:
            copies.append((buffer, tensor))
    for step in range(storage.num_transitions_per_env):
        for buffer, tensor in copies:
            buffer[step].copy_(tensor)


def _run_epoch(storage: RolloutStorageMM) -> None:
    for _ in storage.mini_batch_generator(NUM_MINI_BATCHES, num_epochs=1):
        pass


def _index_by_hand(storage: RolloutStorageMM) -> None:
    """Compute ``flat[indices]`` of all buffers of a batch, and for AMP of the rows before."""
    flat = _flat_buffers(storage, list(BATCH_BUFFERS.values()))
    flat_before: list[torch.Tensor] = []
    if storage.amp_cfg:
        names = ["observations", "reference_observations", "reference_observations_mask"]
        flat_before = _flat_buffers(storage, names)
    num_envs = storage.num_envs
    size = num_envs * storage.num_transitions_per_env
    for indices in torch.randperm(size, device=storage.device).chunk(NUM_MINI_BATCHES):
        batch = [buffer[indices] for buffer in flat]
        if flat_before:
            previous = torch.where(indices >= num_envs, indices - num_envs, indices)
            batch += [buffer[previous] for buffer in flat_before]


def _flat_buffers(storage: RolloutStorageMM, names: list[str]) -> list[torch.Tensor]:
    """Return the buffers that are kept, each with one row for a transition."""
    flat = []
    for name in names:
        buffer = getattr(storage, name)
        if buffer is not None:
            flat.append(buffer.flatten(0, 1))
    return flat


def main(rounds: int = 30) -> None:
    """Measure the rollout buffer against indexing and copying the same tensors by hand.

    Args:
        rounds: Paired rounds; medians are reported.
    """
    table = Table(
        title=f"RolloutStorageMM, {NUM_ENVS} environments × {NUM_STEPS} steps × "
        f"{OBS_SIZE} observations; medians",
        title_justify="left",
    )
    table.add_column("fields")
    for header in (
        "epoch [ms]",
        "by hand [ms]",
        "ratio",
        "limit",
        "filling [ms]",
        "copies by hand [ms]",
        "ratio",
    ):
        table.add_column(header, justify="right")
    for row in bench_storage(rounds):
        colour = "green" if row["batches_ratio"] <= BATCH_LIMIT else "red"
        table.add_row(
            row["setting"],
            f"{row['batches_ms']:.1f}",
            f"{row['indexing_ms']:.1f}",
            f"[{colour}]{row['batches_ratio']:.2f}[/]",
            f"{BATCH_LIMIT:g}",
            f"{row['add_ms']:.1f}",
            f"{row['copies_ms']:.1f}",
            f"{row['add_ratio']:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(main)
