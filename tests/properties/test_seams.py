"""Configuration of a task beyond terms: episodes in seconds, action terms, histories, curricula, the order of a step."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import (
    CurriculumTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from legged_envs.mdp import curricula, observations, rewards
from legged_envs.mdp.actions import JointPositionCfg, JointTorqueCfg, JointVelocityCfg
from legged_envs.robots import GO2

TASK = "Legged/Go2-Flat-v0"
Q0 = torch.tensor(GO2.default_joint_pos)


def task(**fields: Any) -> TaskCfg:
    """The Go2 task with fields replaced."""
    cfg = make_task_cfg(TASK)
    for name, value in fields.items():
        setattr(cfg, name, value)
    return cfg


def make(cfg: TaskCfg, num_envs: int = 3, **kwargs: Any) -> CoreVectorEnv:
    env = make_core(cfg, num_envs, array="torch", **kwargs)
    env.reset(seed=0)
    return env


def still(env: CoreVectorEnv) -> torch.Tensor:
    return torch.zeros(env.action_space.shape)


def targets(env: CoreVectorEnv) -> torch.Tensor:
    """The joint targets that the engine has."""
    return torch.from_numpy(env.sim.batch.bind("ctrl")).float()


# --- episodes are as long as the task says, in seconds ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("cfg", "steps"),
    [
        ({}, 1000),
        ({"sim.decimation": 2}, 2000),
        ({"sim.dt": 0.002}, 2500),
        ({"episode_length_s": 0.1}, 5),
        ({"episode_length_s": 0.11}, 6),
    ],
)
def test_the_length_of_an_episode_in_seconds_does_not_depend_on_the_control_step(cfg, steps):
    env = gym.make_vec(TASK, num_envs=1, cfg=cfg)
    assert env.unwrapped.max_episode_length == steps
    assert env.get_wrapper_attr("time_limit") == steps if hasattr(env, "get_wrapper_attr") else True
    single = gym.make(TASK, cfg=cfg)
    assert single.spec.max_episode_steps == steps
    env.close(), single.close()


@pytest.mark.parametrize("finite", [False, True])
def test_a_finite_horizon_ends_as_a_termination_and_another_as_a_truncation(finite):
    cfg = {"episode_length_s": 0.06, "is_finite_horizon": finite}
    env = gym.make_vec(TASK, num_envs=2, cfg=cfg)
    env.reset(seed=0)
    ends = [env.step(np.zeros((2, 12), np.float32))[2:4] for _ in range(3)]
    single = gym.make(TASK, cfg=cfg)
    single.reset(seed=0)
    single_ends = [single.step(np.zeros(12, np.float32))[2:4] for _ in range(3)]
    for terminated, truncated in ends[:2]:
        assert not terminated.any() and not truncated.any()
    assert (ends[2][0].all(), ends[2][1].all()) == (finite, not finite)
    assert single_ends == [(False, False), (False, False), (finite, not finite)]


def test_an_episode_without_a_limit_goes_on():
    cfg = {"episode_length_s": float("inf")}
    env = gym.make_vec(TASK, num_envs=1, cfg=cfg)
    assert env.unwrapped.max_episode_length is None
    assert (
        "TimeLimit" not in str(env.env) and gym.make(TASK, cfg=cfg).spec.max_episode_steps is None
    )
    for wrong in (0.0, -1.0):
        with pytest.raises(ValueError, match="episode_length_s"):
            gym.make_vec(TASK, num_envs=1, cfg={"episode_length_s": wrong})


# --- actions are terms ------------------------------------------------------------------------------------------------


def test_action_terms_share_the_joints_and_each_has_its_scale_and_clip(random_actions):
    cfg = task(
        actions={
            "calves": JointPositionCfg(joints=(".*_calf_joint",), scale=(0.1, 0.2, 0.3, 0.4)),
            "hips": JointPositionCfg(
                joints=("FR_hip_joint", "FL_hip_joint"), scale=2.0, clip=(-0.5, 0.4)
            ),
        }
    )
    env = make(cfg)
    assert env.single_action_space.shape == (6,)
    for action in torch.from_numpy(random_actions(4, 3, 6)):
        env.step(action)
        expected = Q0.repeat(3, 1)
        expected[:, [2, 5, 8, 11]] += torch.tensor((0.1, 0.2, 0.3, 0.4)) * action[:, :4]
        expected[:, [0, 3]] = (2.0 * action[:, 4:]).clamp(-0.5, 0.4)
        assert torch.allclose(targets(env), expected)
    assert "calves" in str(env.actions) and "hips" in str(env.actions)


@pytest.mark.parametrize(
    ("actions", "culprit"),
    [
        ({}, "actions"),
        (
            {
                "a": JointPositionCfg(joints=("FR_.*",)),
                "b": JointPositionCfg(joints=("FR_hip_joint",)),
            },
            "FR_hip_joint",
        ),
        (
            {"a": JointPositionCfg(joints=("wheel",))},
            r"JointPositionCfg\.joints.*'wheel'.*FR_hip",
        ),
        ({"a": JointPositionCfg(clip=(1.0, -1.0))}, r"JointPositionCfg\.clip.*\(1\.0, -1\.0\)"),
        (
            {"a": JointVelocityCfg()},
            "JointVelocityCfg.*FR_hip_joint.*position",
        ),
        (
            {"a": JointTorqueCfg(joints=("FL_hip_joint",))},
            "JointTorqueCfg.*FL_hip_joint",
        ),
        (
            {"a": JointPositionCfg(around="velocity")},
            "around.*'velocity'",
        ),
    ],
)
def test_action_terms_that_do_not_fit_are_named(actions, culprit):
    with pytest.raises(ValueError, match=culprit):
        make(task(actions=actions))


# --- observation histories --------------------------------------------------------------------------------------------


def counted(history: int) -> dict[str, ObservationGroupCfg]:
    """A policy that sees its last action, and noise, for several steps."""
    noise = ObservationTermCfg(observations.projected_gravity, noise=0.1)
    return {
        "policy": ObservationGroupCfg(
            {"action": ObservationTermCfg(observations.last_action), "noise": noise}, True, history
        )
    }


def test_a_history_shows_the_last_steps_oldest_first_and_begins_with_the_episode(random_actions):
    env, plain = make(task(observations=counted(3))), make(task(observations=counted(1)))
    assert (
        env.single_observation_space.shape == (3 * 15,)
        and ("action", 12, 0) in env.observations.groups["policy"].layout
    )
    now = plain.reset(seed=4)[0]
    seen = [now, now, now]
    assert torch.equal(env.reset(seed=4)[0], torch.cat(seen, dim=1))
    for step, action in enumerate(torch.from_numpy(random_actions(6, 3))):
        seen = [*seen[1:], plain.step(action)[0]]
        assert torch.equal(env.step(action)[0], torch.cat(seen, dim=1)), step
        if step == 3:
            mask = torch.tensor([False, True, False])
            now = plain.reset(options={"reset_mask": mask})[0]
            seen = [torch.where(mask.unsqueeze(1), now, old) for old in seen]
            assert torch.equal(env.reset(options={"reset_mask": mask})[0], torch.cat(seen, dim=1))


def test_a_history_is_part_of_the_saved_state(random_actions, assert_same):
    env, fresh = make(task(observations=counted(4))), make(task(observations=counted(4)))
    actions = torch.from_numpy(random_actions(8, 3))
    for action in actions[:4]:
        env.step(action)
    fresh.set_state(env.get_state())
    for action in actions[4:]:
        assert_same(env.step(action)[0], fresh.step(action)[0])
    with pytest.raises(ValueError, match="another environment"):
        make(task(observations=counted(3))).set_state(env.get_state())


@pytest.mark.parametrize("history", [0, -1, 1.5, "3"])
def test_a_history_that_makes_no_sense_is_named(history):
    with pytest.raises(ValueError, match=f"'policy'.*history.*{history!r}"):
        make(task(observations=counted(history)))


# --- rewards after the floor ------------------------------------------------------------------------------------------


def test_a_reward_after_the_floor_counts_where_the_floor_took_the_rest():
    one = RewardTermCfg(rewards.alive, weight=-3.0)
    late = RewardTermCfg(rewards.alive, weight=-2.0, after_floor=True)
    env = make(task(rewards={"late": late, "floored": one}))
    assert torch.allclose(env.step(still(env))[1], torch.tensor(-2.0 * 0.02))
    assert env.rewards.names == ("floored", "late")
    for _ in range(4):
        env.step(still(env))
    log = env.reset()[1]["log"]
    assert log["reward/late"] == pytest.approx(-2.0) and log["reward/floored"] == pytest.approx(
        -3.0
    )
    unfloored = make(task(rewards={"late": late, "floored": one}, only_positive_rewards=False))
    assert torch.allclose(unfloored.step(still(unfloored))[1], torch.tensor(-5.0 * 0.02))


# --- terms of users ------------------------------------------------------------------------------------------


def test_terms_of_users_change_neither_the_others_nor_the_order(random_actions, assert_same):
    """With a term of every kind, written by the user, all others give the same."""
    calls: list[str] = []

    def noting(name: str, value: Any) -> Any:
        def term(env: Any) -> torch.Tensor:
            calls.append(name)
            return value(env)

        return term

    height = lambda env: env.robot.root_pos_w[:, 2]  # noqa: E731
    cfg, plain = make_task_cfg(TASK), make_task_cfg(TASK)
    low = noting("termination", lambda env: height(env) < 0.2)
    cfg.terminations = {"low": TerminationTermCfg(low), **cfg.terminations}
    cfg.rewards = {"mine": RewardTermCfg(noting("reward", height), 1e-9), **cfg.rewards}
    cfg.observations["policy"].terms = {
        "mine": ObservationTermCfg(noting("observation", lambda env: env.robot.root_pos_w[:, 2:3])),
        **cfg.observations["policy"].terms,
    }
    env, other = make(cfg), make(plain)
    calls.clear()
    for action in torch.from_numpy(random_actions(20, 3)):
        observation, reward, terminated, _, info = env.step(action)
        expected = other.step(action)
        assert_same(info["costs"], expected[4]["costs"])
        assert torch.allclose(reward, expected[1], atol=1e-7)
        assert torch.equal(observation[:, 0], env.robot.root_pos_w[:, 2])
        assert torch.equal(terminated, expected[2] | (height(env) < 0.2))
    assert calls == ["termination", "reward", "observation"] * 20


# --- the order of a step ----------------------------------------------------------------------------------------------


def test_commands_and_pushes_advance_before_the_evaluation_if_the_task_says_so():
    """LeggedGym-Ex resamples commands and pushes in a callback before it computes the rewards."""

    def commanded(env: Any) -> torch.Tensor:
        return env.commands["velocity"][:, 0].clone()

    values = {}
    for first in (False, True):
        cfg = task(
            rewards={"command": RewardTermCfg(commanded, 1 / 0.02)},
            only_positive_rewards=False,
            advance_first=first,
        )
        cfg.commands["velocity"].resampling_time_s = (0.02, 0.02)
        cfg.commands["velocity"].standing_fraction = 0.0
        env = make(cfg)
        before = commanded(env)
        reward = env.step(still(env))[1]
        after = commanded(env)
        assert not torch.equal(before, after)
        assert torch.allclose(reward, after if first else before)
        values[first] = after
    assert torch.equal(values[False], values[True])


# --- commands ---------------------------------------------------------------------------------------------------------


def test_the_heading_is_a_column_of_the_command_if_the_configuration_says_so(assert_same):
    cfg, plain = task(), task()
    for each in (cfg, plain):
        each.commands["velocity"].heading = True
    cfg.commands["velocity"].heading_column = True
    env, other = make(cfg), make(plain)
    for _ in range(5):
        env.step(still(env)), other.step(still(other))
        assert_same(env.commands["velocity"][:, :3], other.commands["velocity"])
        assert_same(env.commands["velocity"][:, 3], env.commands.terms["velocity"].heading)
    state = env.get_state()
    env.reset()
    env.set_state(state)
    assert_same(env.commands["velocity"], state["own"]["commands"]["terms"]["velocity"]["value"])
    assert env.single_observation_space.shape == (46,)


# --- curricula --------------------------------------------------------------------------------------------------------


def test_a_curriculum_term_is_called_when_episodes_end_and_its_number_is_logged():
    calls: list[list[int]] = []

    def level(env: Any, env_ids: torch.Tensor, step: float) -> float:
        calls.append(env_ids.tolist())
        return step * len(calls)

    env = make(task(curriculum={"level": CurriculumTermCfg(level, {"step": 0.5})}))
    env.reset()
    assert calls == [], "no episode had begun"
    env.step(still(env))
    log = env.reset(options={"reset_mask": torch.tensor([True, False, True])})[1]["log"]
    assert calls == [[0, 2]] and log["curriculum/level"] == 0.5
    assert "level" in str(env.curriculum)
    broken = make(task(curriculum={"bad": CurriculumTermCfg(lambda env, env_ids: torch.zeros(2))}))
    broken.step(still(broken))
    with pytest.raises(ValueError, match=r"'bad'.*\(2,\)"):
        broken.reset()
    with pytest.raises(TypeError, match="'bad': func"):
        make(task(curriculum={"bad": CurriculumTermCfg(3)}))


def test_the_velocity_curriculum_widens_the_range_once_robots_follow_well_and_is_saved(assert_same):
    def make_curriculum(threshold: float) -> CoreVectorEnv:
        cfg = task(episode_length_s=0.1)
        cfg.commands["velocity"].lin_vel_x = (-0.3, 0.3)
        params = {"threshold": threshold, "step": 0.4, "largest": 0.6}
        cfg.curriculum["vx"] = CurriculumTermCfg(curricula.widen_velocity_command, params)
        return make(cfg)

    env, strict = make_curriculum(1e-6), make_curriculum(1.0)
    for e in (env, strict):
        for _ in range(5):
            e.step(still(e))
    assert env.reset()[1]["log"]["curriculum/vx"] == pytest.approx(0.6)
    assert strict.reset()[1]["log"]["curriculum/vx"] == pytest.approx(0.3)
    assert env.commands.terms["velocity"].ranges[0].tolist() == pytest.approx([-0.6, 0.6])
    fresh = make_curriculum(1e-6)
    fresh.set_state(env.get_state())
    assert_same(fresh.reset()[0], env.reset()[0])
    with pytest.raises(ValueError, match=r"'dance'.*joint_torque"):
        cfg = task(
            curriculum={
                "vx": CurriculumTermCfg(curricula.widen_velocity_command, {"reward": "dance"})
            }
        )
        broken = make(cfg)
        broken.step(still(broken))
        broken.reset()


# --- configurations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "task_id", ["Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Go2-Mimic-v0"]
)
def test_no_two_groups_share_a_term(task_id):
    cfg = make_task_cfg(task_id)
    terms = [term for group in cfg.observations.values() for term in group.terms.values()]
    assert len({id(term) for term in terms}) == len(terms)
    assert len({id(term.params) for term in terms}) == len(terms)


def test_a_shorter_limit_of_a_finite_task_truncates_one_robot_and_many_alike(
    make_vec: Any, make_single: Any
) -> None:
    options = {"cfg": {"is_finite_horizon": True, "episode_length_s": 0.1}, "max_episode_steps": 3}
    one, many = make_single(**options), make_vec(1, autoreset_mode="Disabled", **options)
    for env in (one, many):
        env.reset(seed=0)
    for _ in range(3):
        (_, _, *single, _), (_, _, *batch, _) = (
            one.step(np.zeros(12, np.float32)),
            many.step(np.zeros((1, 12), np.float32)),
        )
    assert single == [False, True] == [bool(flag[0]) for flag in batch]
