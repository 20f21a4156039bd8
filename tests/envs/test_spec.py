"""Gymnasium's specifications, seeds and videos of an environment."""

from __future__ import annotations

import copy
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from legged_envs import make_task_cfg
from legged_envs.envs.changes import apply_changes
from legged_envs.mdp.rewards import lin_vel_z

FLAT = "Legged/Go2-Flat-v0"
CHANGES = {
    "episode_length_s": 0.2,
    "rewards.joint_torque.weight": -0.001,
    "commands.velocity.lin_vel_x": (0.5, 0.5),
    "events.push": None,
    "sim.num_threads": 1,
}


@pytest.mark.parametrize("batch", [False, True])
def test_a_specification_with_a_configuration_becomes_json_and_an_equal_environment(
    batch: bool, assert_same
) -> None:
    cfg = apply_changes(make_task_cfg(FLAT), CHANGES)
    if batch:
        env = gym.make_vec(FLAT, num_envs=1, cfg=cfg)
        again = gym.make_vec(EnvSpec.from_json(env.spec.to_json()), num_envs=1)
    else:
        env = gym.make(FLAT, cfg=cfg)
        again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec.to_json() == env.spec.to_json()
    action = env.action_space.sample()
    for _ in range(2):
        assert_same(env.reset(seed=3)[0], again.reset(seed=3)[0])
    for _ in range(9):
        assert_same(env.step(action)[:4], again.step(action)[:4])
    env.close()
    again.close()


def test_a_specification_of_a_registered_task_is_short_and_of_a_function_names_it() -> None:
    env = gym.make(FLAT, cfg=make_task_cfg(FLAT))
    assert EnvSpec.from_json(env.spec.to_json()).kwargs["cfg"] == {}
    env.close()
    cfg = make_task_cfg(FLAT)
    cfg.rewards["joint_torque"].func = lin_vel_z
    env = gym.make(FLAT, cfg=cfg)
    with pytest.raises(ValueError, match=r"rewards\.joint_torque\.func.*lin_vel_z"):
        env.spec.to_json()
    env.close()


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ("a", TypeError), (True, TypeError)])
def test_a_wrong_seed_is_the_same_error_for_one_robot_and_for_many(
    seed: object, error: type[Exception], make_vec, make_single
) -> None:
    told = []
    for env in (make_vec(1), make_single()):
        with pytest.raises(error) as refused:
            env.reset(seed=seed)
        told.append(str(refused.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("num_envs", [6, 70])
def test_there_is_a_picture_of_each_environment(num_envs: int, make_vec) -> None:
    cfg = {"viewer.resolution": (16, 12)}
    env = make_vec(num_envs, render_mode="rgb_array", cfg=cfg)
    env.reset(seed=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pictures = env.render()
    assert [picture.shape for picture in pictures] == [(12, 16, 3)] * num_envs
    drawn = [picture.std() > 1.0 for picture in pictures]
    if num_envs <= 64:
        assert all(drawn)
        assert not told
    else:
        assert drawn == [True] * 4 + [False] * (num_envs - 4)
        assert "4 of 70" in str(told[0].message)
    assert np.array_equal(pictures[3], env.unwrapped.sim.render(3))


def test_gymnasium_films_more_than_four_robots(tmp_path: Path, make_vec) -> None:
    if not hasattr(gym.wrappers.vector, "RecordVideo"):
        pytest.skip("Gymnasium 1.2 films no vector environments")
    pytest.importorskip("moviepy")
    env = make_vec(
        6,
        render_mode="rgb_array",
        autoreset_mode="NextStep",
        cfg={"viewer.resolution": (32, 32)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = gym.wrappers.vector.RecordVideo(
            env, str(tmp_path), step_trigger=lambda step: step == 0, video_length=3
        )
        env.reset(seed=0)
        for _ in range(5):
            env.step(np.zeros((6, 12), np.float32))
        env.close()
    (film,) = tmp_path.glob("*.mp4")
    assert film.stat().st_size > 0


def steps_of_an_episode(env: gym.vector.VectorEnv) -> int:
    env.reset(seed=0)
    for step in range(1, 60):
        _, _, terminated, truncated, _ = env.step(np.zeros((2, 12), np.float32))
        if (terminated | truncated).any():
            return step
    return 0


@pytest.mark.parametrize(("limit", "steps"), [(7, 7), (None, 10), (23, 23), (-1, 0)])
def test_a_batch_keeps_the_time_limit_that_it_is_given(limit: int | None, steps: int) -> None:
    cfg = {"episode_length_s": 0.2, "terminations.fallen": None}
    env = gym.make_vec(FLAT, num_envs=2, cfg=cfg, max_episode_steps=limit)
    assert steps_of_an_episode(env) == steps
    env.close()


def test_the_specification_of_one_robot_tells_when_its_episodes_end() -> None:
    cfg = {"episode_length_s": 0.2}
    shorter = gym.make(FLAT, cfg=cfg, max_episode_steps=7)
    assert shorter.spec is not None
    assert shorter.spec.max_episode_steps == 7
    late = gym.wrappers.TimeLimit(gym.make(FLAT, cfg=cfg), 23)
    with pytest.warns(UserWarning, match=r"23 .* 10 steps"):
        spec = late.spec
    assert spec is not None
    assert spec.max_episode_steps == 10
    assert EnvSpec.from_json(spec.to_json()).max_episode_steps == 10
    shorter.close()
    late.close()


def length_of_an_episode(env: gym.Env) -> tuple[int, bool]:
    """Return the steps of an episode, and whether its end is a termination."""
    env.reset(seed=0)
    for step in range(1, 60):
        _, _, terminated, truncated, _ = env.step(np.zeros(12, np.float32))
        if terminated or truncated:
            return step, bool(terminated)
    return 0, False


@pytest.mark.parametrize(("limit", "steps"), [(7, 7), (None, 10), (10, 10), (23, 23)])
@pytest.mark.parametrize("finite", [False, True])
def test_one_robot_keeps_the_time_limit_that_it_is_given(
    limit: int | None, steps: int, finite: bool
) -> None:
    cfg = {"episode_length_s": 0.2, "terminations.fallen": None, "is_finite_horizon": finite}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(FLAT, cfg=cfg, max_episode_steps=limit)
        assert env.spec is not None
        # Made again from its specification, it is the same.
        for made in (env, gym.make(env.spec), gym.make(EnvSpec.from_json(env.spec.to_json()))):
            assert made.spec is not None
            assert made.spec.max_episode_steps == steps
            assert length_of_an_episode(made) == (steps, finite and steps >= 10)
            made.close()
        batch = gym.make_vec(env.spec, num_envs=2)
    assert steps_of_an_episode(batch) == steps
    batch.close()


def test_a_longer_limit_is_kept_when_a_specification_is_made_or_one_robot_is_vectorized() -> None:
    cfg = {"episode_length_s": 0.2, "terminations.fallen": None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.wrappers.TransformReward(gym.make(FLAT, cfg=cfg), abs)
        assert env.spec is not None
        longer = gym.make(env.spec, max_episode_steps=23)
        assert longer.spec is not None
        assert longer.spec.max_episode_steps == 23
        plain = gym.make(FLAT, cfg=cfg)
        assert plain.spec is not None
        from_json = EnvSpec.from_json(plain.spec.to_json())
        assert length_of_an_episode(gym.make(from_json, max_episode_steps=23))[0] == 23
        again = gym.make(longer.spec, max_episode_steps=31)
        assert isinstance(again, gym.wrappers.TransformReward)
        assert (length_of_an_episode(longer)[0], length_of_an_episode(again)[0]) == (23, 31)
        kwargs = {"num_envs": 2, "cfg": cfg, "max_episode_steps": 23}
        batch = gym.make_vec(FLAT, vectorization_mode="sync", **kwargs)
    assert steps_of_an_episode(batch) == 23
    for made in (env, longer, again, batch):
        made.close()
    with pytest.raises(ValueError, match=r"=2000 .* 1000 .*'episode_length_s': 40"):
        gym.make_vec("Legged/Go2-Legs-v0", vectorization_mode="sync", max_episode_steps=2000)


def test_a_limit_that_the_methods_of_a_task_do_not_keep_is_refused() -> None:
    with pytest.raises(ValueError, match=r"=2000 .* 1000 .*'episode_length_s': 40"):
        gym.make("Legged/Go2-Legs-v0", max_episode_steps=2000)
    env = gym.make("Legged/Go2-Legs-v0", cfg={"episode_length_s": 40.0}, max_episode_steps=2000)
    assert env.spec is not None
    assert env.spec.max_episode_steps == 2000
    env.close()


def test_a_specification_can_be_copied_and_made_into_either_kind() -> None:
    spec = gym.spec(FLAT)
    for given in (spec, copy.deepcopy(spec), FLAT):
        gym.make(given).close()
        gym.make_vec(given, num_envs=2).close()
        gym.make_vec(given, num_envs=2, vectorization_mode="sync").close()


def test_one_robot_is_shown_in_a_window_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(RuntimeError, match=r"render_mode='human'.*'rgb_array'.*--web"):
        gym.make(FLAT, render_mode="human")
    with pytest.raises(ValueError, match=r"render_mode='human'.*gymnasium\.make\("):
        gym.make_vec(FLAT, num_envs=2, render_mode="human")
    # A display that there is not: then as if there were one.
    monkeypatch.setenv("DISPLAY", ":77")
    with pytest.raises(RuntimeError, match="no display"):
        gym.make(FLAT, render_mode="human")
    for module in ("pictures", "single"):
        monkeypatch.setattr(f"legged_envs.envs.{module}.has_display", lambda: True)
    env = gym.make(FLAT, render_mode="human")
    robot: Any = env.unwrapped
    shown: list[float] = []
    monkeypatch.setattr(robot.core.sim, "view", lambda: shown.append(time.perf_counter()) or True)
    env.reset(seed=0)
    for _ in range(10):
        env.step(np.zeros(12, np.float32))
    assert len(shown) == 11 and env.render() is None
    # Ten steps of 0.02 s. The window waits after the first two, at the latest.
    assert shown[-1] - shown[0] > 0.15
    monkeypatch.setattr(robot.core.sim, "view", lambda: shown.append(0.0))
    for _ in range(5):
        env.step(np.zeros(12, np.float32))
    assert len(shown) == 12, "a window that was closed stays closed"
    env.close()


def test_the_saved_state_of_one_robot_has_the_count_of_its_time_limit():
    env = gym.make("Legged/Go2-Flat-v0", cfg={"episode_length_s": 0.08})
    env.reset(seed=0)
    action = np.zeros(12, np.float32)
    env.step(action)
    state = env.get_wrapper_attr("get_state")()
    expected = [env.step(action)[3] for _ in range(3)]
    env.get_wrapper_attr("set_state")(state)
    assert [env.step(action)[3] for _ in range(3)] == expected == [False, False, True]
    with pytest.raises(ValueError, match="elapsed_steps"):
        env.get_wrapper_attr("set_state")(state["env"])
    env.close()
