"""``as_vector_env``: tasks written for Isaac Gym as Gymnasium's vector environments."""

import random
from collections import deque
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

import legged_envs.compat.isaac_gym as package
from legged_envs.wrappers import EpisodeStatistics, ObsNormalize, ToNumpy

CLIP, N = 100.0, 6


def costs(task) -> dict[str, torch.Tensor]:
    return {
        "feet": (task.forces[:, task.feet].norm(dim=-1) > 50.0).sum(1).float(),
        "torque": task.torques.abs().amax(1),
    }


def actions(i: int, count: int = N, size: int = 8) -> torch.Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(i))


def test_a_legacy_task_is_a_vector_env_with_true_final_observations_and_costs(legacy) -> None:
    def make():
        torch.manual_seed(3)
        np.random.seed(3)
        return legacy.Task(N, episode_length=7)

    plain, task = make(), make()
    torch.manual_seed(5)
    expected = [plain.step(actions(i)) for i in range(20)]
    env = package.as_vector_env(task, costs, {"torque": 10.0})
    assert (
        isinstance(env, gym.vector.VectorEnv)
        and env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    )
    assert (env.num_envs, env.cost_names, env.cost_limits) == (
        N,
        ("feet", "torque"),
        (np.inf, 10.0),
    )
    assert env.single_observation_space.shape == (33,) and env.single_action_space.shape == (8,)
    torch.manual_seed(5)
    ended = 0
    for i, (obs, _, reward, done, extras) in enumerate(expected):
        # By the bridge the task does bit for bit what it does without.
        got, got_reward, terminated, truncated, info = env.step(actions(i))
        assert torch.equal(got, obs) and torch.equal(got_reward, reward)
        assert torch.equal(terminated | truncated, done) and torch.equal(
            truncated, done & extras["time_outs"]
        )
        assert info["costs"].shape == (N, 2) and torch.allclose(info["cost"], info["costs"].sum(1))
        assert (info["costs"][:, 1] > 0).all()
        if done.any():
            ended += int(done.sum())
            final = info["final_obs"]
            assert torch.equal(info["_final_obs"], done) and torch.equal(final[~done], got[~done])
            moved = (final[done][:, 9:17] - got[done][:, 9:17]).abs().amax(1)
            assert (moved > 1e-3).all(), "joints are not those of the next episode"
            assert torch.allclose(
                final[done][:, 25:], torch.clip(actions(i), -CLIP, CLIP)[done], atol=0.011
            )
            assert info["log"].keys() == {"length"}
        else:
            assert not {"final_obs", "log"} & {*info}
    assert ended > N


def test_wrappers_of_the_package_serve_it(legacy) -> None:
    env = ToNumpy(
        EpisodeStatistics(
            ObsNormalize(package.as_vector_env(legacy.Task(N, episode_length=5), costs))
        )
    )
    observation, _ = env.reset(seed=1)
    again, _ = env.reset(seed=1)
    assert isinstance(observation, np.ndarray) and observation.shape == again.shape == (N, 33)
    for i in range(8):
        observation, _, terminated, truncated, info = env.step(actions(i).numpy())
        if (terminated | truncated).any():
            assert info["episode"]["l"].max() <= 6
            assert np.isfinite(info["final_obs"]).all()
            break
    else:
        raise AssertionError


def test_a_mask_resets_its_rows_alone(legacy) -> None:
    task = legacy.Task(N)
    env = package.as_vector_env(task)
    env.reset(seed=0)
    for i in range(3):
        env.step(actions(i))
    before = task.sim.state.batch.state.copy()
    mask = np.arange(N) % 2 == 0
    observation, _ = env.reset(options={"reset_mask": mask})
    assert observation.shape == (N, 33)
    assert (task.sim.state.batch.state[~mask] == before[~mask]).all()
    assert task.root[mask, 2].tolist() == pytest.approx([0.42] * 3)
    env.close()
    assert "reset_idx" in vars(task) and task.reset_idx.__self__ is task


class Counter:
    """A task in the style of IsaacGymEnvs: four values, a dict of observations."""

    def __init__(self, resets: bool = True):
        self.num_envs, self.num_actions, self.device, self.resets = 2, 1, "cpu", resets
        self.obs_buf, self.x, self.cost = torch.zeros(2, 1), torch.zeros(2, 1), torch.ones(2)
        self.cfg = SimpleNamespace(
            normalization=SimpleNamespace(clip_observations=5.0, clip_actions=1.0)
        )

    def reset(self):
        self.reset_idx(torch.arange(2))
        return {"obs": self.obs_buf.clone()}

    def reset_idx(self, env_ids):
        self.x[env_ids] = 0.0

    def compute_observations(self):
        self.obs_buf = self.x.clone()

    def step(self, action):
        self.x += action
        done = self.x[:, 0] >= 2.0
        if self.resets and done.any():
            self.reset_idx(done.nonzero().flatten())
        self.compute_observations()
        return {"obs": self.obs_buf.clone()}, torch.ones(2), done.long(), {}


def test_a_task_of_four_values_and_dicts_has_final_observations_too() -> None:
    task = Counter()
    env = package.as_vector_env(task, lambda task: {"x": task.x[:, 0].clone()})
    assert (env.single_observation_space.high.item(), env.single_action_space.high.item()) == (
        5.0,
        1.0,
    )
    one = torch.tensor([[1.0], [0.5]])
    env.reset()
    observation, _, _, _, info = env.step(one)
    assert "final_obs" not in info and info["cost"].tolist() == [1.0, 0.5]
    observation, _, terminated, truncated, info = env.step(one)
    assert observation.flatten().tolist() == [0.0, 1.0] and info[
        "final_obs"
    ].flatten().tolist() == [2.0, 1.0]
    assert terminated.tolist() == [True, False] and not truncated.any()
    assert info["cost"].tolist() == [2.0, 1.0], "as before the reset"
    wrong = package.as_vector_env(Counter(resets=False))
    with pytest.raises(RuntimeError, match=r"Counter.*reset_idx"):
        [wrong.step(one) for _ in range(2)]


class Remembering(Counter):
    """Its observation is the last three it had, and a little of each kind of noise."""

    def __init__(self):
        super().__init__()
        self.history, self.frames = torch.zeros(2, 3), deque([torch.zeros(2)], maxlen=2)
        self.obs_buf = torch.zeros(2, 4)

    def compute_observations(self):
        noise = torch.rand(2, 1) + np.random.rand() + random.random()
        self.history = torch.cat((self.history[:, 1:], self.x + 0.01 * noise), 1)
        self.frames.append(self.x[:, 0].clone())
        self.obs_buf[:] = torch.cat((self.history, self.frames[0][:, None]), 1)


def test_tasks_with_a_memory_do_by_the_bridge_what_they_do_without() -> None:
    moves = torch.rand(30, 2, 1, generator=torch.Generator().manual_seed(1))

    def run(bridge: bool) -> list[torch.Tensor]:
        random.seed(2), np.random.seed(2), torch.manual_seed(2)
        task = Remembering()
        env = package.as_vector_env(task) if bridge else task
        observations = [env.step(move)[0] for move in moves]
        return observations if bridge else [each["obs"] for each in observations]

    expected = run(False)
    assert any((each[:, 2] < 0.5).any() for each in expected[5:]), "episodes that end"
    for got, own in zip(run(True), expected, strict=True):
        assert torch.equal(got, own)


def test_a_masked_reset_leaves_the_memory_of_others_alone_and_its_mask_is_checked() -> None:
    task = Remembering()
    env = package.as_vector_env(task)
    for _ in range(2):
        env.step(torch.tensor([[0.3], [0.4]]))
    before = task.history.clone()
    observation, _ = env.reset(options={"reset_mask": torch.tensor([True, False])})
    assert torch.equal(task.history[1], before[1]) and not torch.equal(task.history[0], before[0])
    assert observation[0, 2] < 0.1 and task.frames[-1][1] == pytest.approx(0.8)
    for mask, error, message in (
        (torch.tensor([1, 0]), TypeError, "reset_mask"),
        (torch.tensor([True]), ValueError, r"\(2,\)"),
    ):
        with pytest.raises(error, match=message):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="reset_maks"):
        env.reset(options={"reset_maks": mask})


def test_tasks_and_costs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"int.*num_envs, num_actions"):
        package.as_vector_env(3)
    with pytest.raises(ValueError, match=r"cost_limits.*'two'.*'one'"):
        package.as_vector_env(Counter(), lambda task: {"one": task.cost}, {"two": 1.0})
    task = Counter()
    env = package.as_vector_env(task, lambda task: {"one": task.cost})
    for cost, message in ((torch.ones(3), r"shape \(3,\)"), (-torch.ones(2), "-1")):
        task.cost = cost
        with pytest.raises(ValueError, match=message):
            env.step(torch.zeros(2, 1))
    task.cost, task.step = torch.ones(2), lambda action: (1, 2, 3)
    with pytest.raises(ValueError, match=r"step.*3"):
        env.step(torch.zeros(2, 1))
