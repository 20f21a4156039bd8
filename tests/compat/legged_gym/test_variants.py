"""LeggedGym-Ex's variants return their tuples, with histories, labels and last states that are true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from legged_envs import rotation
from legged_envs.compat.legged_gym import (
    LeggedRobotAMP,
    LeggedRobotAMPCfg,
    LeggedRobotCTS,
    LeggedRobotCTSCfg,
    LeggedRobotDreamWaQ,
    LeggedRobotDreamWaQCfg,
    LeggedRobotEE,
    LeggedRobotEECfg,
    LeggedRobotTS,
    LeggedRobotTSCfg,
    task_registry,
)
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer

N = 3
VARIANTS: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "ts": (LeggedRobotTS, LeggedRobotTSCfg, (45, 3, 900, 240)),
    "cts": (LeggedRobotCTS, LeggedRobotCTSCfg, (45, 3, 900, 240)),
    "ee": (LeggedRobotEE, LeggedRobotEECfg, (450, 7, 260)),
    "dreamwaq": (LeggedRobotDreamWaQ, LeggedRobotDreamWaQCfg, (45, 240, 900, 7, 45)),
}


def make(kind: Any, cfg_class: Any, **fields: Any) -> Any:
    cfg = cfg_class()
    cfg.env.num_envs = N
    cfg.asset.name = "go2"
    cfg.rewards.scales.tracking_lin_vel = 1.0
    cfg.noise.add_noise = False
    for path, value in fields.items():
        section, name = path.split("__")
        setattr(getattr(cfg, section), name, value)
    return kind(cfg, {}, "cpu", True)


def variant(name: str, **fields: Any) -> Any:
    kind, cfg_class, _ = VARIANTS[name]
    return make(kind, cfg_class, **fields)


def step(robot: Any) -> Any:
    return robot.step(0.3 * torch.randn(N, 12))


@pytest.mark.parametrize("name", VARIANTS)
def test_step_and_reset_return_the_tuples_of_the_variant(name: str) -> None:
    robot = variant(name)
    sizes = VARIANTS[name][2]
    first = robot.reset(seed=0)
    assert [tuple(part.shape) for part in first] == [(N, size) for size in sizes]
    *shown, rewards, dones, extras = step(robot)
    assert [tuple(part.shape) for part in shown] == [(N, size) for size in sizes]
    assert rewards.shape == dones.shape == (N,)
    assert "time_outs" in extras
    for part, same in zip(robot.get_observations(), shown, strict=True):
        torch.testing.assert_close(part, same)


@pytest.mark.parametrize("name", ["ts", "dreamwaq"])
def test_a_history_is_what_was_observed_and_0_before_the_episode(name: str) -> None:
    robot = variant(name, env__frame_stack=4, env__num_history_obs=180)
    torch.manual_seed(0)
    observed = [robot.reset(seed=0)[0].clone()]
    for _ in range(5):
        observed.append(step(robot)[0].clone())
        expected = [torch.zeros_like(observed[0])] * 4 + observed
        torch.testing.assert_close(robot.obs_history, torch.cat(expected[-4:], dim=1))


def test_an_episode_that_begins_empties_its_history_and_leaves_the_others() -> None:
    robot = variant("ts", env__frame_stack=3, env__num_history_obs=135)
    robot.reset(seed=0)
    for _ in range(3):
        step(robot)
    before = robot.obs_history.clone()
    robot.reset_idx(torch.tensor([1]))
    after = robot.obs_history
    assert (after[1, :90] == 0.0).all() and (after[1, 90:] != 0.0).any()
    torch.testing.assert_close(after[[0, 2]], before[[0, 2]])


def test_labels_are_velocity_contacts_and_clearance() -> None:
    robot = variant(
        "ee",
        asset__contact_state_link_names=["calf", "foot"],
        env__num_estimator_labels=15,
        env__single_critic_obs_len=60,
        env__num_privileged_obs=300,
    )
    robot.reset(seed=0)
    for _ in range(20):
        _, labels, _, *_ = step(robot)
    sim = robot.simulator
    torch.testing.assert_close(labels[:, :3], sim.base_lin_vel * robot.obs_scales.lin_vel)
    names = robot.core.sim.body_names
    force = sim.link_contact_forces.norm(dim=2)
    links = [i for part in ("calf", "foot") for i, name in enumerate(names) if part in name]
    torch.testing.assert_close(labels[:, 3:11], (force[:, links] > 1.0).float())
    assert labels[:, 7:11].any()  # the robot stands on its feet
    torch.testing.assert_close(labels[:, 11:], sim.feet_pos[:, :, 2])


def test_the_ground_around_feet_is_that_of_the_height_field() -> None:
    robot = variant("ts", terrain__mesh_type="heightfield")
    robot.reset(seed=0)
    sim = robot.simulator
    heights = sim.height_around_feet
    assert heights.shape == (N, 4, 9)
    ground = robot.core.sim.ground
    x, y, _ = sim.feet_pos.unbind(-1)
    torch.testing.assert_close(heights[..., 4], ground.height(x, y))
    torch.testing.assert_close(heights[..., 7], ground.height(x - 0.1, y + 0.1))
    normal = sim.normal_vector_around_feet.view(N, 4, 3)
    slope = (heights[..., 1] - heights[..., 0]) / 0.2
    torch.testing.assert_close(normal[..., 0] / -normal[..., 2], slope)
    torch.testing.assert_close(normal.norm(dim=2), torch.ones(N, 4))


@pytest.mark.parametrize("seconds", [0.1])
def test_the_next_state_of_an_episode_that_ends_is_its_last(seconds: float) -> None:
    robot = variant("dreamwaq", env__episode_length_s=seconds)
    robot.reset(seed=0)
    for _ in range(5):
        *shown, _, dones, extras = step(robot)
    assert dones.all()
    torch.testing.assert_close(shown[4], extras["final_obs"]["next_state"])
    # The observation is already that of the new episode.
    assert not torch.allclose(shown[4][:, 9:33], shown[0][:, 9:33])


def test_terminal_states_of_the_motion_prior_are_before_the_reset() -> None:
    robot = make(LeggedRobotAMP, LeggedRobotAMPCfg, env__episode_length_s=0.1)
    assert len(robot.reset(seed=0)) == 2
    for _ in range(4):
        _, _, _, dones, _, ids, states = step(robot)
        assert not dones.any() and len(ids) == len(states) == 0
    seen: list[torch.Tensor] = []
    original = robot.compute_amp_observations

    def spied() -> torch.Tensor:
        seen.append(original())
        return seen[-1]

    robot.compute_amp_observations = spied
    obs, privileged, rewards, dones, extras, ids, states = step(robot)
    assert dones.all() and ids.tolist() == [0, 1, 2]
    assert privileged is None and obs.shape == (N, 48) and rewards.shape == (N,)
    # First the states of the step, then those of the new episodes.
    torch.testing.assert_close(states, seen[0])
    torch.testing.assert_close(robot.get_amp_observations(), seen[-1])
    assert not torch.allclose(states, robot.get_amp_observations())
    core = robot.core
    sim = robot.simulator
    present = robot.get_amp_observations()
    torch.testing.assert_close(present[:, 6:18], sim.dof_pos)
    way = (sim.feet_pos - sim.base_pos[:, None]).double()
    quat = core.robot.root_quat_w.double()
    feet = torch.stack([rotation.rotate_inverse(quat, way[:, [i]])[:, 0] for i in range(4)], 1)
    torch.testing.assert_close(present[:, 30:].double(), feet.flatten(1), rtol=1e-4, atol=1e-5)
    assert extras["time_outs"].all()


def test_noise_is_on_what_the_actor_sees_alone() -> None:
    robot = variant("ee", noise__add_noise=True)
    robot.reset(seed=0)
    features, _, critic, *_ = step(robot)
    noisy = features[:, -45:]
    true = critic[:, -52:-7]
    widths = robot.noise_scale_vec
    assert ((noisy - true).abs() <= widths + 1e-5).all()
    # Commands and actions have no noise.
    torch.testing.assert_close(noisy[:, :3], true[:, :3])
    torch.testing.assert_close(noisy[:, 33:], true[:, 33:])
    assert (noisy[:, 3:33] != true[:, 3:33]).any()


def test_a_run_of_a_task_with_a_history_is_resumed(
    tmp_path: Path, assert_same: Callable[..., None]
) -> None:
    cfg = LeggedRobotTSCfg()
    cfg.asset.name = "go2"
    cfg.rewards.scales.tracking_lin_vel = 1.0
    task_registry.register("go2_ts_resumed", LeggedRobotTS, cfg)

    def trainer(**options: Any) -> Trainer:
        given = TrainCfg("LeggedGym/go2_ts_resumed-v0", **options)
        return Trainer(prepare(given), Console(quiet=True))

    def iterate(trainer: Trainer, times: int) -> Trainer:
        for _ in range(times):
            trainer.set_schedule()
            trainer.iterate()
        return trainer

    algo = PPOCfg(steps_per_env=3, epochs=1, mini_batches=1, hidden=(8,))
    new = {"num_envs": 4, "iterations": 4, "video": False, "run_dir": tmp_path, "algo": algo}
    whole = iterate(trainer(**new), 3)
    iterate(trainer(**new), 2).save()
    resumed = iterate(trainer(resume=tmp_path), 1)
    assert_same(whole.algorithm.save(), resumed.algorithm.save())


def test_a_size_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"obs_history \(cfg\.env\.num_history_obs\).*900"):
        variant("ts", env__num_history_obs=901).reset()
