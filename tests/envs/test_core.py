"""The registered environments: Gymnasium's contract, determinism, isolation, saved state and bad input."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3.common.env_checker
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs import make_task_cfg
from legged_envs.envs import unwrap
from legged_envs.envs.core import CoreVectorEnv
from legged_envs.managers import CostTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.wrappers import ObsNormalize, ToTorch
from legged_envs.wrappers.plumbing.base import StatefulWrapper

GO2, G1 = "Legged/Go2-Flat-v0", "Legged/G1-Flat-v0"
GO2_MIMIC, G1_MIMIC = "Legged/Go2-Mimic-v0", "Legged/G1-Mimic-v0"
IDS = pytest.mark.parametrize("task", [GO2, G1, GO2_MIMIC, G1_MIMIC])
GO2_IDS = pytest.mark.parametrize("task", [GO2, GO2_MIMIC])
NUM_JOINTS = {GO2: 12, G1: 12, GO2_MIMIC: 12, G1_MIMIC: 29}
MODES = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
GROUP_SIZES = {GO2: {"policy": 45, "critic": 45 + 3 + 1 + 4 + 4 + 4 + 1 + 1 + 3 + 2}}


def without_clock(info: dict[str, Any]) -> dict[str, Any]:
    """An info without the wall-clock time of episodes, which no two runs share."""
    info = copy.deepcopy(info)
    for part in (info, info.get("final_info", {})):
        if "episode" in part:
            part["episode"].pop("t", None)
    return info


def run(env: VectorEnv, actions: np.ndarray) -> list[Any]:
    """Everything that the steps return, copied; environments that ended are reset where the stack does not do it."""
    trace = []
    for action in actions:
        step = env.step(action if env.unwrapped.array == "numpy" else torch.from_numpy(action))
        trace.append([*copy.deepcopy(step[:4]), without_clock(step[4])])
        ended = step[2] | step[3]
        if env.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            observation, info = env.reset(options={"reset_mask": ended})
            trace[-1] += [copy.deepcopy(observation), without_clock(info)]
    return trace


def rows(tree: Any, index: Any, num_envs: int) -> Any:
    """The rows of some environments, of every array that has one row per environment."""
    if isinstance(tree, dict):
        return {key: rows(value, index, num_envs) for key, value in tree.items() if key != "log"}
    if isinstance(tree, (list, tuple)):
        return [rows(value, index, num_envs) for value in tree]
    return tree[index] if tree.ndim and len(tree) == num_envs else tree


def python(code: str, without: tuple[str, ...] = ()) -> str:
    """Run ``code`` in a fresh interpreter, in which this package can be imported; returns what it prints.

    Variables ``without`` are not in its environment.
    """
    root = str(Path(__file__).resolve().parents[2])
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={name: value for name, value in os.environ.items() if name not in without},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


# --- Gymnasium --------------------------------------------------------------------------------------------------------


@IDS
def test_check_env_of_gymnasium_passes_without_a_warning(task, make_single):
    env = make_single(task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@IDS
def test_check_env_of_stable_baselines3_passes_without_a_warning(task, make_single):
    env = make_single(task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stable_baselines3.common.env_checker.check_env(env, warn=True)


@IDS
@pytest.mark.parametrize("observations", ["policy", "dict"])
def test_spaces_are_batched_and_contain_what_is_returned(task, observations, make_vec):
    env = make_vec(4, task, observations=observations)
    assert isinstance(env, VectorEnv) and env.num_envs == 4
    num_joints = NUM_JOINTS[task]
    assert env.action_space == gym.spaces.Box(-1.0, 1.0, (4, num_joints))
    assert env.single_action_space == gym.spaces.Box(-1.0, 1.0, (num_joints,))
    space = env.single_observation_space
    if observations == "dict":
        assert set(space.spaces) == set(env.unwrapped.cfg.observations)
        space = space["policy"]
    clock = 2 if task == G1 else 0
    assert (space.shape, space.dtype) == ((9 + 3 * num_joints + clock,), np.float32)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    env.action_space.seed(0)
    for _ in range(3):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert (reward.shape, reward.dtype) == ((4,), np.float32)
        for flag in (terminated, truncated):
            assert (flag.shape, flag.dtype) == ((4,), np.bool_)


def test_the_groups_have_the_documented_sizes(make_vec):
    space = make_vec(observations="dict").single_observation_space
    assert {name: box.shape[0] for name, box in space.items()} == GROUP_SIZES[GO2]


@IDS
def test_the_unbatched_environment_is_of_the_same_task(task, make_vec, make_single):
    single, batched = make_single(task), make_vec(2, task)
    assert single.observation_space == batched.single_observation_space
    assert single.action_space == batched.single_action_space
    assert single.unwrapped.cost_names == batched.unwrapped.cost_names
    assert single.unwrapped.cost_limits == batched.unwrapped.cost_limits
    observation, _ = single.reset(seed=0)
    assert observation in single.observation_space
    observation, reward, terminated, truncated, info = single.step(single.action_space.sample())
    assert observation in single.observation_space
    assert [type(x) for x in (reward, terminated, truncated, info["cost"])] == [
        float,
        bool,
        bool,
        float,
    ]
    assert info["costs"].shape == (len(single.unwrapped.cost_names),)
    assert single.spec.max_episode_steps == {G1: 250}.get(task, 1000)


@MODES
def test_metadata_says_how_episodes_are_reset(mode, make_vec):
    for given in (mode, mode.value):
        assert make_vec(autoreset_mode=given).metadata["autoreset_mode"] is mode
    assert make_vec().metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert make_vec().unwrapped.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert make_vec().metadata["render_fps"] == 50


@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_info_has_the_documented_keys_shapes_and_kinds(array, make_vec, random_actions):
    env = make_vec(4, array=array, observations="dict", max_episode_steps=5)
    kind = np.ndarray if array == "numpy" else torch.Tensor
    names, limits = env.unwrapped.cost_names, env.unwrapped.cost_limits
    assert {
        "joint_position",
        "joint_velocity",
        "joint_torque",
        "body_contact",
        "base_orientation",
    } < set(names)
    assert len(limits) == len(names) and all(limit > 0.0 for limit in limits)
    assert env.reset(seed=0)[1] == {}

    def check(value: Any, shape: tuple[int, ...], dtype: str) -> None:
        assert isinstance(value, kind)
        assert (tuple(value.shape), str(value.dtype).removeprefix("torch.")) == (shape, dtype)

    for step, action in enumerate(random_actions(10, 4), start=1):
        info = env.step(action if array == "numpy" else torch.from_numpy(action))[4]
        check(info["cost"], (4,), "float32")
        check(info["costs"], (4, len(names)), "float32")
        assert (info["costs"] >= 0.0).all()
        np.testing.assert_allclose(
            np.asarray(info["cost"]), np.asarray(info["costs"]).sum(1), rtol=1e-6
        )
        if step % 5:
            assert set(info) == {"cost", "costs"}
            continue
        assert {"final_obs", "_final_obs", "final_info", "episode", "_episode", "log"} <= set(info)
        assert {name: tuple(value.shape) for name, value in info["final_obs"].items()} == {
            name: (4, size) for name, size in GROUP_SIZES[GO2].items()
        }
        for mask in ("_final_obs", "_episode"):
            check(info[mask], (4,), "bool")
        for key, dtype in {"r": "float32", "l": "int64", "t": "float32", "c": "float32"}.items():
            check(info["episode"][key], (4,), dtype)
        assert {"cost", "costs"} <= set(info["final_info"])
        assert info["log"]["episodes"] == 4
        assert all(value.ndim == 0 for value in info["log"].values())


def test_dict_observations_hold_the_policy_observation(make_vec, random_actions, assert_same):
    actions = random_actions(12, 3)
    plain, grouped = (
        make_vec(max_episode_steps=5),
        make_vec(max_episode_steps=5, observations="dict"),
    )
    assert_same(plain.reset(seed=1)[0], grouped.reset(seed=1)[0]["policy"])
    for one, other in zip(run(plain, actions), run(grouped, actions), strict=True):
        assert_same(one[0], other[0]["policy"])
        assert_same(one[1:4], other[1:4])


@MODES
def test_torch_and_numpy_environments_return_the_same_values(
    mode, make_vec, random_actions, assert_same
):
    traces = []
    for array in ("numpy", "torch"):
        env = make_vec(array=array, observations="dict", max_episode_steps=5, autoreset_mode=mode)
        first = env.reset(seed=1)[0]
        traces.append([first, *run(env, random_actions(12, 3))])

    def to_numpy(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: to_numpy(value) for key, value in tree.items()}
        if isinstance(tree, (list, tuple)):
            return [to_numpy(value) for value in tree]
        assert isinstance(tree, torch.Tensor) and not tree.requires_grad
        return tree.numpy()

    def listed(tree: Any) -> Any:
        return [listed(value) for value in tree] if isinstance(tree, (list, tuple)) else tree

    assert_same(listed(traces[0]), to_numpy(traces[1]))


def test_it_runs_under_inference_mode_and_on_and_keeps_the_callers_settings(
    make_vec, random_actions, assert_same
):
    actions = torch.from_numpy(random_actions(9, 3))
    plain, mixed = (make_vec(array="torch", max_episode_steps=4) for _ in range(2))
    expected = [plain.reset(seed=0)[0], *(plain.step(action)[0] for action in actions)]
    torch.set_num_threads(2)
    with torch.inference_mode():
        actual = [mixed.reset(seed=0)[0], *(mixed.step(action)[0] for action in actions[:5])]
    actual += [mixed.step(action.clone().requires_grad_())[0] for action in actions[5:]]
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert_same([x.clone() for x in actual], expected)
    assert not any(x.requires_grad or x.is_inference() for x in actual[6:])


def test_a_picture_of_each_of_the_first_environments_and_none_without_a_render_mode(
    make_vec, make_single
):
    env = make_vec(2, render_mode="rgb_array")
    env.reset(seed=0)
    pictures = env.render()
    assert len(pictures) == 2
    single = make_single(render_mode="rgb_array")
    single.reset(seed=0)
    for picture in (*pictures, single.render()):
        assert (picture.shape, picture.dtype) == ((480, 640, 3), np.uint8)
        assert picture.std() > 10.0
    assert not np.array_equal(*pictures)
    with pytest.raises(RuntimeError, match="render_mode"):
        make_vec().unwrapped.render()


# --- determinism and isolation ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [GO2, G1, GO2_MIMIC])
@MODES
def test_the_same_seed_gives_the_same_run_bit_for_bit_and_another_seed_another(
    task, mode, make_vec, random_actions, assert_same
):
    actions = random_actions(15, 3, NUM_JOINTS[task])
    traces = []
    for seed in (5, 5, 6):
        env = make_vec(3, task, max_episode_steps=6, autoreset_mode=mode, observations="dict")
        traces.append([env.reset(seed=seed)[0], run(env, actions)])
    assert_same(traces[0], traces[1])
    assert not np.isclose(traces[0][0]["policy"], traces[2][0]["policy"]).all(1).any()
    env.reset(seed=5)
    again = [env.reset(seed=5)[0], run(env, actions)]
    assert_same(again[0], traces[0][0])
    log_free = [[x[:4], x[4]["cost"]] for x in again[1]]
    assert_same(log_free, [[x[:4], x[4]["cost"]] for x in traces[0][1]])


@GO2_IDS
@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_an_environment_does_the_same_whatever_the_number_of_environments(
    num_envs, task, make_vec, random_actions, assert_same
):
    actions = random_actions(60, 64)
    small = make_vec(num_envs, task, observations="dict", max_episode_steps=25)
    large = make_vec(64, task, observations="dict", max_episode_steps=25)
    few = slice(0, num_envs)
    assert_same(small.reset(seed=4)[0], rows(large.reset(seed=4)[0], few, 64))
    ends = 0
    for action in actions:
        one, other = small.step(action[few]), large.step(action)
        one, other = [*one[:4], without_clock(one[4])], [*other[:4], without_clock(other[4])]
        for key in ("final_obs", "episode", "final_info", "_final_obs", "_final_info", "_episode"):
            if key not in one[4]:  # another of the 64 ended
                other[4].pop(key, None)
        other = rows(other, few, 64)
        assert_same(rows([one], slice(None), num_envs), [other])
        ends += int((one[2] | one[3]).sum())
    assert ends >= 2 * num_envs


@GO2_IDS
@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.SAME_STEP])
def test_a_reset_of_one_environment_leaves_the_others_bit_identical(
    mode, task, make_vec, random_actions, assert_same
):
    actions = random_actions(30, 4)
    undisturbed, disturbed = (
        make_vec(4, task, autoreset_mode=mode, observations="dict", cfg={"terminations": {}})
        for _ in range(2)
    )
    others = np.array([0, 1, 3])
    mask = np.array([False, False, True, False])
    for env in (undisturbed, disturbed):
        env.reset(seed=2)
    before = None
    for step, action in enumerate(actions):
        if step in (7, 8, 20):
            observation, _ = disturbed.reset(
                options={"reset_mask": mask}, seed=9 if step == 20 else None
            )
            assert_same(rows(observation, others, 4), rows(before, others, 4))
            assert not np.array_equal(observation["policy"][2], before["policy"][2])
        one, other = disturbed.step(action), undisturbed.step(action)
        assert_same(rows(list(one), others, 4), rows(list(other), others, 4))
        before = one[0]
    assert not np.array_equal(one[0]["policy"][2], other[0]["policy"][2])


@GO2_IDS
def test_a_partial_reset_with_a_seed_starts_that_environment_as_a_whole_reset_would(
    task, make_vec, assert_same
):
    one, other = make_vec(4, task), make_vec(4, task)
    one.reset(seed=2)
    mask = np.array([False, True, False, True])
    partial = one.reset(seed=7, options={"reset_mask": mask})[0]
    assert_same(partial[mask], other.reset(seed=7)[0][mask])


@IDS
def test_the_unbatched_environment_does_what_environment_0_of_a_batch_does(
    task, make_vec, make_single, random_actions, assert_same
):
    single, batched = (
        make_single(task, max_episode_steps=12),
        make_vec(3, task, max_episode_steps=12),
    )
    observation, _ = single.reset(seed=8)
    assert_same(observation, batched.reset(seed=8)[0][0])
    for action in random_actions(30, 3, NUM_JOINTS[task]):
        observation, reward, terminated, truncated, info = single.step(action[0])
        all_obs, all_rewards, all_terminated, all_truncated, all_infos = batched.step(action)
        ended = terminated or truncated
        assert_same(observation, all_infos["final_obs"][0] if ended else all_obs[0])
        assert (reward, terminated, truncated) == (
            all_rewards[0],
            all_terminated[0],
            all_truncated[0],
        )
        assert info["cost"] == all_infos["cost"][0]
        assert_same(info["costs"], all_infos["costs"][0])
        if ended:
            assert_same(single.reset()[0], all_obs[0])


def test_the_operating_system_seeds_the_first_reset_without_a_seed(make_vec):
    observations = [make_vec().reset()[0] for _ in range(2)]
    assert not np.isclose(*observations).all(1).any()


# --- saved state ------------------------------------------------------------------------------------------------------


def through_pickle(state: Any) -> Any:
    return pickle.loads(pickle.dumps(state))


def through_torch_save(state: Any) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@MODES
@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_a_saved_run_continues_bit_for_bit_also_in_a_fresh_environment(
    mode, array, make_vec, random_actions, assert_same
):
    def fresh() -> VectorEnv:
        cfg = {
            "events.push.interval_s": (0.1, 0.3),
            "commands.velocity.resampling_time_s": (0.1, 0.5),
        }
        cfg["max_action_delay"] = 1
        return make_vec(
            3, array=array, observations="dict", autoreset_mode=mode, max_episode_steps=9, cfg=cfg
        )

    env = fresh()
    env.reset(seed=3)
    actions = random_actions(50, 3)
    run(env, actions[:19])  # in the next-step mode episodes have ended and are not reset yet
    state = env.get_state()
    kept = copy.deepcopy(state)
    expected = run(env, actions[19:])
    for target, passed in (
        (env, state),
        (fresh(), kept),
        (fresh(), through_pickle(state)),
        (fresh(), through_torch_save(state)),
    ):
        target.set_state(passed)
        assert_same(run(target, actions[19:]), expected)
    assert_same(_without_ages(state), _without_ages(kept))


def _without_ages(tree: Any) -> Any:
    """A state without the wall-clock ages of episodes."""
    return {
        k: _without_ages(v) if isinstance(v, dict) else v for k, v in tree.items() if k != "ages"
    }


def test_an_episode_goes_on_across_a_save_with_its_return_length_and_time_limit(
    make_vec, random_actions
):
    env, fresh = make_vec(3, max_episode_steps=10), make_vec(3, max_episode_steps=10)
    env.reset(seed=0)
    first = run(env, random_actions(6, 3))
    fresh.set_state(env.get_state())
    last = run(fresh, random_actions(4, 3, seed=1))
    assert last[-1][3].all()
    assert last[-1][4]["episode"]["l"].tolist() == [10, 10, 10]
    np.testing.assert_allclose(
        last[-1][4]["episode"]["r"], sum(step[1] for step in first + last), rtol=1e-5
    )
    np.testing.assert_allclose(
        last[-1][4]["episode"]["c"], sum(step[4]["cost"] for step in first + last), rtol=1e-5
    )


def test_the_unbatched_environment_continues_from_a_saved_state(
    make_single, random_actions, assert_same
):
    def go_on(env: gym.Env, actions: np.ndarray) -> list[Any]:
        return [env.step(action)[:2] for action in actions]

    env, fresh = make_single().unwrapped, make_single().unwrapped
    env.reset(seed=1)
    actions = random_actions(20, 1)[:, 0]
    go_on(env, actions[:8])
    state = env.get_state()
    expected = go_on(env, actions[8:])
    fresh.set_state(state)
    assert_same(go_on(fresh, actions[8:]), expected)


def test_a_state_of_another_environment_is_refused_and_nothing_changes(
    make_vec, random_actions, assert_same
):
    env = make_vec(3)
    env.reset(seed=0)
    run(env, random_actions(3, 3))
    before = _without_ages(env.get_state())
    wrong = []
    for kwargs in ({"num_envs": 2}, {"task": G1}, {"autoreset_mode": "Disabled"}):
        other = make_vec(**kwargs)
        other.reset(seed=1)
        wrong.append(other.get_state())
    for state in wrong:
        with pytest.raises(ValueError):
            env.set_state(state)
        assert_same(_without_ages(env.get_state()), before)


def test_a_state_with_other_observations_is_refused(make_vec):
    env, other = make_vec(2), make_vec(2, observations="dict")
    env.reset(seed=0), other.reset(seed=0)
    with pytest.raises(ValueError, match=r"'observation'\].*\['policy'\].*'critic'"):
        unwrap(other).set_state(unwrap(env).get_state())


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_or_a_pickle_goes_on_as_the_environment_does(
    single, copied, make_vec, make_single, random_actions
):
    env = make_single() if single else make_vec(3, max_episode_steps=6)
    actions = random_actions(8, 3)
    if single:
        actions = actions[:, 0]
    env.reset(seed=0)
    for action in actions[:4]:
        env.step(action)
    other = copied(env)
    for action in actions[4:]:
        expected, got = env.step(action), other.step(action)
        for a, b in zip(expected[:4], got[:4], strict=True):
            np.testing.assert_array_equal(a, b)
        assert expected[4].keys() == got[4].keys()
    other.close()


# --- bad physics ------------------------------------------------------------------------------------------------------


def all_finite(tree: Any) -> bool:
    if isinstance(tree, SimpleNamespace):
        return all_finite(vars(tree))
    if isinstance(tree, dict):
        return all(all_finite(value) for value in tree.values())
    if isinstance(tree, (list, tuple)):
        return all(all_finite(value) for value in tree)
    return bool(np.isfinite(np.asarray(tree)).all())


@pytest.mark.usefixtures("log_elsewhere")
@MODES
@pytest.mark.parametrize("field", ["qpos", "qvel"])
def test_a_nan_in_one_environment_ends_and_resets_it_alone_and_is_counted(
    mode, field, make_vec, random_actions, assert_same
):
    healthy, sick = (make_vec(3, autoreset_mode=mode, observations="dict") for _ in range(2))
    for env in (healthy, sick):
        env.reset(seed=1)
        run(env, random_actions(4, 3))
    sick.unwrapped.sim.batch.bind(field)[1, 10] = np.nan
    actions = random_actions(8, 3, seed=1)
    trace, expected = run(sick, actions), run(healthy, actions)
    assert all_finite(trace)
    assert trace[0][2].tolist() == [False, True, False] and not trace[0][3].any()
    assert trace[0][4]["episode"]["l"].tolist() == [0, 5, 0]
    assert not any(step[2].any() for step in trace[1:])
    others = np.array([0, 2])
    for step, expected_step in zip(trace, expected, strict=True):
        assert_same(rows(step[:4], others, 3), rows(expected_step[:4], others, 3))
        assert_same(step[4]["costs"][others], expected_step[4]["costs"][others])
    logs = [info["log"] for step in trace for info in (step[4], *step[6:]) if "log" in info]
    assert [(log["episodes"], log["termination/bad_physics"]) for log in logs] == [(1, 1)]
    state = sick.get_state()
    assert all_finite(
        state["env"]["env"] if mode is AutoresetMode.DISABLED else state["env"]["env"]["env"]
    )


# --- aliasing ---------------------------------------------------------------------------------------------------------


def scribble(tree: Any) -> None:
    """Overwrite every array; scalars cannot be."""
    if isinstance(tree, dict):
        for value in tree.values():
            scribble(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            scribble(value)
    elif isinstance(tree, torch.Tensor):
        tree.fill_(True if tree.dtype == torch.bool else 77)
    elif isinstance(tree, np.ndarray):
        tree[...] = True if tree.dtype == np.bool_ else 77


@GO2_IDS
@MODES
@pytest.mark.parametrize("array", ["numpy", "torch"])
@pytest.mark.parametrize("num_envs", [1, 3])
def test_what_the_caller_does_to_a_returned_array_reaches_nothing(
    mode, array, num_envs, task, make_vec, random_actions, assert_same
):
    def steps(env: VectorEnv, after: Callable[[Any], None]) -> list[Any]:
        results = [env.reset(seed=1)]
        after(results[0])
        trace = [copy.deepcopy(results[0][0])] if after is not scribble else []
        for action in random_actions(12, num_envs):
            passed = action if array == "numpy" else torch.from_numpy(action)
            step = env.step(passed)
            trace.append([*copy.deepcopy(step[:4]), without_clock(step[4])])
            ended = copy.deepcopy(step[2] | step[3])
            after(step)
            after(passed)
            if mode is AutoresetMode.DISABLED and ended.any():
                again = env.reset(options={"reset_mask": ended})
                trace.append(copy.deepcopy(again[0]))
                after(again)
        return trace

    kwargs = {
        "array": array,
        "observations": "dict",
        "max_episode_steps": 5,
        "autoreset_mode": mode,
    }
    expected = steps(make_vec(num_envs, task, **kwargs), lambda tree: None)[1:]
    assert_same(steps(make_vec(num_envs, task, **kwargs), scribble), expected)


@MODES
@pytest.mark.parametrize("array", ["numpy", "torch"])
@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("cost_names", [(), ("foot_slip",), ("foot_slip", "joint_torque")], ids=len)
def test_a_returned_array_never_changes_later(
    mode, array, num_envs, cost_names, make_vec, random_actions, assert_same
):
    cfg = make_task_cfg(GO2)
    cfg.costs = {name: cfg.costs[name] for name in cost_names}
    kwargs = {
        "array": array,
        "observations": "dict",
        "max_episode_steps": 5,
        "autoreset_mode": mode,
        "cfg": cfg,
    }
    env = make_vec(num_envs, **kwargs)
    kept = [env.reset(seed=1)]
    copies = [copy.deepcopy(kept[0])]
    for action in random_actions(12, num_envs):
        kept.append(env.step(action if array == "numpy" else torch.from_numpy(action)))
        copies.append(copy.deepcopy(kept[-1]))
        if mode is AutoresetMode.DISABLED and (kept[-1][2] | kept[-1][3]).any():
            kept.append(env.reset(options={"reset_mask": kept[-1][2] | kept[-1][3]}))
            copies.append(copy.deepcopy(kept[-1]))
    assert_same(kept, copies)


@GO2_IDS
def test_arrays_of_the_unbatched_environment_never_change_later(
    task, make_single, random_actions, assert_same
):
    env = make_single(task)
    kept = [env.reset(seed=1)]
    copies = [copy.deepcopy(kept[0])]
    for action in random_actions(12, 1)[:, 0]:
        kept.append(env.step(action))
        copies.append(copy.deepcopy(kept[-1]))
    assert_same(kept, copies)


# --- one process, many environments -----------------------------------------------------------------------------------


def test_many_environments_come_and_go_in_one_process(random_actions):
    def threads() -> int:
        status = Path("/proc/self/status")
        return int(status.read_text().split("Threads:")[1].split()[0]) if status.exists() else 0

    before = threads()
    for i in range(12):
        env = gym.make_vec(GO2, num_envs=2, render_mode="rgb_array")
        env.reset(seed=i)
        env.step(random_actions(1, 2)[0])
        if i % 4 == 0:
            env.render()
        env.close()
        env.close()
        del env
    gc.collect()
    assert threads() <= before + 6


def test_an_environment_that_could_not_be_made_can_be_closed():
    # Gymnasium 1.2 closes an environment when it is freed, and prints what goes wrong.
    CoreVectorEnv.__new__(CoreVectorEnv).close()
    cfg = make_task_cfg(GO2)
    cfg.rewards["broken"] = RewardTermCfg(lambda env, size: env, weight=1.0)
    task = cfg.make_task()
    with pytest.raises(TypeError, match="size"):
        CoreVectorEnv(task, 1)
    task.env.close()


def test_environments_side_by_side_do_not_disturb_each_other(make_vec, random_actions, assert_same):
    actions = random_actions(10, 3)
    alone = make_vec(3)
    alone.reset(seed=1)
    expected = run(alone, actions)
    one, other = make_vec(3), make_vec(5, G1)
    one.reset(seed=1)
    other.reset(seed=2)
    trace = []
    for action, other_action in zip(actions, random_actions(10, 5), strict=True):
        trace += run(one, action[None])
        other.step(other_action)
    assert_same(trace, expected)


# --- Gymnasium's own statistics ---------------------------------------------------------------------------------------


def test_gymnasiums_statistics_take_the_place_of_ours():
    envs = gym.make_vec(GO2, num_envs=2, statistics=False, max_episode_steps=3)
    envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    envs.reset(seed=0)
    for _ in range(3):
        info = envs.step(np.zeros((2, 12), np.float32))[4]
    assert info["episode"]["l"].tolist() == [3, 3] and info["_episode"].all()
    envs.close()


@MODES
def test_gymnasiums_statistics_above_ours_are_refused_by_the_next_wrapper_or_at_the_first_end(
    mode, make_vec, make_single
):
    theirs = gym.wrappers.vector.RecordEpisodeStatistics
    env = make_vec(autoreset_mode=mode, max_episode_steps=2)
    for below in (env, gym.wrappers.vector.TransformReward(env, abs), ObsNormalize(ToTorch(env))):
        for between in (theirs(below), gym.wrappers.vector.TransformReward(theirs(below), abs)):
            with pytest.raises(ValueError, match=r"RecordEpisodeStatistics.*EpisodeStatistics"):
                StatefulWrapper(between)
        assert theirs(below, stats_key="theirs").metadata == below.metadata
        StatefulWrapper(theirs(below, stats_key="theirs"))
    # Gymnasium 1.2 closes the environment of a wrapper that is freed, so this is a new one.
    alone = theirs(make_vec(autoreset_mode=mode, max_episode_steps=2))
    alone.reset(seed=0)
    alone.step(np.zeros((alone.num_envs, 12), np.float32))
    with pytest.raises(ValueError, match="episode"):
        alone.step(np.zeros((alone.num_envs, 12), np.float32))
    for below in (env, ObsNormalize(ToTorch(env))):
        assert gym.wrappers.vector.NormalizeReward(below).metadata["autoreset_mode"] is mode
    single = gym.wrappers.RecordEpisodeStatistics(make_single(max_episode_steps=2))
    single.reset(seed=0)
    steps = [single.step(np.zeros(12, np.float32)) for _ in range(2)]
    assert steps[-1][4]["episode"]["l"] == 2


# --- imports ----------------------------------------------------------------------------------------------------------


def test_importing_the_package_loads_neither_torch_nor_mujoco():
    printed = python(
        "import gymnasium, legged_envs\n"
        f"assert {{*{[*NUM_JOINTS]}}} < {{name for name in gymnasium.registry if name.startswith('Legged/')}}\n"
        "print([name for name in ('torch', 'mujoco', 'rsl_rl') if name in sys.modules])"
    )
    assert printed.strip() == "[]"


def test_the_module_prefix_replaces_the_import():
    printed = python(
        "import gymnasium\n"
        "envs = gymnasium.make_vec('legged_envs:Legged/Go2-Flat-v0', num_envs=2)\n"
        "envs.reset(seed=0)\n"
        "print(envs.step(envs.action_space.sample())[0].shape)\n"
        "print(gymnasium.make('legged_envs:Legged/G1-Flat-v0').reset(seed=0)[0].shape)\n"
        "print('rsl_rl' in sys.modules)"
    )
    assert printed.split("\n")[:3] == ["(2, 45)", "(47,)", "False"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere MuJoCo renders without EGL")
def test_pictures_need_no_variable_of_the_environment():
    printed = python(
        "import gymnasium, legged_envs\n"
        "env = gymnasium.make('Legged/Go2-Flat-v0', render_mode='rgb_array')\n"
        "env.reset(seed=0)\n"
        "print(env.render().std() > 10.0)",
        without=("MUJOCO_GL", "DISPLAY"),
    )
    assert printed.strip() == "True"


def test_what_cannot_draw_says_which_variable_to_set():
    printed = python(
        "import os\n"
        "os.environ['MUJOCO_GL'] = 'nonsense'\n"
        "import gymnasium, legged_envs\n"
        "for value in ('nonsense', 'off'):\n"
        "    os.environ['MUJOCO_GL'] = value\n"
        "    try:\n"
        "        env = gymnasium.make('Legged/Go2-Flat-v0', render_mode='rgb_array')\n"
        "        env.reset(seed=0)\n"
        "        env.render()\n"
        "    except RuntimeError as error:\n"
        "        print(error)"
    )
    imported, started = printed.splitlines()
    assert re.search(
        "MUJOCO_GL='nonsense'.*egl.*libegl1",
        imported,
    )
    assert re.search("MUJOCO_GL='off'.*egl.*libegl1", started)


# --- bad input --------------------------------------------------------------------------------------------------------


def actions_with(value: float, env_id: int) -> np.ndarray:
    actions = np.zeros((3, 12), dtype=np.float32)
    actions[env_id, 5] = value
    return actions


def masks(values: list[Any], dtype: Any = bool) -> dict[str, Any]:
    return {"reset_mask": np.array(values, dtype=dtype)}


BAD_CALLS: dict[str, tuple[Callable[[VectorEnv], Any], Any, str]] = {
    "too few joints": (
        lambda e: e.step(np.zeros((3, 11), np.float32)),
        ValueError,
        r"\(3, 12\).*\(3, 11\)",
    ),
    "too many environments": (
        lambda e: e.step(np.zeros((4, 12), np.float32)),
        ValueError,
        r"\(3, 12\).*\(4, 12\)",
    ),
    "one action": (lambda e: e.step(np.zeros(12, np.float32)), ValueError, r"\(3, 12\).*\(12,\)"),
    "masks as actions": (
        lambda e: e.step(np.zeros((3, 12), bool)),
        TypeError,
        r"real numbers.*bool",
    ),
    "complex actions": (
        lambda e: e.step(np.zeros((3, 12), complex)),
        TypeError,
        r"real numbers.*complex",
    ),
    "objects as actions": (
        lambda e: e.step(np.full((3, 12), None)),
        TypeError,
        r"real numbers.*object",
    ),
    "words as actions": (
        lambda e: e.step([["0.5"] * 12] * 3),
        TypeError,
        r"real numbers.*list",
    ),
    "short lists": (lambda e: e.step([[0.0] * 11] * 3), ValueError, r"\(3, 12\).*\(3, 11\)"),
    "lists of several lengths": (
        lambda e: e.step([[0.0] * 12, [0.0] * 11, []]),
        ValueError,
        r"\(3, 12\).*inhomog",
    ),
    "double too large": (
        lambda e: e.step(np.full((3, 12), 1e300)),
        ValueError,
        r"finite.*\[0, 1, 2\]",
    ),
    "nan in a list": (
        lambda e: e.step(actions_with(np.nan, 1).tolist()),
        ValueError,
        r"finite.*\[1\]",
    ),
    "a number": (lambda e: e.step(0.0), TypeError, "float"),
    "no action": (lambda e: e.step(None), TypeError, r"NoneType"),
    "tensor actions": (lambda e: e.step(torch.zeros(3, 12)), TypeError, r"tensor"),
    "nan action": (lambda e: e.step(actions_with(np.nan, 1)), ValueError, r"finite.*\[1\]"),
    "infinite action": (
        lambda e: e.step(actions_with(-np.inf, 2)),
        ValueError,
        r"finite.*\[2\]",
    ),
    "short mask": (
        lambda e: e.reset(options=masks([True, False])),
        ValueError,
        r"reset_mask.*\(3,\).*\(2,\)",
    ),
    "two-dimensional mask": (
        lambda e: e.reset(options=masks([[True]] * 3)),
        ValueError,
        r"reset_mask.*\(3, 1\)",
    ),
    "integer mask": (
        lambda e: e.reset(options=masks([1, 0, 1], int)),
        TypeError,
        r"reset_mask.*int64",
    ),
    "list as mask": (
        lambda e: e.reset(options={"reset_mask": [True, False, True]}),
        TypeError,
        r"reset_mask.*list",
    ),
    "tensor as mask": (
        lambda e: e.reset(options={"reset_mask": torch.tensor([True, False, True])}),
        TypeError,
        r"reset_mask.*[tT]ensor",
    ),
    "unknown option": (
        lambda e: e.reset(options={"mask": None}),
        ValueError,
        r"'mask'.*'reset_mask'",
    ),
    "too few seeds": (lambda e: e.reset(seed=[1, 2]), ValueError, r"num_envs=3.*2"),
    "fraction as seed": (lambda e: e.reset(seed=1.5), (TypeError, ValueError), r"seed.*1\.5"),
    "word as seed": (lambda e: e.reset(seed="zero"), (TypeError, ValueError), r"seed.*zero"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
@MODES
def test_a_bad_call_is_refused_by_name_and_nothing_is_half_changed(
    name, mode, make_vec, random_actions, assert_same
):
    call, error, culprit = BAD_CALLS[name]
    env, twin = (make_vec(3, autoreset_mode=mode, max_episode_steps=5) for _ in range(2))
    for each in (env, twin):
        each.reset(seed=0)
        run(each, random_actions(4, 3))
    with pytest.raises(error, match=culprit):
        call(env)
    assert_same(_without_ages(env.get_state()), _without_ages(twin.get_state()))
    assert_same(run(env, random_actions(8, 3)), run(twin, random_actions(8, 3)))


def test_arrays_are_refused_by_an_environment_of_tensors(make_vec):
    env = make_vec(3, array="torch")
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"torch.*numpy"):
        env.step(np.zeros((3, 12), np.float32))
    with pytest.raises(TypeError, match=r"real numbers.*complex64"):
        env.step(torch.zeros(3, 12, dtype=torch.complex64))
    before = _without_ages(env.get_state())
    with pytest.raises(TypeError, match="reset_mask"):
        env.reset(options=masks([True, False, True]))
    assert repr(_without_ages(env.get_state())) == repr(before)


def test_a_mask_of_nobody_changes_nothing(make_vec, random_actions, assert_same):
    """Gymnasium's own environments refuse it; doing nothing is as good, failing half-way is not."""
    env, twin = make_vec(3), make_vec(3)
    for each in (env, twin):
        each.reset(seed=0)
        last = run(each, random_actions(4, 3))[-1][0]
    try:
        observation, info = env.reset(options=masks([False, False, False]))
    except ValueError as error:
        assert "reset_mask" in str(error)
    else:
        assert_same(observation, last)
        assert info == {}
    assert_same(run(env, random_actions(4, 3)), run(twin, random_actions(4, 3)))


@MODES
def test_calls_out_of_order_are_refused(mode, make_vec):
    env = make_vec(3, autoreset_mode=mode)
    zero = np.zeros((3, 12), np.float32)
    with pytest.raises(RuntimeError, match=r"step.*before reset"):
        env.step(zero)
    with pytest.raises(RuntimeError, match=r"first reset.*reset_mask"):
        env.reset(options=masks([True, False, False]))
    with pytest.raises(RuntimeError, match=r"get_state.*before reset"):
        env.get_state()
    env.reset(seed=0)
    env.step(zero)
    env.close()
    with pytest.raises(RuntimeError, match=r"step.*after close"):
        env.step(zero)
    with pytest.raises(RuntimeError, match=r"reset.*after close"):
        env.reset()


def test_calls_of_the_unbatched_environment_out_of_order_are_refused(make_single):
    env = make_single().unwrapped
    zero = np.zeros(12, np.float32)
    with pytest.raises(RuntimeError, match=r"step.*before reset"):
        env.step(zero)
    env.reset(seed=0)
    for action, error, culprit in (
        (np.zeros(11, np.float32), ValueError, r"\(12,\).*\(11,\)"),
        (np.zeros((1, 12), np.float32), ValueError, r"\(12,\).*\(1, 12\)"),
        (np.zeros(12, bool), TypeError, r"real numbers.*bool"),
        (np.full(12, np.nan, np.float32), ValueError, "finite"),
    ):
        with pytest.raises(error, match=culprit):
            env.step(action)
    with pytest.raises(ValueError, match="make_vec"):
        env.reset(options=masks([True]))
    with pytest.raises(ValueError, match="'colour'"):
        env.reset(options={"colour": "red"})
    env.close()
    with pytest.raises(RuntimeError, match=r"step.*after close"):
        env.step(zero)


@pytest.mark.parametrize(
    ("kwargs", "error", "culprit"),
    [
        ({"num_envs": 0}, ValueError, r"num_envs.*0"),
        ({"num_envs": -2}, ValueError, r"num_envs.*-2"),
        ({"num_envs": 2.5}, ValueError, r"num_envs.*2\.5"),
        ({"num_envs": "3"}, ValueError, r"num_envs.*'3'"),
        ({"num_envs": True}, ValueError, r"num_envs.*True"),
        ({"compile": True}, TypeError, "compile"),
        ({"device": "toaster"}, ValueError, r"device.*'toaster'"),
        ({"device": "cuda"}, ValueError, r"device.*'cuda'"),
        ({"sim": "bullet"}, ValueError, r"'bullet'.*'mujoco'"),
        ({"array": "jax"}, ValueError, r"array.*'jax'"),
        ({"observations": "pixels"}, ValueError, r"observations.*'pixels'"),
        ({"render_mode": "human"}, ValueError, r"render_mode.*'human'"),
        ({"autoreset_mode": "sometimes"}, ValueError, r"autoreset_mode.*SameStep.*'sometimes'"),
        ({"max_episode_steps": 0}, ValueError, r"max_episode_steps.*0"),
        ({"max_episode_steps": 2.5}, ValueError, r"max_episode_steps.*2\.5"),
        ({"max_episode_steps": "9"}, ValueError, r"max_episode_steps.*'9'"),
        ({"max_episode_steps": -2}, ValueError, r"max_episode_steps.*-2"),
        (
            {"colour": "red"},
            TypeError,
            r"make_vec\('Legged/Go2-Flat-v0'.*'colour'.*device",
        ),
        ({"autoreset": True}, TypeError, r"'autoreset'.*'autoreset_mode'"),
        ({"cfg": {"rewards.juggling.weight": 1.0}}, ValueError, r"'juggling'.*tracking_lin_vel"),
        ({"cfg": {"sim.timestep": 0.01}}, ValueError, r"'timestep'.*dt"),
        ({"cfg": "fast"}, TypeError, r"cfg.*str"),
        ({"cfg": {1: 2}}, TypeError, "paths.*1"),
        ({"cfg": {"robot.kp": -5}}, TypeError, r"'robot.kp'.*tuple\[float, ...\].*-5"),
        ({"cfg": {"robot": "g1"}}, TypeError, "'robot'.*RobotCfg.*'g1'"),
        ({"cfg": {"costs": None}}, TypeError, "'costs'.*dict.*None"),
        (
            {"cfg": {"rewards.joint_torque": -1.0}},
            TypeError,
            r"'rewards.joint_torque'.*RewardTermCfg.*-1.0",
        ),
        ({"cfg": {"only_positive_rewards": "no"}}, TypeError, "bool.*'no'"),
        (
            {"cfg": {"commands.velocity.lin_vel_x": 1.0}},
            TypeError,
            r"tuple\[float, float\].*1.0",
        ),
        (
            {"cfg": {"commands.velocity.lin_vel_x": (0, 1, 2)}},
            TypeError,
            r"tuple\[float, float\]",
        ),
        (
            {"cfg": {"events.push.mode": "always"}},
            ValueError,
            "'push': mode.*'always'",
        ),
        ({"cfg": {"events.push.func": 3}}, TypeError, "Callable.*3"),
        (
            {"cfg": {"rewards.joint_torque.weight": float("nan")}},
            ValueError,
            r"'rewards.joint_torque.weight'",
        ),
        (
            {"cfg": {"events.push.params.velocity": float("nan")}},
            ValueError,
            "velocity",
        ),
        (
            {"cfg": {"actions.joint_position.scale": float("inf")}},
            ValueError,
            "scale.*inf",
        ),
        (
            {"cfg": {"commands.velocity.resampling_time_s": (0, 0)}},
            ValueError,
            "resampling_time_s",
        ),
        (
            {"cfg": {"events.push.interval_s": (0, 0)}},
            ValueError,
            r"'push': interval_s.*\(0, 0\)",
        ),
        (
            {"cfg": {"events.friction.params.range": (2, 1)}},
            ValueError,
            r"'friction': range.*\(2, 1\)",
        ),
    ],
    ids=str,
)
def test_arguments_of_make_vec_that_make_no_sense_are_named(kwargs, error, culprit):
    with pytest.raises(error, match=culprit):
        gym.make_vec(GO2, **{"num_envs": 2, **kwargs})


@pytest.mark.parametrize(
    ("kwargs", "culprit"),
    [
        ({"num_envs": 8}, r"gymnasium\.make_vec\('Legged/Go2-Flat-v0', num_envs=8\)"),
        ({"array": "torch"}, r"make\('Legged/Go2-Flat-v0'\).*'array'"),
        ({"autoreset_mode": "SameStep"}, "'autoreset_mode'"),
        ({"divice": "cpu"}, "'divice'.*'device'"),
    ],
    ids=str,
)
def test_arguments_of_make_that_make_no_sense_are_named(kwargs, culprit):
    with pytest.raises(TypeError, match=culprit):
        gym.make(GO2, **kwargs)


@pytest.mark.parametrize("term", ["friction", "base_mass"])
def test_a_randomized_parameter_below_zero_is_refused(term, make_vec):
    env = make_vec(2, cfg={f"events.{term}.params.range": (-100.0, -99.0)})
    with pytest.raises(ValueError, match=r"(friction|base_mass).*-\d"):
        env.reset(seed=0)


def test_none_removes_a_term_and_a_cfg_that_changes_later_changes_no_environment(make_vec):
    cfg = make_task_cfg(GO2)
    env = unwrap(
        make_vec(
            2, cfg={"rewards.joint_torque": None, "events.push": None, "costs.foot_slip": None}
        )
    )
    assert env.rewards.names == tuple(name for name in cfg.rewards if name != "joint_torque")
    assert env.cost_names == tuple(name for name in cfg.costs if name != "foot_slip")
    env, single = unwrap(make_vec(2, cfg=cfg)), gym.make(GO2, cfg=cfg).unwrapped
    limits = env.cost_limits
    del cfg.costs["joint_torque"]
    cfg.costs["foot_slip"].limit = 9.0
    assert env.cost_limits == limits and len(limits) == len(env.cost_names)
    assert list(env.cfg.costs) == list(single.cfg.costs) == list(env.cost_names)
    single.close()


def test_terms_of_the_wrong_shape_are_named_when_the_environment_is_made():
    for kind, term in (
        ("rewards", RewardTermCfg(lambda env: torch.zeros(env.num_envs, 1), weight=1.0)),
        ("costs", CostTermCfg(lambda env: torch.zeros(env.num_envs, 1), limit=1.0)),
        ("terminations", TerminationTermCfg(lambda env: torch.zeros(env.num_envs))),
    ):
        cfg = make_task_cfg(GO2)
        getattr(cfg, kind)["culprit"] = term
        with pytest.raises(ValueError, match="'culprit'"):
            gym.make_vec(GO2, num_envs=2, cfg=cfg)
