"""Loading of checkpoints into a training: to resume it, or to start with other networks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from legged_envs.errors import is_mistake
from legged_envs.tables import shorten
from legged_envs.training import processes
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.mimic_options import MimicPPOCfg
from legged_envs.training.options import PPOCfg
from legged_envs.training.scheme_options import SchemeCfg
from legged_envs.training.warm_start import load_equal_networks, load_warm_start
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO

if TYPE_CHECKING:
    from legged_envs.training.trainer import Trainer


def state_of_process(trainer: "Trainer") -> dict[str, Any]:
    """Return the part of a training's state that differs between its processes, by name."""
    return {
        "env": trainer.env.get_state(),
        "rng": torch.get_rng_state(),
        # The algorithm of the first process saves only the memory of the first process's
        # environments.
        "memory": getattr(trainer.algorithm.get_policy(), "memory", None),
    }


def resume_training(trainer: "Trainer", state: dict[str, Any]) -> None:
    """Return a training to the state of a checkpoint.

    Args:
        trainer: The training. It is changed.
        state: The checkpoint, from ``Trainer.checkpoint_state``.

    Raises:
        ValueError: If the checkpoint does not fit the training.
    """
    others = state.get("other_processes", [])
    if len(others) + 1 != processes.count():
        raise ValueError(
            f"the checkpoint {str(trainer.cfg.resume)!r} comes from {len(others) + 1} processes, "
            f"but this training has {processes.count()}; resume it with the same number of "
            "processes"
        )
    own = [state, *others][processes.rank()]
    with _explaining(trainer.cfg.resume):
        trainer.algorithm.load(state["algorithm"], None, strict=True)
        trainer.env.set_state(own["env"])
        torch.set_rng_state(own["rng"])
        if own.get("memory") is not None:
            trainer.algorithm.get_policy().memory.copy_(own["memory"])
    trainer.iteration = state["iteration"]
    trainer.seconds = state["seconds"]
    trainer.curve = state["curve"]
    trainer.time_to_walk = state["time_to_walk"]


def start_warm(trainer: "Trainer", checkpoint: dict[str, Any]) -> None:
    """Start a training with the networks of another run.

    Args:
        trainer: The training, newly made. Its networks are changed.
        checkpoint: Checkpoint of the other run.

    Raises:
        ValueError: If the networks of the run do not fit the training.
    """
    algo = trainer.prepared.algo
    place = trainer.cfg.warm_start
    earlier = getattr(checkpoint.get("cfg"), "algo", None)
    # Shapes of weights do not show these options.
    for option in ("activation", "encoder_heads"):
        given = getattr(algo, option, None)
        has = getattr(earlier, option, given)
        if given is not None and has != given:
            name = "--" + option.replace("_", "-")
            raise ValueError(
                f"{name} is {has} in the run {str(place)!r}, got {given}: a warm start needs "
                f"{name} {has}"
            )
    with _explaining(place):
        assert place is not None
        if isinstance(algo, SchemeCfg):
            assert isinstance(trainer.algorithm, PPO)
            load_equal_networks(
                checkpoint,
                place=place,
                algorithm=trainer.algorithm,
                algo=algo,
                task_id=trainer.cfg.task_id,
                env=trainer.env,
            )
        elif isinstance(algo, PPOCfg):
            assert isinstance(trainer.algorithm, (PPO, BootstrapPPO))
            load_warm_start(
                checkpoint,
                place=place,
                algorithm=trainer.algorithm,
                task_id=trainer.cfg.task_id,
                env=trainer.env,
                noise=algo.noise_kept,
            )
        else:
            # Optimizer, multipliers and bonuses start again: the task's rewards may have changed.
            parts = {"actor": True, "critic": True}
            trainer.algorithm.load(checkpoint["algorithm"], parts, strict=True)
            if isinstance(algo, MimicPPOCfg):
                trainer.algorithm.get_policy().distribution.scale_noise(algo.noise_kept)


@contextmanager
def _explaining(place: Path | None) -> Iterator[None]:
    """Convert what a checkpoint with wrong entries raises into a ValueError with its path."""
    try:
        yield
    # Of any kind: networks, optimizers and environments each refuse wrong entries in their way.
    except Exception as error:
        if is_mistake(error):
            raise
        reason = shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(
            f"the checkpoint {str(place)!r} does not fit this training ({reason}); "
            "take another checkpoint, or train a new run"
        ) from error
