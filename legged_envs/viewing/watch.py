"""Lets robots act in scenes, one control step at a time, for films, the window and pictures."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv

from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.changes import apply_changes
from legged_envs.evaluation.conditions import (
    EVALUATION_ENV_OPTIONS,
    PolicyFunction,
    evaluation_cfg,
)
from legged_envs.evaluation.metrics.gaits import hold_gait
from legged_envs.evaluation.metrics.mimic import motion_of
from legged_envs.evaluation.metrics.velocity import hold_velocity
from legged_envs.mdp.events import reset_to_reference
from legged_envs.mdp.gait_command import GaitChoice
from legged_envs.mdp.observations import height_scan
from legged_envs.mdp.scan import scan_points
from legged_envs.policy.policy import Policy
from legged_envs.viewing.scenes import Command, Scene

SCAN_PARAMS = ("x", "y", "lookup")
"""Names of the parameters of the observation ``height_scan`` that define its points."""


def make_watched_envs(
    task_id: str, cfg: TaskCfg, policy: Policy, scan: bool = False, num_envs: int = 1
) -> VectorEnv:
    """Make environments for watching a policy, without randomization and disturbances.

    On a mimic task, robots start exactly at their reference.

    Args:
        task_id: Registered id of the task.
        cfg: Configuration of the task.
        policy: Policy that will control the robots.
        scan: True: also draw the points of the ground whose heights the policy observes.
        num_envs: Number of robots.

    Raises:
        ValueError: If the policy does not suit the task, or ``scan`` is True and the policy does
            not observe heights of the ground.
    """
    events = {}
    for name, event in cfg.events.items():
        # Others randomize the robot or push it. Then two films of a policy would differ.
        if event.purpose == "place":
            if event.func is reset_to_reference:
                # Without parameters, the start has no noise.
                event = replace(event, params={})
            events[name] = event
    cfg = apply_changes(evaluation_cfg(cfg), {"events": events, "viewer.env_index": 0})
    envs = gym.make_vec(
        task_id, num_envs=num_envs, cfg=cfg, render_mode="rgb_array", **EVALUATION_ENV_OPTIONS
    )
    core = unwrap(envs)
    policy.check(core)
    if scan:
        _draw_scan(core, find_height_scan(cfg))
    return envs


def find_height_scan(cfg: TaskCfg) -> dict[str, Any]:
    """Return the parameters that define the points of a task's height scan.

    Args:
        cfg: Configuration of the task.

    Raises:
        ValueError: If the policy does not observe heights of the ground.
    """
    if "policy" in cfg.observations:
        for term in cfg.observations["policy"].terms.values():
            if term.func is height_scan:
                return {key: value for key, value in term.params.items() if key in SCAN_PARAMS}
    raise ValueError("the policy of this task observes no heights: it takes no --scan")


def _draw_scan(core: Any, scan: dict[str, Any]) -> None:
    """Add the points of a height scan to all pictures of the environments."""
    from mujoco import MjvScene

    from legged_envs.sim.render.shapes import draw_points

    def draw(scene: MjvScene, env_id: int) -> None:
        draw_points(scene, scan_points(core, **scan)[env_id])

    core.sim.decorations.append(draw)


def watch(
    envs: VectorEnv, policy: PolicyFunction, groups: Sequence[str], scenes: Iterable[Scene]
) -> Iterator[Scene]:
    """Step the environments through one scene after the other.

    If an episode ends, for example by a fall, the scene starts again.

    Args:
        envs: Environments that were made with ``EVALUATION_ENV_OPTIONS``.
        policy: Function from observations, one argument per group, to actions.
        groups: Names of the observation groups that are the arguments of the policy, in order.
        scenes: Velocity commands or clips to show, in order.

    Yields:
        The current scene, after each control step.
    """
    core = unwrap(envs)
    observation: dict[str, torch.Tensor] = {}
    command: Command | None = None
    gait: GaitChoice | None = None
    for scene in scenes:
        if scene.clip is not None or not observation:
            observation = start_scene(envs, scene, seed=0)
            _clear_memory(policy, None)
        # Without a reset: the robot walks on from one command to the next.
        elif scene.command != command or scene.gait != gait:
            _hold_command(core, scene, observation)
        command = scene.command
        gait = scene.gait
        for _ in range(round(scene.seconds / core.step_dt)):
            inputs = [observation[group] for group in groups]
            with torch.inference_mode():
                action = policy(*inputs)
            observation, _, terminated, truncated, _ = envs.step(action)
            yield scene
            ended = terminated | truncated
            # The environments have no autoreset, so that the end can be seen before the reset.
            if ended.any():
                observation = start_scene(envs, scene, options={"reset_mask": ended})
                _clear_memory(policy, ended)


def _clear_memory(policy: PolicyFunction, ended: torch.Tensor | None) -> None:
    # A policy may have a memory.
    if isinstance(policy, Policy):
        policy.reset(ended)


def start_scene(
    envs: VectorEnv,
    scene: Scene,
    seed: int | None = None,
    options: dict[str, torch.Tensor] | None = None,
) -> dict[str, torch.Tensor]:
    """Reset environments to the start of a scene, with its velocity command or clip.

    Args:
        envs: The environments.
        scene: Scene that begins.
        seed: Random seed of the reset. None: the random streams continue.
        options: Options of the reset, such as a ``reset_mask``, as in Gymnasium.

    Returns:
        First observation of each group, by its name. Shapes: (num_envs, size).
    """
    core = unwrap(envs)
    if scene.clip is None:
        observation, _ = envs.reset(seed=seed, options=options)
        _hold_command(core, scene, observation)
        return observation
    motion = motion_of(core)
    # The clip is pinned only for this reset, so that the start of the episode is that of the clip.
    motion.pin(motion.player.library.clip_ids(scene.clip).squeeze(), torch.tensor(0.0))
    observation, _ = envs.reset(seed=seed, options=options)
    # Episodes that start later choose their own clip and time again.
    motion.release()
    return observation


def _hold_command(core: CoreVectorEnv, scene: Scene, observation: dict[str, torch.Tensor]) -> None:
    if scene.command is not None:
        hold_velocity(core, scene.command, observation)
    # After the velocity: feet that should not move have no schedule.
    if scene.gait is not None:
        hold_gait(core, scene.gait, observation)
