"""How fast the rollout buffer is, against indexing and copying the same tensors by hand.

Both sides of a comparison run in one process in alternating order; reported are medians over the rounds and medians of
the ratios within a round::

    python -m benchmarks.storage
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from legged_envs.storage import RolloutStorageMM, Transition

NUM_ENVS, NUM_STEPS, OBS_SIZE = 4096, 24, 48
REF_SIZE, NUM_ACTIONS, NUM_COSTS, NUM_AMP = 26, 12, 2, 24
"""Sizes of the other fields in the setting ``"everything"``."""
NUM_MINI_BATCHES = 4
BATCH_LIMIT = 1.15
"""Time of an epoch of ``mini_batch_generator`` over that of indexing by hand that the package promises."""
SETTINGS: dict[str, dict[str, Any]] = {
    "PPO": {},
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
"""Name → what the storage keeps beside PPO's own fields."""


def amp_states(observations: torch.Tensor) -> torch.Tensor:
    """The first columns of the observations, as a view."""
    return observations[..., :NUM_AMP]


def amp_reference_states(
    reference: tuple[torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """The first columns of the reference observations, as a view, with their mask."""
    return reference[0][..., :NUM_AMP], reference[1]


def bench_storage(
    rounds: int = 30, num_envs: int = NUM_ENVS, num_steps: int = NUM_STEPS, device: str = "cpu"
) -> list[dict[str, Any]]:
    """One row per setting of :data:`SETTINGS`.

    A row has ``setting``, ``batches_ms`` and ``indexing_ms`` (an epoch of ``mini_batch_generator``, and the same by
    hand), ``batches_ratio``, ``add_ms`` and ``copies_ms`` (a rollout of ``add_transitions``, and its copies by hand)
    and ``add_ratio``.

    Raises:
        ValueError: If ``rounds`` is not positive.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be positive, got {rounds}")
    return [
        _bench_setting(name, rounds, num_envs, num_steps, torch.device(device)) for name in SETTINGS
    ]


def _bench_setting(
    setting: str, rounds: int, num_envs: int, num_steps: int, device: torch.device
) -> dict[str, Any]:
    shapes = {"ref_obs_shape": None, "privileged_obs_shape": None, "privileged_ref_obs_shape": None}
    arguments: dict[str, Any] = shapes | SETTINGS[setting]
    storage = RolloutStorageMM(
        "rl",
        num_envs,
        num_steps,
        (OBS_SIZE,),
        actions_shape=(NUM_ACTIONS,),
        device=device,
        **arguments,
    )
    transition = _random_transition(storage)
    add_ms, copies_ms, add_ratio = _compare(
        lambda: _add(storage, transition),
        lambda: _copy_by_hand(storage, transition),
        rounds,
        device,
    )
    last_cost_values = (
        torch.zeros(num_envs, NUM_COSTS, device=device) if storage.num_costs else None
    )
    last_values = torch.zeros(num_envs, 1, device=device)
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
    ours: Callable[[], None], by_hand: Callable[[], None], rounds: int, device: torch.device
) -> tuple[float, float, float]:
    """Median times of both in ms, and the median of their ratios within a round."""
    seconds: tuple[list[float], list[float]] = ([], [])
    sides = ((ours, seconds[0]), (by_hand, seconds[1]))
    for i in range(rounds + 2):
        for run, times in sides if i % 2 else sides[::-1]:
            begun = time.perf_counter()
            run()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            times.append(time.perf_counter() - begun)
    ratios = [
        a / b for a, b in zip(seconds[0][2:], seconds[1][2:], strict=True)
    ]  # the first two rounds warm up
    return (
        1e3 * statistics.median(seconds[0][2:]),
        1e3 * statistics.median(seconds[1][2:]),
        statistics.median(ratios),
    )


def _random_transition(storage: RolloutStorageMM) -> Transition:
    """Every field of a transition, random; the storage takes what it keeps. One episode in fifty ends."""
    num_envs, device = storage.num_envs, storage.device
    sizes = {"critic_observations": OBS_SIZE, "observations": OBS_SIZE, "rnd_state": OBS_SIZE}
    sizes |= dict.fromkeys(
        ("actions", "dagger_actions", "action_mean", "action_sigma"), NUM_ACTIONS
    )
    sizes |= dict.fromkeys(("reference_observations", "critic_reference_observations"), REF_SIZE)
    sizes |= dict.fromkeys(("rewards", "values", "actions_log_prob"), 1)
    sizes |= dict.fromkeys(("cost_rewards", "cost_values"), NUM_COSTS)
    transition = Transition()
    for name, size in sizes.items():
        setattr(transition, name, torch.rand(num_envs, size, device=device))
    transition.dones = torch.rand(num_envs, 1, device=device) < 0.02
    transition.reference_observations_mask = torch.rand(num_envs, device=device) < 0.8
    transition.critic_reference_observations_mask = transition.reference_observations_mask
    return transition


def _add(storage: RolloutStorageMM, transition: Transition) -> None:
    storage.clear()
    for _ in range(storage.num_transitions_per_env):
        storage.add_transitions(transition)


def _copy_by_hand(storage: RolloutStorageMM, transition: Transition) -> None:
    kept = {field.name: getattr(transition, field.name) for field in fields(Transition)}
    names = {"action_mean": "mu", "action_sigma": "sigma"}
    names |= {
        name: name.replace("critic_", "privileged_") for name in kept if name.startswith("critic_")
    }
    pairs = [
        (getattr(storage, names.get(name, name), None), tensor) for name, tensor in kept.items()
    ]
    copies = [
        (buffer, tensor) for buffer, tensor in pairs if buffer is not None and tensor is not None
    ]
    for step in range(storage.num_transitions_per_env):
        for buffer, tensor in copies:
            buffer[step].copy_(tensor)


def _run_epoch(storage: RolloutStorageMM) -> None:
    for _ in storage.mini_batch_generator(NUM_MINI_BATCHES, num_epochs=1):
        pass


def _index_by_hand(storage: RolloutStorageMM) -> None:
    """``flat[indices]`` of every buffer that the batches carry, and of the rows one step before for AMP."""
    s = storage
    optional = (
        *(s.reference_observations, s.reference_observations_mask, s.privileged_observations),
        *(
            s.privileged_reference_observations,
            s.privileged_reference_observations_mask,
            s.dagger_actions,
        ),
        *(s.rnd_state, s.cost_values, s.cost_returns, s.cost_advantages),
    )
    always = (
        s.observations,
        s.actions,
        s.values,
        s.advantages,
        s.returns,
        s.actions_log_prob,
        s.mu,
        s.sigma,
    )
    flat = [buffer.flatten(0, 1) for buffer in (*always, *optional) if buffer is not None]
    earlier = (
        (s.observations, s.reference_observations, s.reference_observations_mask)
        if s.amp_cfg
        else ()
    )
    flat_earlier = [buffer.flatten(0, 1) for buffer in earlier if buffer is not None]
    size = s.num_envs * s.num_transitions_per_env
    for indices in torch.randperm(size, device=s.device).chunk(NUM_MINI_BATCHES):
        batch = [buffer[indices] for buffer in flat]
        if flat_earlier:
            previous = torch.where(indices >= s.num_envs, indices - s.num_envs, indices)
            batch += [buffer[previous] for buffer in flat_earlier]


def main(rounds: int = 30) -> None:
    """Measure the rollout buffer against indexing and copying the same tensors by hand.

    Args:
        rounds: Paired rounds; medians are reported.
    """
    title = f"RolloutStorageMM, {NUM_ENVS} environments × {NUM_STEPS} steps × {OBS_SIZE} observations; medians"
    table = Table(title=title, title_justify="left")
    headers = (
        "fields",
        "epoch [ms]",
        "by hand [ms]",
        "ratio",
        "limit",
        "filling [ms]",
        "copies by hand [ms]",
        "ratio",
    )
    for i, header in enumerate(headers):
        table.add_column(header, justify="right" if i else "left")
    for row in bench_storage(rounds):
        good = row["batches_ratio"] <= BATCH_LIMIT
        table.add_row(
            row["setting"],
            f"{row['batches_ms']:.1f}",
            f"{row['indexing_ms']:.1f}",
            f"[{'green' if good else 'red'}]{row['batches_ratio']:.2f}[/]",
            f"{BATCH_LIMIT:g}",
            f"{row['add_ms']:.1f}",
            f"{row['copies_ms']:.1f}",
            f"{row['add_ratio']:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    tyro.cli(main)
