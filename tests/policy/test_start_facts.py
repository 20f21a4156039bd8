"""The states from which a policy started in training, in its metadata."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.envs import make_core
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.managers import EventTermCfg
from legged_envs.policy.metadata import contract
from legged_envs.policy.training_facts import complete_contract, training_facts

GO2, SOLES, MIMIC = "Legged/Go2-Flat-v0", "Legged/Tron1-SF-Flat-v0", "Legged/Go2-Mimic-v0"
ROBOTS = 400


def assert_fills(drawn: torch.Tensor, span: list[float]) -> None:
    """Draws are within a range, and come near to both of its ends."""
    low, high = span
    margin = 0.03 * (high - low) + 1e-5
    assert low - 1e-5 <= drawn.min() <= low + margin
    assert high - margin <= drawn.max() <= high + 1e-5


def test_the_ranges_of_starts_are_those_of_the_robots_at_a_reset() -> None:
    cfg = override(
        make_task_cfg(GO2),
        {
            "events.root.params.height": (0.01, 0.2),
            "events.root.params.velocity": 0.4,
            "events.joints.params.velocity": 0.7,
        },
    )
    start = training_facts(cfg)["start"]
    core = make_core(cfg, ROBOTS, array="torch")
    core.reset(seed=0)
    assert_fills(core.sim.root_pos_w[:, 2], start["base_height"])
    assert_fills(core.sim.root_lin_vel_w, start["base_lin_vel"])
    assert_fills(core.sim.root_ang_vel_b, start["base_ang_vel"])
    offset = core.sim.joint_pos - core.robot.default_joint_pos
    assert_fills(offset, start["joint_offset"])
    assert_fills(core.sim.joint_vel, start["joint_vel"])
    assert start["roll_pitch"] == [0.0, 0.0]
    # An upright base has a quaternion without x and y.
    assert core.sim.root_quat_w[:, 1:3].abs().max() < 1e-6
    core.close()


def test_starts_in_a_crouch_are_told_with_their_share() -> None:
    cfg = make_task_cfg(SOLES)
    crouch = training_facts(cfg)["start"]["crouch"]
    core = make_core(cfg, ROBOTS, array="torch")
    core.reset(seed=0)
    is_low = core.sim.root_pos_w[:, 2] < cfg.robot.base_height - 0.5 * crouch["lower"]
    assert is_low.float().mean().item() == pytest.approx(crouch["fraction"], abs=0.08)
    knee = cfg.robot.joint_names.index("knee_L_Joint")
    bent = core.sim.joint_pos[is_low, knee].mean().item()
    assert bent == pytest.approx(crouch["joint_pos"]["knee_L_Joint"], abs=0.05)
    core.close()


def test_drops_are_told_with_their_share() -> None:
    cfg = make_task_cfg("Legged/Go2-Robust-v0")
    drop = training_facts(cfg)["start"]["drop"]
    core = make_core(cfg, ROBOTS, array="torch")
    core.reset(seed=0)
    offset = (core.sim.root_pos_w - core.sim.ground.origins)[:, :2].abs().amax(1)
    # All others start within 1 m of the middle. A drop is there in one case of nine.
    share = (offset > 1.0).float().mean().item() * 9 / 8
    assert share == pytest.approx(drop["fraction"], abs=0.08)
    assert offset.max() == pytest.approx(drop["distance"], abs=0.05)
    core.close()


def own_start(env: object, env_ids: object, random: object, far: float = 1.0) -> None:
    """An event of another package."""


def test_starts_of_clips_of_methods_and_of_other_packages_are_told() -> None:
    assert training_facts(make_task_cfg(MIMIC))["start"]["reference"]["joint_offset"] == [-0.1, 0.1]
    assert training_facts(make_task_cfg("Legged/Go2-Legs-v0"))["start"] is None
    other = EventTermCfg(partial(own_start, far=2.0), "reset")
    cfg = make_task_cfg(GO2)
    cfg.events = {"other": other}
    start = training_facts(cfg)["start"]
    assert [name.split(".")[-1] for name in start["other"]] == ["own_start"]
    assert start["base_height"] == [cfg.robot.base_height] * 2


def test_contracts_of_before_learn_where_a_training_started() -> None:
    cfg: TaskCfg = make_task_cfg(GO2)
    present = contract(GO2, make_core(cfg, 1))
    older = {**present, "training": {"friction": [0.1, 0.2]}}
    training = complete_contract(older, cfg)["training"]
    assert training["friction"] == [0.1, 0.2]
    assert training["start"] == present["training"]["start"]
