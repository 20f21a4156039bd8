"""Tasks as LeggedGym-Ex's users write them: the manager form's numbers, callbacks in order, buffers that act."""

from __future__ import annotations

import pickle
import re
import sys
from collections import deque
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from forms import register_form

import legged_envs
from legged_envs.compat.legged_gym import (
    LeggedRobot,
    LeggedRobotCfg,
    ObsBuf,
    task_registry,
)
from legged_envs.envs.changes import RENAMED_REWARDS
from legged_envs.mdp import rewards
from legged_envs.robots import GO2

N = 4


class Cfg(LeggedRobotCfg):
    class env(LeggedRobotCfg.env):
        num_envs = N

    class asset(LeggedRobotCfg.asset):
        name = "go2"

    class rewards(LeggedRobotCfg.rewards):
        class scales(LeggedRobotCfg.rewards.scales):
            tracking_lin_vel = 1.0


CALLBACKS = (
    *(
        "_pre_sim_step",
        "post_physics_step",
        "_post_physics_step_callback",
        "_resample_commands",
        "check_termination",
    ),
    *(
        "compute_reward",
        "reset_idx",
        "_update_terrain_curriculum",
        "_update_command_curriculum",
        "_reset_dofs",
    ),
    *(
        "_reset_root_states",
        "compute_observations",
        "_draw_debug_vis",
        "_init_buffers",
        "_prepare_reward_function",
    ),
)


class Logged(LeggedRobot):
    """Logs the calls of every callback."""


def _logged(name: str) -> Any:
    def method(self: Any, *args: Any) -> Any:
        vars(self).setdefault("calls", []).append(name)
        return getattr(super(Logged, self), name)(*args)

    return method


for _name in CALLBACKS:
    setattr(Logged, _name, _logged(_name))


class History(LeggedRobot):
    """Keeps a history of observations, and ends episodes by itself."""

    def _init_buffers(self) -> None:
        super()._init_buffers()
        self.history = deque(
            (torch.zeros(self.num_envs, 48, device=self.device) for _ in range(3)), maxlen=3
        )
        self.levels = [0.0, 1.0]
        self.ends_at = 4

    def compute_observations(self) -> None:
        super().compute_observations()
        self.history.append(self.obs_buf)
        self.obs_buf = torch.cat(tuple(self.history), dim=-1)

    def reset_idx(self, env_ids: torch.Tensor) -> None:
        super().reset_idx(env_ids)
        self.levels[1] += 1.0
        for past in self.history:
            past[env_ids] *= 0.0
        self.extras["episode"]["level"] = self.levels[1]

    def check_termination(self) -> None:
        super().check_termination()
        self.fail_buf += self.episode_length_buf >= self.ends_at + torch.arange(self.num_envs)
        self.reset_buf = (self.fail_buf > 0.1 / self.dt) | self.time_out_buf


class HistoryCfg(Cfg):
    class env(Cfg.env):
        num_observations = 144


legged_envs.register("Test/LeggedRobot-v0", LeggedRobot, Cfg)
legged_envs.register("Test/History-v0", History, HistoryCfg)
legged_envs.register("Test/Spoilt-v0", "test_legged_robot:Spoilt", Cfg)


def changed(cls: type = Cfg, **values: Any) -> Any:
    """A configuration with values at ``section__field``."""
    cfg = cls()
    for path, value in values.items():
        *sections, field = path.split("__")
        node = cfg
        for section in sections:
            node = getattr(node, section)
        setattr(node, field, value)
    return cfg


def make(cls: type = LeggedRobot, cfg: type = Cfg, **values: Any) -> Any:
    robot = cls(changed(cfg, **values), {}, "cpu", True)
    robot.reset(seed=0)
    return robot


@pytest.fixture(scope="module")
def example() -> Any:
    register_form("legged_robot")
    return sys.modules["go2_flat_legged_robot"]


def test_the_example_is_the_manager_form_bit_for_bit(
    example: Any, make_vec: Any, assert_same: Any
) -> None:
    own = {"domain_rand.push_interval_s": (0.2, 0.6), "commands.resampling_time": 0.5}
    ours = {
        "advance_first": True,
        "events.push.interval_s": (0.2, 0.6),
        "commands.velocity.resampling_time_s": (0.5, 0.5),
    }
    one = make_vec(
        24, "Example/Go2-Flat-LeggedRobot-v0", observations="dict", cfg=own, statistics=False
    )
    other = make_vec(24, observations="dict", cfg=ours, statistics=False)
    assert one.unwrapped.cost_names == other.unwrapped.cost_names
    assert one.unwrapped.cost_limits == other.unwrapped.cost_limits
    assert_same(one.reset(seed=1)[0], other.reset(seed=1)[0])
    # LeggedGym-Ex's names, which were this package's names too.
    legged_names = {f"reward/{new}": f"reward/{old}" for old, new in RENAMED_REWARDS.items()}
    rng, ends = np.random.default_rng(0), 0
    for t in range(300):
        action = (rng.uniform(-1, 1, (24, 12)) * (1.5 if t % 100 > 40 else 0.3)).astype(np.float32)
        step, expected = one.step(action), other.step(action)
        assert_same(step[:4], expected[:4], f"step {t}")
        log, logged = step[4].pop("log", {}), expected[4].pop("log", {})
        assert_same(
            {name: log[legged_names.get(name, name)] for name in logged}, logged, f"step {t}"
        )
        assert_same(step[4], expected[4], f"step {t}")
        ends += int((step[2] | step[3]).sum())
    assert ends > 18


def test_callbacks_are_called_in_the_documented_order() -> None:
    robot = Logged(
        changed(env__debug=True, terrain__curriculum=True, commands__curriculum=True),
        {},
        "cpu",
        True,
    )
    assert robot.calls[:2] == ["_init_buffers", "_prepare_reward_function"]
    robot.calls.clear()
    robot.reset(seed=0)
    # Once before the rewards are tried, which may read what it sets.
    assert robot.calls.pop(0) == "_post_physics_step_callback"
    reset = [
        "reset_idx",
        "_update_terrain_curriculum",
        "_update_command_curriculum",
        "_resample_commands",
    ]
    reset += ["_reset_dofs", "_reset_root_states", "compute_observations"]
    assert robot.calls == reset
    robot.calls.clear()
    robot.step(torch.zeros(N, 12))
    step = [
        "_pre_sim_step",
        "post_physics_step",
        "_post_physics_step_callback",
        "check_termination",
        "compute_reward",
    ]
    step += ["compute_observations", "_draw_debug_vis"]
    assert robot.calls == step
    robot.calls.clear()
    robot.episode_length_buf[:2] = 10_000
    robot.step(torch.zeros(N, 12))
    assert robot.calls == step + [name for name in reset if name != "_update_command_curriculum"]


def test_step_and_reset_return_the_legacy_tuples() -> None:
    robot = make(env__num_privileged_obs=67)
    obs, privileged = robot.reset()
    assert obs.shape == (N, 48)
    assert privileged.shape == (N, 67)
    robot.episode_length_buf[1] = 10_000
    obs, privileged, reward, done, extras = robot.step(torch.zeros(N, 12))
    assert done.tolist() == [False, True, False, False]
    assert extras["time_outs"].tolist() == done.tolist()
    assert "rew_tracking_lin_vel" in extras["episode"]
    assert extras["cost"].shape == reward.shape == (N,)
    assert torch.equal(obs, robot.get_observations()[0])
    assert not torch.equal(extras["final_obs"]["policy"][1], obs[1])
    assert torch.equal(privileged, robot.privileged_obs_buf)
    assert not robot.step(torch.zeros(N, 12))[4]["time_outs"].any()
    assert make().step(torch.zeros(N, 12))[1] is None


def test_default_observations_are_the_documented_parts() -> None:
    robot = make(noise__add_noise=False, env__num_privileged_obs=67)
    for _ in range(3):
        obs, privileged, *_ = robot.step(torch.rand(N, 12))
    sim = robot.simulator
    parts = [
        sim.base_lin_vel,
        sim.projected_gravity,
        sim.base_ang_vel * 0.25,
        robot.commands[:, :3] * robot.commands_scale,
    ]
    parts += [sim.dof_pos - sim.default_dof_pos, sim.dof_vel * 0.05, robot.actions]
    torch.testing.assert_close(obs, torch.cat(parts, 1))
    parts += [robot.last_actions, sim._friction_values, sim._added_base_mass, sim._base_com_bias]
    torch.testing.assert_close(privileged, torch.cat([*parts, sim._rand_push_vels[:, :2]], 1))


@pytest.mark.parametrize("override", [False, True])
def test_noise_is_within_its_scales(override: bool) -> None:
    class Own(LeggedRobot):
        def _get_noise_scale_vec(self) -> torch.Tensor:
            return torch.full((48,), 0.3) * self.cfg.noise.noise_level

    robot, clean = make(Own if override else LeggedRobot), make(noise__add_noise=False)
    difference = torch.stack(
        [robot.step(torch.zeros(N, 12))[0] - clean.step(torch.zeros(N, 12))[0] for _ in range(50)]
    )
    largest, scale = difference.abs().amax((0, 1)), robot.noise_scale_vec
    assert (largest <= scale + 1e-6).all()
    assert (largest >= 0.8 * scale).all()
    expected = torch.cat(
        [
            torch.full((n,), v)
            for n, v in ((3, 0.1), (3, 0.05), (3, 0.05), (3, 0), (12, 0.01), (12, 0.025), (12, 0))
        ]
    )
    torch.testing.assert_close(scale, torch.full((48,), 0.3) if override else expected)


def test_built_in_rewards_are_methods_and_scales_times_dt_are_summed() -> None:
    scales = {
        "tracking_lin_vel": 1.0,
        "torques": -1e-3,
        "termination": -5.0,
        "dof_vel": 0.0,
        "keep_balance": 0.5,
    }
    robot = make(
        **{f"rewards__scales__{name}": scale for name, scale in scales.items()},
        rewards__tracking_sigma=0.5,
    )
    assert robot.reward_names == ["tracking_lin_vel", "torques", "keep_balance"]
    assert set(robot.reward_scales) == {*robot.reward_names, "termination"}
    sums = torch.zeros(N)
    for _ in range(4):
        reward = robot.step(torch.rand(N, 12))[2]
        each = {
            name: getattr(robot, f"_reward_{name}")() * robot.reward_scales[name]
            for name in robot.reward_names
        }
        torch.testing.assert_close(reward, sum(each.values()).clamp_min(0.0))
        sums += each["torques"]
    torch.testing.assert_close(robot.episode_sums["torques"], sums)
    error = (robot.commands[:, :2] - robot.simulator.base_lin_vel[:, :2]).square().sum(1)
    torch.testing.assert_close(robot._reward_tracking_lin_vel(), torch.exp(-error / 0.5))
    assert robot.dt == pytest.approx(0.02)
    assert robot.reward_scales["termination"] == pytest.approx(-0.1)


def test_termination_is_added_after_the_floor() -> None:
    class Falls(LeggedRobot):
        def check_termination(self) -> None:
            super().check_termination()
            self.reset_buf = torch.ones_like(self.reset_buf)

    reward = make(Falls, rewards__scales__termination=-5.0).step(torch.zeros(N, 12))[2]
    assert ((reward <= -0.1 + 0.02) & (reward >= -0.1)).all()


def test_own_rewards_override_built_in_ones_and_super_works() -> None:
    class Own(LeggedRobot):
        def _reward_lin_vel_z(self) -> torch.Tensor:
            return super()._reward_lin_vel_z() * 2.0

        def _reward_upright(self) -> torch.Tensor:
            return self.simulator.projected_gravity[:, 2].square()

        def _reward_moving(self) -> torch.Tensor:
            return self.commands[:, 0].abs() > 0.1

    scales = {"lin_vel_z": 1.0, "upright": 2.0, "moving": 1.0, "tracking_lin_vel": 0.0}
    robot = make(Own, **{f"rewards__scales__{name}": scale for name, scale in scales.items()})
    for _ in range(3):
        reward = robot.step(torch.rand(N, 12))[2]
        sim = robot.simulator
        expected = (
            sim.base_lin_vel[:, 2].square() * 2
            + 2 * sim.projected_gravity[:, 2] ** 2
            + (robot.commands[:, 0].abs() > 0.1)
        )
        torch.testing.assert_close(reward, expected * 0.02)


def test_commands_that_are_written_act() -> None:
    class Own(LeggedRobot):
        def _resample_commands(self, env_ids: torch.Tensor) -> None:
            self.commands[env_ids, 0] = 0.7
            self.commands[env_ids, 3] = 1.0

    values = {"rewards__scales__dof_vel_stand_still": 1.0, "rewards__scales__tracking_lin_vel": 0.0}
    robot = make(Own, commands__resampling_time=0.1, noise__add_noise=False, **values)
    assert (robot.get_observations()[0][:, 9] == 0.7).all()
    turn = 0.5 * (1.0 - robot.robot.heading())
    torch.testing.assert_close(robot.commands[:, 2], turn.clamp(-1.0, 1.0))
    robot.commands[:] = 0.0
    assert (robot.step(torch.rand(N, 12))[2] > 0.0).all()  # the stand-still term sees that
    for _ in range(5):
        robot.step(torch.zeros(N, 12))
    assert (robot.commands[:, 0] == 0.7).all()  # resampled again after 0.1 s


def test_command_ranges_act_and_the_curriculum_widens_them() -> None:
    robot = make(
        commands__curriculum=True,
        commands__max_curriculum=1.5,
        commands__ranges__lin_vel_x=[-0.5, 0.5],
    )
    robot.episode_sums["tracking_lin_vel"] += 1000.0
    robot._update_command_curriculum(torch.arange(N))
    assert robot.command_ranges["lin_vel_x"] == [-1.0, 1.0]
    robot.command_ranges["lin_vel_x"] = [1.2, 1.3]
    robot.episode_sums["tracking_lin_vel"].zero_()
    robot.reset_idx(torch.tensor([0, 2]))
    assert ((robot.commands[:, 0] > 1.1) == torch.tensor([True, False, True, False])).all()


@pytest.mark.parametrize("mode", gym.vector.AutoresetMode)
def test_the_command_curriculum_acts_in_every_autoreset_mode(mode: Any) -> None:
    cfg = changed(
        commands__curriculum=True,
        commands__curriculum_threshold=-1.0,  # every mean is enough
        commands__max_curriculum=3.0,
        commands__ranges__lin_vel_x=[-0.5, 0.5],
        env__episode_length_s=0.2,
    )
    env = gym.make_vec("Test/LeggedRobot-v0", num_envs=N, cfg=cfg, autoreset_mode=mode)
    env.reset(seed=0)
    before = list(env.unwrapped.task.user.command_ranges["lin_vel_x"])
    for _ in range(12):
        _, _, ended, late, _ = env.step(np.zeros((N, 12), np.float32))
        if mode is gym.vector.AutoresetMode.DISABLED and (ended | late).any():
            env.reset(options={"reset_mask": ended | late})
    after = env.unwrapped.task.user.command_ranges["lin_vel_x"]
    env.close()
    assert after == [before[0] - 0.5, before[1] + 0.5]


def test_stand_still_is_that_of_legged_gym() -> None:
    robot = make(rewards__scales__stand_still=-1.0)
    robot.step(torch.rand(N, 12))
    robot.commands[:] = torch.tensor([0.09, 0.0, 1.0, 0.0])
    robot.commands[1, :2] = 0.08  # 0.11 m/s
    q = robot.simulator.dof_pos.double() - robot.simulator.default_dof_pos.double()
    expected = q.abs().sum(1) * torch.tensor([1.0, 0.0, 1.0, 1.0])
    assert expected[0] > 0.05
    torch.testing.assert_close(robot._reward_stand_still().double(), expected)


class KeepsHistory(LeggedRobot):
    """Keeps the actions as LeggedGym-Ex's ``_pre_sim_step`` does, and velocities as legged_gym."""

    def _pre_sim_step(self, actions: torch.Tensor) -> torch.Tensor:
        actions = actions.clamp(-100.0, 100.0)
        self.llast_actions[:] = self.last_actions[:]
        self.last_actions[:] = self.actions[:]
        self.actions[:] = actions[:]
        return actions

    def post_physics_step(self) -> None:
        super().post_physics_step()
        self.last_actions[:] = self.actions[:]
        self.simulator.last_dof_vel[:] = self.simulator.dof_vel[:]


def test_a_task_that_keeps_the_history_of_actions_itself_has_the_same_rewards() -> None:
    scales = {"action_rate": -0.1, "action_smoothness": -0.1, "dof_acc": -1e-6}
    options = {f"rewards__scales__{name}": scale for name, scale in scales.items()}
    own, usual = make(KeepsHistory, **options), make(**options)
    given = [torch.zeros(N, 12), torch.zeros(N, 12)]
    for _ in range(5):
        given.append(torch.randn(N, 12))
        rewards = own.step(given[-1])[2], usual.step(given[-1])[2]
        assert torch.equal(*rewards)
        smoothness = (given[-1] - 2 * given[-2] + given[-3]).square().sum(1)
        torch.testing.assert_close(own._reward_action_smoothness(), smoothness)


def test_limits_of_joints_are_the_soft_ones_of_leggedgym_ex() -> None:
    simulator = make(rewards__soft_dof_pos_limit=0.6).simulator
    hard = simulator.core.robot.joint_pos_limits.double()
    middle, span = hard.mean(1), hard[:, 1] - hard[:, 0]
    expected = torch.stack((middle - 0.3 * span, middle + 0.3 * span), 1)
    torch.testing.assert_close(simulator.dof_pos_limits.double(), expected, atol=1e-6, rtol=0)


class Phases(LeggedRobot):
    """As the G1 of unitree_rl_gym: rewards and observations read what a callback of the step sets."""

    def _post_physics_step_callback(self) -> None:
        self.phase = (self.episode_length_buf * self.dt) % 0.8 / 0.8
        super()._post_physics_step_callback()

    def check_termination(self) -> None:
        forces = self.simulator.link_contact_forces
        touches = forces[:, self.simulator.termination_contact_indices].norm(dim=-1) > 10.0
        self.time_out_buf = self.episode_length_buf > self.max_episode_length
        self.reset_buf = touches.any(1) | self.time_out_buf

    def compute_reward(self) -> None:
        self.rew_buf[:] = 0.0
        for name, function in zip(self.reward_names, self.reward_functions, strict=True):
            reward = function() * self.reward_scales[name]
            self.rew_buf += reward
            self.episode_sums[name] += reward

    def compute_observations(self) -> None:
        super().compute_observations()
        self.obs_buf = torch.cat((self.obs_buf, self.phase[:, None]), dim=1)

    def _reset_root_states(self, env_ids: torch.Tensor) -> None:
        pos = self.simulator.base_init_pos.repeat(len(env_ids), 1)
        zeros = torch.zeros(len(env_ids), 3)
        quat = self.simulator.base_init_quat.repeat(len(env_ids), 1)
        self.simulator.reset_root_states(env_ids, pos, quat, zeros, zeros)

    def _reward_alive(self) -> float:
        return 1.0

    def _reward_stance(self) -> torch.Tensor:
        return self.phase < 0.55


def test_a_task_of_unitree_rl_gyms_kind_runs_as_it_is() -> None:
    scales = {"rewards__scales__alive": 0.5, "rewards__scales__stance": 1.0}
    robot = make(Phases, env__num_observations=49, rewards__scales__torques=-1e-5, **scales)
    assert robot.simulator.base_pos[0].tolist() == pytest.approx([0, 0, GO2.base_height])
    names = [robot.core.sim.body_names[i] for i in robot.simulator.penalized_contact_indices]
    assert names == [*GO2.penalized_bodies]
    for t in range(1, 4):
        obs, _, reward, *_ = robot.step(torch.zeros(N, 12))
        assert obs[:, -1].tolist() == pytest.approx([0.02 * t / 0.8] * N)
        assert robot.reward_names == ["tracking_lin_vel", "torques", "alive", "stance"]
        tracking = robot._reward_tracking_lin_vel()
        torques = robot.simulator.torques.square().sum(1)
        torch.testing.assert_close(reward, 0.02 * (tracking + 1.5 - 1e-5 * torques))


def test_pushes_of_the_simulator_are_those_of_the_configuration() -> None:
    pushed, still = make(domain_rand__max_push_vel_xy=0.7), make(domain_rand__push_robots=False)
    for robot in (pushed, still):
        robot.simulator.push_robots()
    change = pushed.core.robot.root_lin_vel_w - still.core.robot.root_lin_vel_w
    assert (change[:, :2].abs() <= 0.7).all() and (change[:, :2] != 0.0).all()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("terrain__static_friction", 0.2),
        ("terrain__restitution", 0.5),
        ("domain_rand__randomize_restitution", True),
        ("init_state__lin_vel", (1.0, 0.0, 0.0)),
    ],
)
def test_physics_that_this_simulator_has_not_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"cfg\.{field.replace('__', '.')} = .* not supported"):
        make(**{field: value})
    make(init_state__lin_vel=(0.0, 0.0, 0.0), terrain__static_friction=1.0)


def test_fields_of_an_asset_without_effect_are_named() -> None:
    cfg = changed(asset__file="go2.urdf", asset__dof_armature=[0.01] * 12)
    with pytest.warns(UserWarning, match=r"cfg\.asset\.(file|dof_armature) has no effect") as seen:
        LeggedRobot(cfg, {}, "cpu", True)
    assert len(seen) == 2


def test_fail_buf_counts_steps_in_succession_also_of_a_subclass() -> None:
    class Fails(LeggedRobot):
        when = (1, 2, 4, 5, 6, 7, 8, 9, 10)

        def check_termination(self) -> None:
            super().check_termination()
            self.fail_buf += int(self.episode_length_buf[0]) in self.when
            self.reset_buf = (
                self.fail_buf > self.cfg.env.fail_to_terminal_time_s / self.dt
            ) | self.time_out_buf

    robot = make(Fails)
    counts = []
    for _ in range(8):
        robot.step(torch.zeros(N, 12))
        counts.append(int(robot.fail_buf[0]))
    assert counts == [1, 2, 2, 1, 2, 3, 4, 5]
    assert robot.step(torch.zeros(N, 12))[3].all()
    assert (robot.fail_buf == 0).all()


def test_the_simulator_speaks_leggedgyms_words() -> None:
    robot = make(init_state__pos=[0.0, 0.0, 0.5], init_state__dof_pos_random_scale=0.0)
    sim, state = robot.simulator, robot.robot
    assert torch.equal(sim.base_quat, state.root_quat_w[:, [1, 2, 3, 0]])
    assert torch.equal(sim.base_lin_vel, state.lin_vel_b)
    torch.testing.assert_close(sim.base_pos[:, 2], torch.full((N,), 0.5))
    assert torch.equal(sim.dof_pos, robot.simulator.default_dof_pos.expand(N, -1))
    assert sim.link_contact_forces[:, sim.feet_indices].shape == sim.feet_pos.shape
    pos, quat = torch.tensor([[0.1, 0.2, 0.9]]), torch.tensor([[0.0, 0.0, 2**-0.5, 2**-0.5]])
    sim.reset_root_states(
        torch.tensor([1]), pos, quat, torch.tensor([[1.0, 0, 0]]), torch.tensor([[1.0, 0, 0]])
    )
    robot.core.sim.forward(torch.tensor([1]))
    robot.robot.refresh(torch.tensor([1]))
    torch.testing.assert_close(
        sim.base_lin_vel[1], torch.tensor([0.0, -1.0, 0.0]), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(
        sim.base_ang_vel[1], torch.tensor([0.0, -1.0, 0.0]), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(
        sim.base_euler[1], torch.tensor([0.0, 0.0, torch.pi / 2]), atol=1e-6, rtol=0
    )
    with pytest.raises(AttributeError, match="base_qat"):
        _ = sim.base_qat


@pytest.mark.parametrize("kind", ["P", "V", "T"])
def test_control_types_and_gains(kind: str) -> None:
    gains = {"stiffness": {"hip": 30.0, "thigh": 25.0, "calf": 20.0}, "damping": {"joint": 0.7}}
    robot = make(
        control__control_type=kind,
        control__action_scale=0.5,
        **{f"control__{k}": v for k, v in gains.items()},
    )
    action = torch.rand(N, 12)
    robot.core.robot.read()
    position, velocity = robot.simulator.dof_pos.clone(), robot.simulator.dof_vel.clone()
    kp = torch.tensor([30.0, 25.0, 20.0]).repeat(4)
    expected = {
        "P": kp * (0.5 * action + robot.simulator.default_dof_pos - position) - 0.7 * velocity,
        "V": kp * (0.5 * action - velocity),
    }
    expected["T"] = 0.5 * action
    limit = robot.simulator.torque_limits
    robot.core.sim.set_joint_targets(robot.core.actions.process(action))
    robot.core.sim.step(1)
    torch.testing.assert_close(
        robot.core.sim.joint_torque, expected[kind].clamp(-limit, limit), atol=1e-3, rtol=1e-3
    )


def test_actions_are_clipped_to_the_configured_range() -> None:
    robot = make(normalization__clip_actions=3.0)
    robot.step(torch.full((N, 12), 7.0))
    assert (robot.actions == 3.0).all()
    robot.step(torch.full((N, 12), 2.0))
    assert (robot.actions == 2.0).all()
    assert (robot.last_actions == 3.0).all()
    assert (robot.last_last_actions == 0.0).all()


def test_get_costs_is_the_cost_channel(make_vec: Any) -> None:
    class Costs(LeggedRobot):
        def _get_costs(self) -> dict[str, torch.Tensor]:
            return {"fast": self.simulator.dof_vel.abs().amax(1)}

    limits = {"costs__limits__fast": 3.0, "costs__limits__body_contact": 0.025}
    robot = make(Costs, **limits)
    extras = robot.step(torch.rand(N, 12))[4]
    assert robot.core.cost_names == ("fast", "body_contact")
    assert robot.core.cost_limits == (3.0, 0.025)
    torch.testing.assert_close(extras["costs"][:, 0], robot.simulator.dof_vel.abs().amax(1))


@pytest.mark.parametrize("task", ["Test/LeggedRobot-v0", "Test/History-v0"])
def test_states_and_pickles_continue_bit_for_bit(
    task: str, make_vec: Any, assert_same: Any
) -> None:
    env = make_vec(N, task, cfg={"commands.resampling_time": 0.2, "commands.curriculum": True})
    env.reset(seed=3)
    actions = [
        np.random.default_rng(t).uniform(-1, 1, (N, 12)).astype(np.float32) for t in range(30)
    ]
    for action in actions[:12]:
        env.step(action)
    core = env.unwrapped
    state, twin = core.get_state(), pickle.loads(pickle.dumps(core))
    ids = np.array([True, False, True, False])
    runs = []
    for each in (core, twin, core):
        if each is core and runs:
            each.set_state(state)
        run = []
        for t, action in enumerate(actions[12:]):
            run.append(each.step(action))
            if t == 7:
                run.append(each.reset(options={"reset_mask": ids}))
        runs.append(run)
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])
    twin.close()


def test_a_masked_reset_leaves_the_others_and_their_history_alone(
    make_vec: Any, assert_same: Any
) -> None:
    one, other = (
        make_vec(N, "Test/History-v0", autoreset_mode="Disabled").unwrapped for _ in range(2)
    )
    for env in (one, other):
        env.reset(seed=3)
        for _ in range(3):
            env.step(np.zeros((N, 12), np.float32))
    one.reset(options={"reset_mask": np.array([True, False, False, True])})
    for _ in range(3):
        a, b = (env.step(np.zeros((N, 12), np.float32)) for env in (one, other))
        assert_same(a[0][1:3], b[0][1:3])
        assert not np.array_equal(a[0][0], b[0][0])


def test_environment_i_does_the_same_whatever_num_envs_is(make_vec: Any, assert_same: Any) -> None:
    few, many = (
        make_vec(n, "Test/LeggedRobot-v0", cfg={"commands.resampling_time": 0.1}) for n in (2, 5)
    )
    assert_same(few.reset(seed=5)[0], many.reset(seed=5)[0][:2])
    for _ in range(20):
        assert_same(
            few.step(np.ones((2, 12), np.float32))[0],
            many.step(np.ones((5, 12), np.float32))[0][:2],
        )


def test_the_task_registry_makes_and_registers() -> None:
    task_registry.register("mine", LeggedRobot, Cfg(), "train")
    env, cfg = task_registry.make_env("mine", type("Args", (), {})())
    assert (env.num_envs, cfg.env.num_envs) == (N, N)
    assert task_registry.get_cfgs("mine")[1] == "train"
    assert gym.make("LeggedGym/mine-v0").reset(seed=0)[0].shape == (48,)
    with pytest.raises(KeyError, match="mime"):
        task_registry.make_env("mime")


def test_the_camera_looks_where_it_is_told() -> None:
    robot = make(viewer__pos=[2.0, 0.0, 1.0])
    assert robot.core.cfg.viewer.eye == [2.0, 0.0, 1.0]
    robot.set_viewer_camera(np.array([3.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.5]))
    assert (robot.core.sim.viewer.eye, robot.core.sim.viewer.lookat) == (
        (3.0, 0.0, 1.0),
        (0.0, 0.0, 0.5),
    )


SPOIL: dict[str, Any] = {
    "nan": lambda value: value.index_fill(0, torch.tensor([1]), torch.nan),
    "inf": lambda value: value.index_fill(0, torch.tensor([1]), torch.inf),
    "float64": torch.Tensor.double,
    "shape": lambda value: value[:3],
    "none": lambda value: None,
}
"""Ways in which a user's method spoils a correct result."""


class Spoilt(LeggedRobot):
    """Spoils what one of its methods gives, from some moment on."""

    spoil: Any = (None, None)

    def spoilt(self, name: str, value: Any) -> Any:
        return SPOIL[self.spoil[1]](value) if name == self.spoil[0] else value

    def _pre_sim_step(self, actions: torch.Tensor) -> torch.Tensor:
        return self.spoilt("_pre_sim_step", super()._pre_sim_step(actions))

    def compute_reward(self) -> None:
        super().compute_reward()
        self.rew_buf = self.spoilt("rew_buf", self.rew_buf)

    def compute_observations(self) -> None:
        super().compute_observations()
        self.obs_buf = self.spoilt("obs_buf", self.obs_buf)
        self.privileged_obs_buf = self.spoilt("privileged_obs_buf", self.privileged_obs_buf)


OF_BUFFERS = {"rew_buf": "compute_reward"} | dict.fromkeys(
    ("obs_buf", "privileged_obs_buf"), "compute_observations"
)


@pytest.mark.parametrize("how", SPOIL)
@pytest.mark.parametrize("name", ["_pre_sim_step", *OF_BUFFERS])
def test_a_spoilt_result_is_named_in_the_step_in_which_it_occurs(
    name: str, how: str, make_vec: Any
) -> None:
    cfg = {"env.num_privileged_obs": 67}
    env = make_vec(
        N, "Test/Spoilt-v0", cfg=cfg, array="torch"
    )  # the policy's observations alone are shown
    env.reset(seed=0)
    env.step(torch.zeros(N, 12))
    env.unwrapped.task.user.spoil = (name, how)
    wrong = r"\[1\]" if how in ("nan", "inf") else r"float32.*(None|torch.float.. \([34],)"
    with pytest.raises(ValueError, match=rf"Spoilt\.{OF_BUFFERS.get(name, name)} .*{wrong}"):
        env.step(torch.zeros(N, 12))


@pytest.mark.usefixtures("log_elsewhere")
def test_what_is_not_finite_after_bad_physics_is_excepted(make_vec: Any) -> None:
    env = make_vec(N, "Test/Spoilt-v0", array="torch")
    env.reset(seed=0)
    env.unwrapped.sim.write_joint_state(
        torch.tensor([1]), torch.full((1, 12), torch.nan), torch.zeros(1, 12)
    )
    env.unwrapped.task.user.spoil = ("rew_buf", "nan")
    reward, terminated = env.step(torch.zeros(N, 12))[1:3]
    assert terminated.tolist() == [False, True, False, False]
    assert reward.isfinite().all()


class NoShape(LeggedRobot):
    def _reward_wide(self) -> torch.Tensor:
        return torch.zeros(self.num_envs, 1)


class DoubleReward(LeggedRobot):
    def _reward_double(self) -> torch.Tensor:
        return torch.zeros(self.num_envs, dtype=torch.float64)


class ShortObservation(LeggedRobot):
    def compute_observations(self) -> None:
        super().compute_observations()
        self.obs_buf = self.obs_buf[:, :40]


class Missing(LeggedRobot):
    def _get_costs(self) -> dict[str, torch.Tensor]:
        return {"one": torch.zeros(self.num_envs)}


class WideCost(LeggedRobot):
    def _get_costs(self) -> dict[str, torch.Tensor]:
        return {"one": torch.zeros(self.num_envs, 2)}


class WideTimeOut(LeggedRobot):
    def check_termination(self) -> None:
        super().check_termination()
        self.time_out_buf = torch.zeros(self.num_envs, 1)


BAD = {
    "cost shape": (
        WideCost,
        {"costs__limits__one": 1.0},
        r"WideCost\._get_costs.*\(4,\).*\(4, 2\)",
    ),
    "time-out": (
        WideTimeOut,
        {},
        r"WideTimeOut\.check_termination.*time_out_buf.*\(4,\)",
    ),
    "no scales": (
        LeggedRobot,
        {"rewards__scales__tracking_lin_vel": 0.0},
        r"cfg\.rewards\.scales",
    ),
    "no method": (
        LeggedRobot,
        {"rewards__scales__torque": -1.0},
        "LeggedRobot.*'torque'.*'torques'",
    ),
    "shape": (
        NoShape,
        {"rewards__scales__wide": 1.0},
        r"NoShape\._reward_wide.*\(4,\)",
    ),
    "observations": (
        ShortObservation,
        {},
        r"ShortObservation\.compute_observations .*num_observations.*\(4, 40\)",
    ),
    "size": (
        LeggedRobot,
        {"env__num_observations": 45},
        r"compute_observations .*\(4, 45\).*\(4, 48\)",
    ),
    "actions": (LeggedRobot, {"env__num_actions": 10}, "num_actions.*12"),
    "field": (LeggedRobot, {"rewards__tracking_sigmas": 1.0}, "'tracking_sigma'"),
    "section": (LeggedRobot, {"reward": 1.0}, "'rewards'"),
    "terrain": (
        LeggedRobot,
        {"terrain__selected": True},
        r"cfg\.terrain\.selected.*True",
    ),
    "robot": (LeggedRobot, {"asset__name": "go3"}, "'go3'.*'go2'"),
    "gain": (
        LeggedRobot,
        {"control__stiffness": {"hip": 1.0}},
        r"cfg\.control\.stiffness.*'FR_thigh_joint'",
    ),
    "control": (LeggedRobot, {"control__control_type": "X"}, "control_type.*'X'"),
    "costs": (Missing, {}, r"Missing\._get_costs.*cfg\.costs\.limits.*'one'"),
    "ranges": (
        LeggedRobot,
        {"domain_rand__com_pos_z_range": (0.0, 0.1)},
        "com_pos_x_range, com_pos_y_range, com_pos_z_range",
    ),
    "roll": (
        LeggedRobot,
        {"init_state__roll_random_scale": 0.1},
        "roll_random_scale.*0.1",
    ),
    "rot": (LeggedRobot, {"init_state__rot": [0.0, 0.0, 1.0, 0.0]}, r"init_state\.rot"),
    "reward's parameter": (
        LeggedRobot,
        {"rewards__params__feet_air_tim": {}},
        r"cfg\.rewards\.params.*'feet_air_tim'.*'feet_air_time'",
    ),
    "cost's parameter": (
        LeggedRobot,
        {"costs__params__foot_slp": {}},
        "'foot_slp'.*'foot_slip'",
    ),
    "noise scale": (LeggedRobot, {"noise__noise_scales__dof_po": 0.1}, "'dof_pos'"),
    "observation scale": (
        LeggedRobot,
        {"normalization__obs_scales__lin_vle": 0.1},
        "'lin_vel'",
    ),
    "short": (LeggedRobot, {"asset__nam": "go2"}, "'nam'.*'name'"),
    "short section": (LeggedRobot, {"cost": 1.0}, "'cost'.*'costs'"),
    "gains of velocities": (
        LeggedRobot,
        {"control__control_type": "V"},
        r"cfg\.control\.stiffness",
    ),
    "float64": (
        DoubleReward,
        {"rewards__scales__double": 1.0},
        r"DoubleReward\._reward_double.*float32",
    ),
    "removed": (
        LeggedRobot,
        {"control": None},
        r"cfg\.control.*None",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_when_the_environment_is_made(name: str) -> None:
    cls, values, message = BAD[name]
    with pytest.raises((ValueError, TypeError), match=message):
        cls(changed(**values), {}, "cpu", True).core.build()


def test_a_wrong_configuration_or_action_is_named() -> None:
    with pytest.raises(TypeError, match="LeggedRobotCfg"):
        LeggedRobot({}, {}, "cpu", True)  # type: ignore[arg-type]
    robot = make()
    with pytest.raises(ValueError, match="actions"):
        robot.step(torch.zeros(N, 10))


def test_a_plain_nested_class_takes_the_rest_from_the_base() -> None:
    class MyCfg(LeggedRobotCfg):
        class asset:
            name = "go2"

        class rewards:
            class scales:
                tracking_lin_vel = 1.0

    cfg = MyCfg()
    assert (cfg.rewards.tracking_sigma, cfg.asset.dof_names) == (0.25, None)
    cfg.rewards.scales.tracking_lin_vel = 3.0
    assert MyCfg().rewards.scales.tracking_lin_vel == 1.0
    assert cfg.commands.ranges is not LeggedRobotCfg().commands.ranges


class Parent(Cfg):
    class rewards(Cfg.rewards):
        tracking_sigma = 0.5

        class scales(Cfg.rewards.scales):
            torques = -1.0

        class own:
            period = 0.5


def test_sections_have_what_their_python_classes_inherit() -> None:
    class Sibling(Parent):
        class rewards(LeggedRobotCfg.rewards):
            class scales(LeggedRobotCfg.rewards.scales):
                tracking_ang_vel = 1.0

    class Bare(Parent):
        class rewards:
            class scales:
                pass

    class Child(Parent):
        class rewards(Parent.rewards):
            class scales(Parent.rewards.scales):
                lin_vel_z = -2.0

    none = {"termination": 0.0, "tracking_lin_vel": 0.0, "tracking_ang_vel": 0.0}
    assert vars(Sibling().rewards.scales) == none | {"tracking_ang_vel": 1.0}
    assert (Sibling().rewards.tracking_sigma, hasattr(Sibling().rewards, "own")) == (0.25, False)
    assert vars(Bare().rewards.scales) == none
    with pytest.raises(ValueError, match=r"cfg\.rewards\.scales"):
        LeggedRobot(Bare(), {}, "cpu", True)
    assert vars(Child().rewards.scales) == none | {
        "tracking_lin_vel": 1.0,
        "torques": -1.0,
        "lin_vel_z": -2.0,
    }
    assert (Child().rewards.tracking_sigma, Child().rewards.own.period) == (0.5, 0.5)
    assert Child().asset.name == "go2"


def test_the_configuration_of_the_object_tells_what_was_made(make_vec: Any) -> None:
    task = make_vec(2, "Test/LeggedRobot-v0", cfg={"episode_length_s": 2.0}).unwrapped.task.user
    assert (task.cfg.env.num_envs, task.cfg.env.episode_length_s) == (2, 2.0)
    assert (task.max_episode_length_s, task.max_episode_length) == (2.0, 100)
    env = make_vec(2, "Test/LeggedRobot-v0", cfg={"env.episode_length_s": 0.1})
    env.reset(seed=0)
    assert [env.step(np.zeros((2, 12), np.float32))[3].tolist() for _ in range(5)] == [
        [False] * 2
    ] * 4 + [[True] * 2]


def test_what_the_simulator_knows_is_read_of_the_simulator() -> None:
    robot = make()
    assert robot.simulator.dof_names == list(robot.robot.sim.robot.joint_names)
    assert torch.equal(robot.simulator.dof_pos, robot.robot.joint_pos)
    with pytest.raises(AttributeError, match="dof_pos"):
        _ = robot.dof_pos


def test_first_poses_and_small_commands() -> None:
    robot = make(commands__ranges__lin_vel_x=[-0.1, 0.1], commands__ranges__lin_vel_y=[-0.1, 0.1])
    assert (robot.simulator.base_pos[:, :2] == 0.0).all()
    torch.testing.assert_close(robot.simulator.base_euler, torch.zeros(N, 3))
    assert (robot.commands[:, :2] == 0.0).all()
    assert (robot.commands[:, 2:].abs() > 0.01).any(0).all()  # turning and heading are kept


def test_scales_are_read_only_and_other_engines_are_named(make_vec: Any) -> None:
    with pytest.raises(TypeError):
        make().reward_scales["tracking_lin_vel"] = 2.0
    with pytest.raises(ValueError, match=r"'bullet'.*'mujoco', 'mujoco_warp', 'genesis'"):
        make_vec(2, "Test/LeggedRobot-v0", sim="bullet")


def test_feet_terms_are_those_of_the_package() -> None:
    scales = {"feet_air_time": 1.0, "feet_slip": -1.0, "foot_clearance": -1.0}
    params = {"rewards__params__foot_clearance": {"target": 0.06}}
    robot = make(**{f"rewards__scales__{name}": scale for name, scale in scales.items()}, **params)
    for _ in range(5):
        robot.step(torch.rand(N, 12))
    own = {"feet_air_time": {"target": 0.3}, "foot_clearance": {"target": 0.06}}
    for name in scales:
        term = getattr(rewards, RENAMED_REWARDS.get(name, name))
        expected = term(robot.core, **own.get(name, {}))
        assert torch.equal(getattr(robot, f"_reward_{name}")(), expected)


DOCS = Path(__file__).parents[3] / "docs/workflows/legged_robot.md"


def test_the_code_of_the_docs_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeggedRobotCfg.env, "num_envs", 2)
    code = (
        DOCS.read_text()
        .split("```python\n")[1]
        .split("```")[0]
        .replace("num_envs=1024", "num_envs=2")
    )
    made: dict[str, Any] = {}
    exec(code, made)
    assert made["obs"].shape == (2, 49)
    assert isinstance(made["obs"], ObsBuf)


def test_each_deviation_of_the_docs_names_a_test_of_this_file() -> None:
    text = DOCS.read_text().partition("## What differs")[2]
    rows = [row.strip("| ").split("|") for row in text.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 20
    variants = Path(__file__).with_name("test_variants.py").read_text()
    tests = {
        *globals(),
        *re.findall(r"def (test_\w+)", variants),
        *re.findall(
            r"def (test_\w+)",
            (Path(__file__).parents[1] / "isaac_lab" / "test_terrain.py").read_text(),
        ),
    }
    for row in rows:
        names = re.findall(r"`(test_\w+)", row[-1])
        assert names, row
        assert tests.issuperset(names), row


def test_an_own_field_that_a_method_reads_is_allowed() -> None:
    class Own(LeggedRobot):
        def _reward_tracking_lin_vel(self) -> torch.Tensor:
            return super()._reward_tracking_lin_vel() * self.cfg.rewards.my_factor

    make(Own, rewards__my_factor=2.0).close()


def test_a_caller_in_inference_mode_leaves_what_can_be_changed() -> None:
    robot = make()
    with torch.inference_mode():
        robot.core.commands.terms["velocity"].hold(torch.tensor([0.5, 0.0, 0.0]))
        robot.step(torch.zeros(N, 12))
    robot.commands[:, 0] = 0.1
    robot.step(torch.zeros(N, 12))
    assert (robot.commands[:, 0] == 0.1).all()


def test_an_evaluation_holds_a_command_and_sees_it_at_once(make_vec: Any) -> None:
    from legged_envs.evaluation.metrics.velocity import hold_velocity

    env = make_vec(
        N, "Test/History-v0", array="torch", observations="dict", cfg={"noise.add_noise": False}
    )
    observation, _ = env.reset(seed=0)
    hold_velocity(env.unwrapped, (0.3, 0.2, -0.1), observation)
    shown = observation["policy"][:, -48:][:, 9:12]
    torch.testing.assert_close(shown, torch.tensor([0.3, 0.2, -0.025]).expand(N, 3))


def test_armature_friction_and_damping_of_joints_are_drawn_once_for_each_robot() -> None:
    values = {}
    for name, span in {
        "armature": (0.11, 0.13),
        "friction": (0.0, 0.2),
        "damping": (1.4, 1.5),
    }.items():
        values[f"domain_rand__randomize_joint_{name}"] = True
        values[f"domain_rand__joint_{name}_range"] = list(span)
    robot = make(env__num_envs=16, **values)
    simulator = robot.simulator
    models = [simulator.core.sim.batch.get_model(env_id) for env_id in range(16)]
    fields = {"armature": "dof_armature", "friction": "dof_frictionloss", "damping": "dof_damping"}
    for name, field in fields.items():
        drawn = getattr(simulator, f"dr_joint_{name}")
        low, high = values[f"domain_rand__joint_{name}_range"]
        assert drawn.shape == (16, 1) and len(drawn.unique()) == 16
        assert low <= drawn.min() and drawn.max() <= high
        in_engine = torch.tensor(np.array([getattr(model, field)[6:] for model in models]))
        torch.testing.assert_close(in_engine.float(), drawn.expand(-1, 12))
    assert not make(env__num_envs=2).simulator.dr_joint_damping.any(), "what is not drawn is 0"


def test_swinging_feet_are_rewarded_as_leggedgym_ex_writes_it() -> None:
    robot = make(
        env__num_envs=4,
        rewards__foot_clearance_target=0.06,
        rewards__foot_height_offset=0.02,
        rewards__foot_clearance_tracking_sigma=0.02,
        rewards__max_contact_force=20.0,
        rewards__scales__foot_clearance=1.0,
        rewards__scales__foot_acc=-1e-3,
        rewards__scales__feet_contact_forces=-0.1,
    )
    simulator = robot.simulator
    previous = simulator.feet_vel
    for _ in range(6):
        previous = simulator.feet_vel.clone()
        robot.step(torch.randn(4, 12))
    speed = simulator.feet_vel[..., :2].norm(dim=-1)
    error = (simulator.feet_pos[..., 2] - 0.06 - 0.02).square()
    clearance = torch.exp(-(speed * error).sum(1) / 0.02)
    torch.testing.assert_close(robot._reward_foot_clearance(), clearance)
    acceleration = (simulator.feet_vel - previous) / robot.dt
    torch.testing.assert_close(robot._reward_foot_acc(), acceleration.square().sum((1, 2)))
    forces = simulator.link_contact_forces[:, simulator.feet_indices].norm(dim=-1)
    excess = (forces - 20.0).clamp(0.0, 450.0).sum(1)
    torch.testing.assert_close(robot._reward_feet_contact_forces(), excess)
    assert excess.max() > 0.0
