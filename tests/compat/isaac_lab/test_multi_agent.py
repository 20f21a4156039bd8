"""Several agents in one environment: ends of episodes, the interface with dicts next to the flat interface, PettingZoo, skrl. The
oracles are a table of when each agent ends, the flat environment with the same actions, and ``Legged/Go2-Flat-v0``."""

from __future__ import annotations

import copy
import json
import pickle
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from pettingzoo.test import parallel_api_test, parallel_seed_test

import legged_envs
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, SimulationCfg
from legged_envs.compat.isaac_lab.multi_agent import DirectMARLEnv, DirectMARLEnvCfg
from legged_envs.compat.isaac_lab.noise import NoiseModelCfg, UniformNoiseCfg
from legged_envs.compat.isaac_lab.single_agent import (
    multi_agent_to_single_agent,
    multi_agent_with_one_agent,
)
from legged_envs.configuration import configclass
from legged_envs.envs import unwrap
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.robots import GO2
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.go2_legs import LEGS, Go2Legs, go2_legs
from legged_envs.wrappers import ActionRepeat, ActionScale, SauteBudget, TimeLimit
from legged_envs.wrappers.adapters import skrl
from legged_envs.wrappers.adapters.pettingzoo import PettingZooEnv

ENDS = torch.tensor([[3, 6], [2, 2], [99, 4], [99, 99], [5, 99]])
"""The step in which each agent of each environment is terminated."""
STEPS = 8
COLUMNS = {"front": slice(0, 6), "rear": slice(6, 12)}


class TwoHalves(DirectMARLEnv):
    """The front and the rear half of a Go2. An observation is time, action, environment; a reward 1 or 2."""

    def _setup_scene(self) -> None:
        self.time = torch.zeros(self.num_envs)
        self.taken = torch.zeros(self.num_envs, 12)
        self.ends = ENDS[torch.arange(self.num_envs) % len(ENDS)]

    def _pre_physics_step(self, actions: dict[str, torch.Tensor]) -> None:
        assert list(actions) == ["front", "rear"]
        self.taken = torch.cat(list(actions.values()), 1)
        self.time = self.time + 1

    def _get_observations(self) -> dict[str, torch.Tensor]:
        mine = torch.arange(self.num_envs)[:, None] + 1.0
        return {
            a: torch.cat((self.time[:, None], self.taken[:, c], mine), 1)
            for a, c in COLUMNS.items()
        }

    def _get_states(self) -> torch.Tensor:
        return self.time[:, None] * 2.0

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        return {"front": torch.ones(self.num_envs), "rear": torch.full((self.num_envs,), 2.0)}

    def _get_dones(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        ended = {agent: self.time >= self.ends[:, i] for i, agent in enumerate(COLUMNS)}
        return ended, {agent: torch.zeros(self.num_envs, dtype=torch.bool) for agent in COLUMNS}

    def _get_costs(self) -> dict[str, Any]:
        one = torch.ones(self.num_envs)
        return {"shared": one * 0.5, "front/slip": one, "rear/slip": one * 2.0}

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        super()._reset_idx(env_ids)
        self.time[env_ids] = 0.0
        self.taken = self.taken.index_fill(0, env_ids, 0.0)


@configclass
class TwoHalvesCfg(DirectMARLEnvCfg):
    robot = GO2
    decimation = 4
    episode_length_s = STEPS * 0.02
    sim: SimulationCfg = SimulationCfg(dt=0.005, num_threads=1)
    scene: InteractiveSceneCfg = InteractiveSceneCfg(num_envs=len(ENDS))
    possible_agents = ["front", "rear"]  # noqa: RUF012
    action_spaces = {"front": 6, "rear": 6}  # noqa: RUF012
    observation_spaces = {"front": 8, "rear": [8]}  # noqa: RUF012
    state_space = 1
    cost_limits = {"shared": 0.1, "front/slip": 0.2, "rear/slip": 0.3}  # noqa: RUF012


def two_halves(**changes: Any) -> TwoHalvesCfg:
    return TwoHalvesCfg().replace(**changes)


HALVES = "Test/Two-Halves-v0"
legged_envs.register(HALVES, TwoHalves, two_halves)
TORCH: dict[str, Any] = {"array": "torch", "observations": "dict"}


def ones(num_envs: int = len(ENDS)) -> dict[str, torch.Tensor]:
    return {agent: torch.full((num_envs, 6), 0.5) for agent in COLUMNS}


def test_an_agent_that_ends_ends_its_own_episode_only():
    envs = gym.make_vec(HALVES, num_envs=5, autoreset_mode="Disabled", **TORCH)
    task, (observation, _) = envs.unwrapped.task.user, envs.reset(seed=0)
    assert envs.unwrapped.cost_names == ("shared", "front/slip", "rear/slip")
    assert envs.unwrapped.cost_limits == (0.1, 0.2, 0.3)
    for step in range(1, STEPS + 1):
        observation, reward, terminated, truncated, info = envs.step(torch.full((5, 12), 0.5))
        acted, ended = step <= ENDS, step >= ENDS  # in this step; until now
        assert torch.equal(info["agent_terminated"], ended) and not info["agent_truncated"].any()
        assert torch.equal(terminated, ended.all(1))
        assert torch.equal(truncated, torch.full((5,), step == STEPS))
        expected = acted * torch.tensor([1.0, 2.0])
        assert torch.equal(info["rewards"], expected) and torch.equal(reward, expected.sum(1))
        assert torch.equal(info["costs"], torch.cat((torch.full((5, 1), 0.5), expected), 1))
        assert torch.equal(info["cost"], info["costs"].sum(1))
        parts = task.split(observation["policy"], task.observation_spaces)
        for i, part in enumerate(parts.values()):
            assert (part[~acted[:, i]] == 0.0).all(), "the last one is shown, then zeros"
            assert (part[acted[:, i]] == torch.tensor([step, *[0.5] * 6, 0.0])).all(1).sum() == 0
            assert (part[acted[:, i], 1:7] == 0.5).all() and (part[acted[:, i], 0] == step).all()
            assert (task.taken[~acted[:, i]][:, COLUMNS[("front", "rear")[i]]] == 0.0).all(), (
                "takes no action"
            )
        assert torch.equal(observation["critic"], torch.full((5, 1), 2.0 * step))
    assert task.agents == ["front", "rear"], "each still acts somewhere"
    mask = torch.tensor([True, False, False, False, False])
    observation, _ = envs.reset(options={"reset_mask": mask})
    assert task.agent_terminated.tolist() == [
        [False, False],
        [True, True],
        [False, True],
        [False, False],
        [True, False],
    ]
    assert observation["policy"][0].tolist() == [0.0] * 7 + [1.0] + [0.0] * 7 + [1.0]
    _, reward, *_ = envs.step(torch.zeros(5, 12))
    assert reward.tolist() == [3.0, 0.0, 1.0, 3.0, 2.0]
    envs.close()


def test_a_reset_of_some_leaves_what_methods_keep_of_others(assert_same):
    class Smooths(TwoHalves):
        kept: dict[str, torch.Tensor]

        def _setup_scene(self) -> None:
            super()._setup_scene()
            self.kept = {agent: torch.zeros(self.num_envs, 3) for agent in COLUMNS}

        def _get_observations(self):
            seen = super()._get_observations()
            for agent, own in seen.items():
                self.kept[agent] = 0.5 * self.kept[agent] + self.robot.projected_gravity
                seen[agent] = torch.cat((own[:, :5], self.kept[agent]), 1)
            return seen

    alone, both = (Smooths(two_halves(cost_limits=TwoHalvesCfg().cost_limits)) for _ in range(2))
    assert_same(alone.core.reset(seed=0)[0], both.core.reset(seed=0)[0])
    for _ in range(4):
        both.core.reset(options={"reset_mask": torch.tensor([False, True, False, False, False])})
        action = torch.rand(5, 12)
        first, second = (env.core.step(action)[0]["policy"][[0, 2, 3, 4]] for env in (alone, both))
        assert_same(first, second)


def test_extras_of_a_step_and_of_a_reset():
    class Tells(TwoHalves):
        def _get_rewards(self):
            self.extras["foo"] = 1
            return super()._get_rewards()

    task = Tells(two_halves())
    task.reset(seed=0)
    assert task.step(ones())[-1]["foo"] == 1 and "foo" not in task.core.step(torch.zeros(5, 12))[-1]


def test_the_dict_face_says_what_the_flat_one_does(assert_same, random_actions):
    task = TwoHalves(two_halves())
    flat = gym.make_vec(HALVES, num_envs=5, **TORCH)
    (one, _), (other, _) = task.reset(seed=3), flat.reset(seed=3)
    assert (task.num_envs, task.num_agents, task.max_num_agents) == (5, 2, 2)
    assert task.agents == task.possible_agents == ["front", "rear"]
    assert task.observation_space("rear").shape == (8,) and task.action_space("rear").shape == (6,)
    assert flat.single_action_space.shape == (12,) and flat.single_observation_space[
        "policy"
    ].shape == (16,)
    assert flat.single_action_space.low.tolist() == [-1.0] * 12
    finals = 0
    for action in torch.from_numpy(random_actions(20, 5)):
        assert_same(torch.cat(list(one.values()), 1), other["policy"])
        assert_same(task.state(), other["critic"])
        one, rewards, terminated, truncated, extras = task.step(
            {a: action[:, c] for a, c in COLUMNS.items()}
        )
        other, reward, ended, cut, info = flat.step(action)
        assert (
            list(one) == list(rewards) == list(terminated) == list(truncated) == ["front", "rear"]
        )
        assert_same(rewards["front"] + rewards["rear"], reward)
        assert_same(terminated["front"] & terminated["rear"], ended)
        assert torch.equal(truncated["front"], cut & ~terminated["front"])
        assert_same(extras["costs"], info["costs"])
        assert set(task.possible_agents) <= set(extras) and ("final_obs" in extras) == (
            "final_obs" in info
        )
        if "final_obs" in info:
            finals += 1
            assert_same(
                torch.cat(list(extras["final_obs"].values()), 1), info["final_obs"]["policy"]
            )
    assert finals > 3
    task.close()
    flat.close()


@pytest.mark.parametrize(
    ("state_space", "shape"), [(0, None), (-1, (5, 16)), (1, (5, 1)), ([1], (5, 1))]
)
def test_the_state_is_nothing_all_observations_or_ones_own(state_space, shape):
    task = TwoHalves(two_halves(state_space=state_space))
    observation, _ = task.reset(seed=0)
    observation, *_ = task.step(ones())
    if shape is None:
        assert task.state() is None and task.state_space is None
    else:
        assert task.state().shape == shape and task.state_space.shape == shape[1:]
        if state_space == -1:
            assert torch.equal(task.state(), torch.cat(list(observation.values()), 1))
    task.close()


def test_what_methods_return_may_be_in_any_order(assert_same):
    class Turned(TwoHalves):
        def _get_observations(self):
            return dict(reversed(super()._get_observations().items()))

        def _get_rewards(self):
            return dict(reversed(super()._get_rewards().items()))

    turned, plain = Turned(two_halves()), TwoHalves(two_halves())
    assert_same(turned.reset(seed=0)[0], plain.reset(seed=0)[0])
    actions = {"rear": torch.zeros(5, 6), "front": torch.ones(5, 6)}
    assert_same(turned.step(actions)[:2], plain.step(dict(reversed(actions.items())))[:2])


def test_the_agents_as_one(assert_same):
    plain, single, one = TwoHalves(two_halves()), TwoHalves(two_halves()), TwoHalves(two_halves())
    single, one = (
        multi_agent_to_single_agent(single),
        multi_agent_with_one_agent(one, state_as_observation=True),
    )
    assert single.single_observation_space["policy"].shape == (
        16,
    ) and single.single_action_space.shape == (12,)
    assert one.possible_agents == ["single-agent"] and one.observation_space(
        "single-agent"
    ).shape == (1,)
    assert (
        one.action_space("single-agent").shape == (12,)
        and one.num_envs == 5
        and one.num_agents == 1
    )
    by_agent, (rows, _), (own, _) = plain.reset(seed=1)[0], single.reset(seed=1), one.reset(seed=1)
    for _ in range(10):
        assert_same(rows["policy"], torch.cat(list(by_agent.values()), 1))
        assert_same(own["single-agent"], plain.state())
        by_agent, rewards, terminated, _, _ = plain.step(ones())
        rows, reward, ended, cut, _ = single.step(torch.full((5, 12), 0.5))
        own, own_reward, own_ended, own_cut, _ = one.step(
            {"single-agent": torch.full((5, 12), 0.5)}
        )
        assert_same(
            [reward, ended],
            [rewards["front"] + rewards["rear"], terminated["front"] & terminated["rear"]],
        )
        assert_same(
            [own_reward["single-agent"], own_ended["single-agent"], own_cut["single-agent"]],
            [reward, ended, cut],
        )
    with pytest.raises(ValueError, match="TwoHalves has no state to observe"):
        multi_agent_to_single_agent(TwoHalves(two_halves(state_space=0)), state_as_observation=True)


def test_a_saved_state_holds_whose_episode_is_over(assert_same):
    envs = gym.make_vec(HALVES, num_envs=5, statistics=False, **TORCH)
    envs.reset(seed=0)
    for _ in range(4):
        envs.step(torch.full((5, 12), 0.5))
    state, later = envs.get_state(), [envs.step(torch.full((5, 12), 0.5)) for _ in range(5)]
    core = pickle.loads(pickle.dumps(envs.unwrapped))
    assert torch.equal(core.task.user.agent_terminated, envs.unwrapped.task.user.agent_terminated)
    envs.set_state(state)
    assert_same([envs.step(torch.full((5, 12), 0.5)) for _ in range(5)], later)
    envs.close()


def test_noise_models_of_agents_take_streams_of_their_own(assert_same):
    noise = NoiseModelCfg(noise_cfg=UniformNoiseCfg(n_min=-1.0, n_max=1.0))
    quiet, noisy = (
        TwoHalves(two_halves()),
        TwoHalves(two_halves(observation_noise_model={"rear": noise})),
    )
    (expected, _), (seen, _) = quiet.reset(seed=4), noisy.reset(seed=4)
    stream = noisy.random.stream("observation_noise/rear")
    drawn = 0
    for _ in range(2):
        assert_same(seen["front"], expected["front"])
        difference = (seen["rear"] - expected["rear"]).abs()
        assert (difference <= 1.0).all() and (difference > 0.0).float().mean() > 0.9
        drawn += 4  # words of two numbers
        assert stream.counter.flatten().tolist() == [drawn] * 5
        expected, seen = quiet.step(ones())[0], noisy.step(ones())[0]
    acting = TwoHalves(two_halves(action_noise_model={"front": noise}))
    acting.reset(seed=4)
    acting.step(ones())
    assert (acting.taken[:, 6:] == 0.5).all() and (acting.taken[:, :6] != 0.5).all()


def test_an_own_apply_action_is_called_before_each_physics_step(assert_same):
    class Counting(TwoHalves):
        calls = 0

        def _apply_action(self) -> None:
            super()._apply_action()
            Counting.calls += 1

    plain, counting = TwoHalves(two_halves()), Counting(two_halves())
    plain.reset(seed=0), counting.reset(seed=0)
    Counting.calls = 0  # after the trial when the environment was built
    for _ in range(3):
        plain.step(ones()), counting.step(ones())
    assert Counting.calls == 3 * plain.core.cfg.sim.decimation
    assert_same(counting.sim.joint_pos, plain.sim.joint_pos)


def test_legs_are_go2_flat_with_the_reward_in_four_parts(make_vec, assert_same, random_actions):
    legs, flat = (make_vec(16, task=f"Legged/Go2-{name}-v0", **TORCH) for name in ("Legs", "Flat"))
    (seen, _), (expected, _) = legs.reset(seed=7), flat.reset(seed=7)
    task, ended = legs.unwrapped.task.user, 0
    assert (
        task.possible_agents == list(LEGS) and legs.single_action_space == flat.single_action_space
    )
    sizes = {name: size for name, size, _ in legs.unwrapped.observations.groups["policy"].layout}
    for action in torch.from_numpy(random_actions(100, 16)):
        seen, reward, terminated, truncated, info = legs.step(action)
        expected, *outcome, expected_info = flat.step(action)
        assert_same([reward, terminated, truncated, seen["critic"]], [*outcome, expected["critic"]])
        assert_same(
            [info["costs"], info.get("log")], [expected_info["costs"], expected_info.get("log")]
        )
        assert torch.equal(info["rewards"], (reward / 4.0)[:, None].expand(-1, 4))
        assert torch.equal(info["agent_terminated"], terminated[:, None].expand(-1, 4))
        ended += int(terminated.sum())
    assert ended > 5
    robot, parts = unwrap(legs).robot, task.split(seen["policy"], task.observation_spaces)
    for i, leg in enumerate(LEGS):
        terms = dict(zip(sizes, seen["policy"].split(list(sizes.values()), 1), strict=True))
        own = torch.cat([term for name, term in terms.items() if name.startswith(leg)], 1)
        assert torch.equal(parts[leg], own) and own.shape[1] == 30
        joints = [j for j, name in enumerate(robot.sim.robot.joint_names) if name.startswith(leg)]
        others = [j for j in range(12) if j not in joints]
        assert joints == list(range(3 * i, 3 * i + 3)), (
            "an agent's actions are those of its own joints"
        )
        assert (
            (terms[f"{leg}_joint_pos"] - robot.joint_offset[:, joints]).abs() <= 0.01 + 1e-6
        ).all()
        assert (
            (terms[f"{leg}_other_joint_pos"] - robot.joint_offset[:, others]).abs() <= 0.01 + 1e-6
        ).all()
        assert torch.equal(terms[f"{leg}_action"], unwrap(legs).actions.current[:, joints])


@pytest.mark.usefixtures("walking_evaluations")
def test_go2_flats_evaluation_takes_the_legs():
    task_id = "Legged/Go2-Legs-v0"
    evaluator = Evaluator(task_id, make_task_cfg(task_id), 4)
    result = evaluator.run(lambda seen: torch.zeros(len(seen), 12), still=False).as_dict()
    assert result["falls"] == 0.0 and 0.0 < result["lin_vel_error"] < 1.5 and list(result["costs"])
    evaluator.close()


def test_the_example_is_go2_flat(assert_same, random_actions):
    runpy.run_path(
        str(Path(__file__).parents[3] / "examples" / "workflows" / "go2_flat_multi_agent.py")
    )
    cfg = {"events.push.interval_s": (0.5, 1.5), "commands.velocity.resampling_time_s": (0.5, 2.0)}
    cfg |= {"episode_length_s": 3.0, "events.root.params.velocity": 1.0}
    ids = ("Legged/Go2-Flat-v0", "Example/Go2-Flat-Multi-Agent-v0")
    flat, multi = (
        gym.make_vec(name, 24, cfg=cfg, statistics=False, observations="dict") for name in ids
    )
    assert_same(multi.reset(seed=3)[0], flat.reset(seed=3)[0])
    ended = np.zeros(2, int)
    for t, action in enumerate(random_actions(160, 24) * 1.2):
        *outcome, info = multi.step(action * (1.0 if t % 100 > 50 else 0.1))
        *expected, expected_info = flat.step(action * (1.0 if t % 100 > 50 else 0.1))
        assert_same(outcome, expected)
        assert_same([info["cost"], info["costs"]], [expected_info["cost"], expected_info["costs"]])
        assert_same(info.get("final_obs"), expected_info.get("final_obs"))
        ended += [outcome[2].sum(), outcome[3].sum()]
    assert ended.min() > 0
    flat.close()
    multi.close()


# --- PettingZoo -------------------------------------------------------------------------------------------------------


def make_parallel(task: str = HALVES, **kwargs: Any) -> PettingZooEnv:
    return PettingZooEnv(gym.make_vec(task, num_envs=1, autoreset_mode="Disabled", **kwargs))


@pytest.mark.parametrize("task", [HALVES, "Legged/Go2-Legs-v0"])
def test_pettingzoos_own_tests_pass(task):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(make_parallel(task, max_episode_steps=60), num_cycles=200)
        parallel_seed_test(lambda: make_parallel(task, observations="dict"), num_cycles=50)


def test_an_agent_leaves_pettingzoos_agents():
    env = make_parallel(cfg={"state_space": -1}, observations="dict")
    observations, infos = env.reset(seed=0)
    assert env.agents == list(observations) == list(infos) == ["front", "rear"]
    actions = {agent: np.full(6, 0.5, np.float32) for agent in env.agents}
    for step in range(1, 7):
        present = list(env.agents)
        observations, rewards, terminated, truncated, infos = env.step(
            {agent: actions[agent] for agent in present}
        )
        assert present == (["front", "rear"] if step <= 3 else ["rear"])
        for part in (observations, rewards, terminated, truncated, infos):
            assert list(part) == present
        assert terminated == {agent: step == {"front": 3, "rear": 6}[agent] for agent in present}
        assert (
            not any(truncated.values())
            and rewards["rear"] == 2.0
            and infos["rear"]["costs"].shape == (3,)
        )
        assert (
            observations["rear"].tolist() == [step, *[0.5] * 6, 1.0]
            and observations["rear"].dtype == np.float32
        )
        assert env.state().shape == (16,)
    assert env.agents == []
    assert make_parallel().render() is None
    env.close()


def test_pettingzoo_takes_one_environment_with_agents():
    for given in (
        gym.make_vec(HALVES, num_envs=2, autoreset_mode="Disabled"),
        gym.make_vec(HALVES, num_envs=1),
    ):
        with pytest.raises(
            ValueError,
            match=r"make it by gymnasium.make_vec\(id, num_envs=1, autoreset_mode='Disabled'",
        ):
            PettingZooEnv(given)
    with pytest.raises(ValueError, match="a task with agents"):
        PettingZooEnv(gym.make_vec("Legged/Go2-Flat-v0", num_envs=1, autoreset_mode="Disabled"))


def test_pettingzoos_agents_end_when_wrappers_or_a_finite_horizon_end_the_episode():
    def last_flags(env: PettingZooEnv) -> tuple[int, list[tuple[bool, bool]]]:
        env.reset(seed=0)
        steps = 0
        while env.agents:
            acting = {agent: np.full(6, 0.5, np.float32) for agent in env.agents}
            *_, terminated, truncated, _ = env.step(acting)
            steps += 1
        return steps, [(terminated[agent], truncated[agent]) for agent in terminated]

    made = {"num_envs": 1, "autoreset_mode": "Disabled"}
    finite = gym.make_vec(HALVES, cfg={"is_finite_horizon": True, "episode_length_s": 0.04}, **made)
    assert last_flags(PettingZooEnv(finite)) == (2, [(True, False)] * 2)
    limited = TimeLimit(gym.make_vec(HALVES, **made), 2, is_finite_horizon=True)
    assert last_flags(PettingZooEnv(limited)) == (2, [(True, False)] * 2)
    cut = gym.make_vec(HALVES, cfg={"episode_length_s": 0.04}, **made)
    assert last_flags(PettingZooEnv(cut)) == (2, [(False, True)] * 2)


class TimedHalves(TwoHalves):
    """Its own method reports the end of the time after 2 steps."""

    def _get_dones(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        ended, _ = super()._get_dones()
        return ended, {agent: self.time >= 2 for agent in COLUMNS}


@pytest.mark.parametrize("is_finite", [True, False])
def test_time_outs_of_a_finite_horizon_are_ends_for_each_agent(is_finite):
    env = TimedHalves(two_halves(is_finite_horizon=is_finite))
    env.reset(seed=0)
    env.step(ones())
    _, _, terminated, truncated, _ = env.step(ones())
    ended = ENDS <= 2
    for index, agent in enumerate(COLUMNS):
        assert torch.equal(terminated[agent], ended[:, index] | is_finite)
        assert torch.equal(truncated[agent], ~ended[:, index] & (not is_finite))
    env.close()


def test_the_state_of_agents_needs_its_observation_group():
    env = make_parallel(cfg={"state_space": -1})
    env.reset(seed=0)
    with pytest.raises(ValueError, match='observations="dict"'):
        env.state()


@pytest.mark.parametrize("bounds", [(-5.0, 5.0), (0.0, 1.0)])
def test_agents_have_the_action_spaces_that_wrappers_give_them(bounds):
    scaled = ActionScale(gym.make_vec(HALVES, num_envs=1, autoreset_mode="Disabled"), *bounds)
    env = PettingZooEnv(scaled)
    other = skrl.SkrlMultiAgentEnv(ActionScale(gym.make_vec(HALVES, num_envs=2, **TORCH), *bounds))
    for agent in COLUMNS:
        for space in (env.action_space(agent), other.action_space(agent)):
            assert space == gym.spaces.Box(*bounds, (6,))


def test_a_wrapper_that_changes_the_observation_of_agents_is_refused():
    flat = SauteBudget(gym.make_vec(HALVES, num_envs=1, autoreset_mode="Disabled"), horizon=8)
    with pytest.raises(ValueError, match=r"\(19,\), but the agents observe 16 numbers"):
        PettingZooEnv(flat)
    with pytest.raises(ValueError, match="the agents observe 16 numbers"):
        skrl.SkrlMultiAgentEnv(SauteBudget(gym.make_vec(HALVES, num_envs=2, **TORCH), horizon=8))


def test_rewards_of_agents_are_summed_over_repeated_actions():
    task = {"num_envs": 5, "autoreset_mode": "Disabled", **TORCH}
    once, twice = gym.make_vec(HALVES, **task), ActionRepeat(gym.make_vec(HALVES, **task), 2)
    action = torch.full((5, 12), 0.5)
    once.reset(seed=0), twice.reset(seed=0)
    single = [once.step(action)[4]["rewards"] for _ in range(2)]
    assert torch.equal(twice.step(action)[4]["rewards"], single[0] + single[1])


# --- skrl -------------------------------------------------------------------------------------------------------------


def test_skrl_is_told_of_each_agent(assert_same):
    env, plain = (
        skrl.SkrlMultiAgentEnv(gym.make_vec(HALVES, num_envs=5, **TORCH), seed=2),
        TwoHalves(two_halves()),
    )
    expected, _ = plain.reset(seed=2)
    assert env.possible_agents == ["front", "rear"] and (env.num_envs, env.num_agents) == (5, 2)
    assert env.observation_spaces["front"].shape == (8,) and env.state_spaces["rear"].shape == (1,)
    observations, _ = env.reset()
    for _ in range(10):
        assert_same([observations, env.state()["rear"]], [expected, plain.state()])
        observations, *outcome, infos = env.step(ones())
        expected, *expected_outcome, extras = plain.step(ones())
        columns = [
            {agent: value[:, None] for agent, value in part.items()} for part in expected_outcome
        ]
        assert_same(outcome, columns)
        assert ("final_obs" in infos) == ("final_obs" in extras)
        if "final_obs" in infos:
            assert_same(infos["final_obs"], extras["final_obs"])
            assert infos["final_states"]["front"].shape == (5, 1)
        outcome[0]["front"] += 100.0  # as skrl does
        assert infos["rewards"].max() < 50.0
    with pytest.raises(ValueError, match="SkrlMultiAgentEnv needs a task with agents"):
        skrl.SkrlMultiAgentEnv(gym.make_vec("Legged/Go2-Flat-v0", num_envs=1, array="torch"))


def runner_cfg(algorithm: str, timesteps: int, **agent: Any) -> dict[str, Any]:
    seen = "STATES" if algorithm == "MAPPO" else "OBSERVATIONS"
    networks = {
        name: [{"name": "net", "input": name, "layers": [16], "activations": "elu"}]
        for name in (seen, "OBSERVATIONS")
    }
    value = {"class": "DeterministicMixin", "network": networks[seen], "output": "ONE"}
    policy = {"class": "GaussianMixin", "network": networks["OBSERVATIONS"], "output": "ACTIONS"}
    return {
        "seed": 0,
        "models": {"separate": True, "policy": policy, "value": value},
        "memory": {"class": "RandomMemory", "memory_size": -1},
        "agent": {
            "class": algorithm,
            "rollouts": 4,
            "learning_epochs": 1,
            "mini_batches": 2,
            "discount_factor": 0.9,
            "observation_preprocessor": "RunningStandardScaler",
            "value_preprocessor": "RunningStandardScaler",
            "experiment": {"write_interval": 0, "checkpoint_interval": 0},
            **agent,
        },
        "trainer": {
            "class": "SequentialTrainer",
            "timesteps": timesteps,
            "environment_info": "log",
            "disable_progressbar": True,
            "close_environment_at_exit": False,
        },
    }


@pytest.mark.parametrize("algorithm", ["IPPO", "MAPPO"])
def test_skrls_multi_agent_learners_train(algorithm):
    env = skrl.SkrlMultiAgentEnv(
        gym.make_vec("Legged/Go2-Legs-v0", num_envs=4, max_episode_steps=5, **TORCH), seed=0
    )
    run = skrl.BootstrapRunner(env, runner_cfg(algorithm, 16))
    assert isinstance(
        run.agent, {"IPPO": skrl.BootstrapIPPO, "MAPPO": skrl.BootstrapMAPPO}[algorithm]
    )
    before = copy.deepcopy({leg: model.state_dict() for leg, model in run.agent.policies.items()})
    run.run("train")
    for leg, model in run.agent.policies.items():
        after = model.state_dict()
        assert all(torch.isfinite(value).all() for value in after.values())
        assert any(not torch.equal(before[leg][name], after[name]) for name in after)
    run.run("eval")
    env.close()


@pytest.mark.parametrize("algorithm", ["IPPO", "MAPPO"])
def test_skrls_learners_bootstrap_time_outs_alone_from_the_true_last_observation(algorithm):
    env = skrl.SkrlMultiAgentEnv(gym.make_vec(HALVES, num_envs=5, **TORCH), seed=0)
    run = skrl.BootstrapRunner(env, runner_cfg(algorithm, STEPS, rollouts=STEPS + 1))
    run.run("train")
    agent = run.agent
    assert all(agent.cfg.time_limit_bootstrap.values())
    number = torch.arange(5.0) + 1.0
    for i, name in enumerate(COLUMNS):
        rewards = agent.memories[name].tensors["rewards"][:STEPS, :, 0]
        acted = (
            ENDS[:, i] > STEPS
        )  # in the last step, which is cut off in the environments that have not ended before
        last = agent.memories[name].tensors["actions"][STEPS - 1].clamp(-1.0, 1.0)
        final = torch.cat((torch.full((5, 1), float(STEPS)), last, number[:, None]), 1)
        inputs = {
            "observations": agent._observation_preprocessor[name](final),
            "states": torch.full((5, 1), 2.0 * STEPS),
        }
        with torch.no_grad():
            value = agent._value_preprocessor[name](
                agent.values[name].act(inputs, role="value")[0], inverse=True
            )
        expected = (1.0 + i) * (ENDS[:, i] >= STEPS) + 0.9 * value[:, 0] * acted
        cut = torch.tensor([True, False, True, True, True]) & acted
        assert cut.any() and torch.allclose(rewards[-1][cut], expected[cut], atol=1e-5)
    env.close()


def test_the_training_example_runs(tmp_path, monkeypatch):
    options = {
        "minutes": "0.01",
        "num-envs": "8",
        "episodes": "2",
        "algorithm": "mappo",
        "out": str(tmp_path),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    monkeypatch.setattr(sys, "argv", ["multi_agent_ippo", *words, "--no-video"])
    monkeypatch.setattr("legged_envs.evaluation.metrics.task.TaskMetrics.EPISODE_SECONDS", 1.2)
    runpy.run_path(str(Path(__file__).parents[3] / "examples" / "multi_agent_ippo.py"))
    assert json.loads((tmp_path / "evaluation.json").read_text())["episodes"] == 2
    assert list(torch.load(tmp_path / "policy.pt")) == list(LEGS)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"possible_agents": []}, r"for each of possible_agents, \[\]"),
        (
            {"action_spaces": {"front": 6}},
            r"TwoHalvesCfg.action_spaces must have a space for each of possible_agents",
        ),
        (
            {"observation_spaces": {"front": 8, "rear": 8, "tail": 8}},
            "observation_spaces must have a space for each",
        ),
        (
            {"observation_spaces": {"front": 8, "rear": "x"}},
            r"observation_spaces\['rear'\] must be",
        ),
        (
            {"action_spaces": {"front": {3}, "rear": 6}},
            r"TwoHalvesCfg.action_spaces must be float32 boxes.*Discrete",
        ),
        (
            {"observation_spaces": {"front": {"a": 8}, "rear": 8}},
            "observation_spaces must be float32 boxes",
        ),
        ({"state_space": -2}, "state_space"),
        ({"cost_limits": {}}, r"TwoHalves\._get_costs returns the costs that"),
        (
            {"observation_noise_model": {"tail": NoiseModelCfg()}},
            "observation_noise_model: there is no agent 'tail'",
        ),
        ({"possible_agent": ["front"]}, "possible_agent"),
    ],
)
def test_a_wrong_configuration_is_refused_when_the_environment_is_made(changes, message):
    with pytest.raises((AttributeError, TypeError, ValueError), match=message):
        TwoHalves(two_halves(**changes)).core.build()


@pytest.mark.parametrize(
    "method", ["_get_observations", "_get_rewards", "_get_dones", "_get_states"]
)
def test_a_missing_method_is_named_when_the_environment_is_made(method):
    lacking = {
        name: value
        for name, value in vars(TwoHalves).items()
        if name.startswith("_get") and name != method
    }
    lacking["_setup_scene"], lacking["_reset_idx"] = (
        TwoHalves._setup_scene,
        lambda self, env_ids: None,
    )
    with pytest.raises((TypeError, ValueError), match=f"Lacking.*{method}"):
        type("Lacking", (DirectMARLEnv,), lacking)(two_halves()).core.build()


N = len(ENDS)
NONE = torch.zeros(N)


@pytest.mark.parametrize(
    ("method", "returned", "message"),
    [
        (
            "_get_observations",
            {"front": torch.zeros(N, 8)},
            r"\['front'\] where \['front', 'rear'\] is expected",
        ),
        ("_get_observations", torch.zeros(N, 8), r"\(5, 8\) where \['front', 'rear'\]"),
        (
            "_get_observations",
            {"front": torch.zeros(N, 8), "rear": torch.zeros(N, 7)},
            r"'rear'.*7\) where.*\(5, 8\)",
        ),
        (
            "_get_observations",
            {"front": torch.zeros(N, 8), "rear": torch.full((N, 8), torch.nan)},
            "not finite",
        ),
        ("_get_states", torch.zeros(N, 2), r"\(5, 1\) is expected"),
        (
            "_get_rewards",
            {"front": NONE, "rear": torch.zeros(N, 1)},
            r"'rear'.*torch.float32 \(5,\) is expected",
        ),
        ("_get_rewards", {"front": NONE, "rear": NONE.double()}, "torch.float64"),
        ("_get_rewards", {"front": NONE, "tail": NONE}, r"\['front', 'tail'\] where"),
        ("_get_rewards", {"front": NONE, "rear": torch.full((N,), torch.nan)}, "not finite"),
        ("_get_dones", {"front": NONE}, "2 entries"),
        ("_get_dones", ({"front": NONE, "rear": NONE},) * 2, "torch.bool"),
        (
            "_get_costs",
            {"shared": NONE},
            r"\['shared'\] where \['front/slip', 'rear/slip', 'shared'\]",
        ),
    ],
)
def test_what_a_method_returns_is_checked(method, returned, message):
    class Wrong(TwoHalves):
        pass

    setattr(Wrong, method, lambda self: returned)
    with pytest.raises((TypeError, ValueError), match=f"Wrong.{method}.*{message}"):
        Wrong(two_halves()).core.build()


def test_an_agent_that_there_is_not_is_refused():
    task = TwoHalves(two_halves())
    task.reset(seed=0)
    for given in ({**ones(), "tail": torch.zeros(5, 6)}, {"front": torch.zeros(5, 6)}):
        with pytest.raises(
            ValueError, match=r"TwoHalves.step needs an action of each of \['front', 'rear'\]"
        ):
            task.step(given)
    with pytest.raises(ValueError, match=r"'front' must have the shape \(5, 6\), got \(5, 5\)"):
        task.step({"front": torch.zeros(5, 5), "rear": torch.zeros(5, 7)})
    with pytest.raises(ValueError, match="there is no agent 'tail'"):
        task.observation_space("tail")
    with pytest.raises(ValueError, match="there is no agent 'tail'"):
        task.action_space("tail")
    cfg = go2_legs()
    cfg.observation_spaces = dict.fromkeys(LEGS, 29)
    with pytest.raises(ValueError, match=r"120 numbers, expected 116 for"):
        Go2Legs(cfg).core.build()
