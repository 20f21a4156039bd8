"""Guarantees of every environment: of tasks with managers, tasks written by hand, and tasks with another framework's API."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3.common.env_checker
import torch
from forms import FORMS, register_form
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from hand_written import StandUp

from legged_envs import make_task_cfg
from legged_envs.envs import CoreVectorEnv, Task, make_core
from legged_envs.envs.manager_task import ManagerTask
from legged_envs.tasks import TASKS
from legged_envs.terrains import TerrainCfg
from legged_envs.wrappers import AutoReset, EpisodeStatistics, TimeLimit

TASK = "Legged/Go2-Flat-v0"
Kind = type[Task] | str
BOTH = pytest.mark.parametrize("kind", [ManagerTask, StandUp])
ROUGH = "Legged/Go2-Rough-v0"
KINDS: list[Kind] = [ManagerTask, StandUp, ROUGH, *FORMS]
ALL = pytest.mark.parametrize("kind", KINDS)


def make(kind: Kind, num_envs: int = 3, **kwargs: Any) -> CoreVectorEnv:
    if not isinstance(kind, str):
        return CoreVectorEnv(kind(make_task_cfg(TASK)), num_envs, **kwargs)
    if kind != ROUGH:
        return make_core(make_task_cfg(register_form(kind)), num_envs, **kwargs)
    cfg = make_task_cfg(ROUGH)
    cfg.scene.terrain = TerrainCfg(rows=2, columns=6, size=4.0, border=2.0)
    return make_core(cfg, num_envs, **kwargs)


def stack(kind: Kind, mode: AutoresetMode, num_envs: int = 3, limit: int = 7, **kwargs: Any) -> Any:
    return AutoReset(EpisodeStatistics(TimeLimit(make(kind, num_envs, **kwargs), limit)), mode)


def run(env: Any, actions: np.ndarray) -> list[Any]:
    return [env.step(action) for action in actions]


def select(step: Any, rows: Any) -> list[Any]:
    """The rows of what a step returned."""
    observation, reward, terminated, truncated, info = step
    return [
        observation[rows],
        reward[rows],
        terminated[rows],
        truncated[rows],
        info["cost"][rows],
        info["costs"][rows],
    ]


def own_ages(state: Any) -> Any:
    """A state without the wall-clock ages of episodes."""
    return (
        {k: own_ages(v) for k, v in state.items() if k != "ages"}
        if isinstance(state, dict)
        else state
    )


@ALL
def test_the_same_seed_gives_the_same_run_whatever_the_number_of_environments(
    kind, random_actions, assert_same
):
    actions = random_actions(25, 6)
    few, many = (stack(kind, AutoresetMode.SAME_STEP, n) for n in (2, 6))
    assert_same(few.reset(seed=5)[0], many.reset(seed=5)[0][:2])
    for action in actions:
        assert_same(
            select(few.step(action[:2]), slice(None)), select(many.step(action), slice(0, 2))
        )
    again = stack(kind, AutoresetMode.SAME_STEP, 2)
    assert not np.array_equal(again.reset(seed=6)[0], few.reset(seed=5)[0])


@pytest.mark.parametrize(
    ("kind", "steps", "first_envs"),
    [*((kind, 25, (0, 2, 4)) for kind in KINDS), (ManagerTask, 500, (4,)), (ROUGH, 500, (4,))],
)
def test_robots_of_several_processes_are_those_of_one(
    kind, steps, first_envs, random_actions, assert_same
):
    actions = random_actions(steps, 6)
    whole = stack(kind, AutoresetMode.SAME_STEP, 6, limit=steps // 4)
    parts = []
    for first_env in first_envs:
        part = stack(kind, AutoresetMode.SAME_STEP, 2, limit=steps // 4, first_env=first_env)
        parts.append(part)
    first, _ = whole.reset(seed=5)
    for part in parts:
        rows = slice(part.unwrapped.random.first_env, part.unwrapped.random.first_env + 2)
        assert_same(part.reset(seed=5)[0], first[rows])
    for action in actions:
        expected = whole.step(action)
        for part in parts:
            rows = slice(part.unwrapped.random.first_env, part.unwrapped.random.first_env + 2)
            assert_same(select(part.step(action[rows]), slice(None)), select(expected, rows))


@pytest.mark.parametrize("first_env", [-1, 2**31 - 2, 0.5, True])
def test_a_number_that_no_robot_has_is_refused(first_env):
    with pytest.raises(ValueError, match="first_env"):
        make_core(make_task_cfg(TASK), 2, first_env=first_env)


@ALL
def test_a_masked_reset_begins_its_episodes_and_leaves_the_others_bit_identical(
    kind, random_actions, assert_same
):
    one, other = make(kind), make(kind)
    for env in (one, other):
        env.reset(seed=1)
        run(env, random_actions(4, 3))
    before = one.reset(options={"reset_mask": np.zeros(3, bool)})[0]
    observation, info = one.reset(options={"reset_mask": np.array([False, True, False])})
    assert_same(observation[[0, 2]], before[[0, 2]])
    assert not np.array_equal(observation[1], before[1])
    assert info["log"]["episodes"] == 1 and info["log"]["episode_length_s"] == pytest.approx(
        4 * 0.02
    )
    for action in random_actions(20, 3, seed=2):
        assert_same(select(one.step(action), [0, 2]), select(other.step(action), [0, 2]))


@ALL
@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_a_same_step_reset_gives_the_true_last_observation_for_all_rows(
    kind, array, random_actions
):
    env = stack(kind, AutoresetMode.SAME_STEP, array=array, limit=3)
    env.reset(seed=0)
    actions = torch.from_numpy(random_actions(6, 3)) if array == "torch" else random_actions(6, 3)
    for step, action in enumerate(actions, 1):
        observation, _, _, truncated, info = env.step(action)
        assert bool(truncated.all()) == (step % 3 == 0)
        if truncated.any():
            assert (
                info["final_obs"].shape == observation.shape
                and not (info["final_obs"] == observation).all()
            )
            assert info["episode"]["l"].tolist() == [3, 3, 3]
            assert info["log"]["episodes"] == 3 and info["log"][
                "episode_length_s"
            ] == pytest.approx(0.06)


@ALL
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_what_follows_an_episode_until_its_reset_enters_no_log(kind, mode, random_actions):
    """Both modes log the same episodes; in NEXT_STEP the physics of an ended episode runs on for a step."""
    logs = []
    for m in (AutoresetMode.SAME_STEP, mode):
        env = stack(kind, m, limit=4)
        env.reset(seed=3)
        first = next(info["log"] for *_, info in run(env, random_actions(5, 3)) if "log" in info)
        logs.append({key: float(value) for key, value in first.items()})
    assert logs[0] == logs[1] and logs[0]["episodes"] == 3


@ALL
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_a_saved_run_a_pickle_and_a_copy_continue_bit_for_bit(
    kind, mode, random_actions, assert_same
):
    env = stack(kind, mode)
    env.reset(seed=2)
    run(env, random_actions(10, 3))
    fresh = stack(kind, mode)
    fresh.set_state(env.get_state())
    others = [fresh, pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    actions = random_actions(12, 3, seed=1)
    expected = [select(step, slice(None)) for step in run(env, actions)]
    for other in others:
        assert_same([select(step, slice(None)) for step in run(other, actions)], expected)


@ALL
def test_a_state_that_does_not_fit_is_refused_and_nothing_changes(
    kind, random_actions, assert_same
):
    env = make(kind)
    env.reset(seed=0)
    run(env, random_actions(3, 3))
    before = env.get_state()
    wrong = [make(kind, 2), make(ManagerTask if kind is StandUp else StandUp)]
    for other in wrong:
        other.reset(seed=1)
        with pytest.raises(ValueError, match="another environment"):
            env.set_state(other.get_state())
        assert_same(env.get_state()["own"], before["own"])
        assert_same(env.get_state()["sim"]["rows"], before["sim"]["rows"])


@pytest.mark.parametrize(
    "change", [{"events": "push"}, {"rewards": "joint_torque"}, {"terminations": "fallen"}]
)
def test_a_state_of_other_terms_is_refused_by_name_and_nothing_changes(
    change, random_actions, assert_same
):
    ((field, name),) = change.items()
    cfg = make_task_cfg(TASK)
    del getattr(cfg, field)[name]
    with_term, without = make(ManagerTask), make_core(cfg, 3)
    for env, other in ((with_term, without), (without, with_term)):
        env.reset(seed=0), other.reset(seed=1)
        run(env, random_actions(2, 3))
        before = env.get_state()
        with pytest.raises(ValueError, match=f"{field}.*another environment"):
            env.set_state(other.get_state())
        assert_same(own_ages(env.get_state()), own_ages(before))


@ALL
@pytest.mark.usefixtures("log_elsewhere")
def test_a_state_that_is_not_finite_ends_its_environment_alone(kind, random_actions, assert_same):
    healthy, sick = (stack(kind, AutoresetMode.SAME_STEP, limit=50) for _ in range(2))
    for env in (healthy, sick):
        env.reset(seed=1)
        run(env, random_actions(2, 3))
    sick.unwrapped.sim.batch.bind("qpos")[1, 10] = np.nan
    for step, action in enumerate(random_actions(5, 3, seed=1)):
        results, expected = sick.step(action), healthy.step(action)
        assert_same(select(results, [0, 2]), select(expected, [0, 2]))
        assert all(np.isfinite(part).all() for part in select(results, slice(None)))
        assert results[2][1] == (step == 0)
        if step == 0:
            assert (
                results[4]["log"]["termination/bad_physics"] == 1
                and np.isfinite(results[4]["final_obs"]).all()
            )


@ALL
def test_calls_out_of_order_and_wrong_arguments_are_refused(kind):
    env = make(kind)
    action = np.zeros((3, 12), np.float32)
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(action)
    with pytest.raises(RuntimeError, match="first reset must be of all"):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    env.reset(seed=0)
    for wrong, error in (
        (action[:, :5], ValueError),
        (action.astype(bool), TypeError),
        (action + np.nan, ValueError),
    ):
        with pytest.raises(error):
            env.step(wrong)
    env.close()
    with pytest.raises(RuntimeError, match="after close"):
        env.reset()


@BOTH
def test_arrays_that_run_backwards_and_numpy_integers_are_taken(kind, random_actions, assert_same):
    action = random_actions(1, 3)[0]
    one, other = make(kind, np.int64(3)), make(kind)
    one.reset(seed=0), other.reset(seed=0)
    assert_same(
        select(one.step(action[::-1]), slice(None)),
        select(other.step(action[::-1].copy()), slice(None)),
    )
    mask = np.array([True, False, False])
    masks = (mask[::-1], mask[::-1].copy())
    observations = [
        env.reset(options={"reset_mask": m})[0] for env, m in zip((one, other), masks, strict=True)
    ]
    assert_same(*observations)
    for wrong in (True, 0, np.int64(-1), 2.0, "3"):
        with pytest.raises(ValueError, match="num_envs must be a positive integer"):
            make(kind, wrong)


@ALL
def test_the_seed_can_be_read_back(kind):
    env = stack(kind, AutoresetMode.SAME_STEP)
    env.reset(seed=3)
    assert env.np_random_seed == 3
    number = env.np_random.random()
    env.reset(seed=3)
    assert env.np_random.random() == number


def _step_in_child(env: Any, queue: Any) -> None:
    try:
        env.reset(seed=0)
        queue.put(float(env.step(np.zeros((3, 12), np.float32))[1].sum()))
    except Exception as error:
        queue.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_an_environment_made_before_a_fork_says_what_to_do_and_one_for_a_spawned_process_works():
    env = make(ManagerTask)
    env.reset(seed=0)
    expected = float(env.step(np.zeros((3, 12), np.float32))[1].sum())
    answers = []
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=_step_in_child, args=(env, queue))
        process.start()
        answers.append(queue.get(timeout=120))
        process.join()
    assert "make the environment in the new process" in answers[0]
    assert answers[1] == expected


@pytest.mark.parametrize("task", [TASK, "Legged/G1-Flat-v0", "Legged/Go2-Mimic-v0"])
def test_torchs_default_dtype_does_not_reach_an_environment(task, assert_same):
    """A user's script may have set it before the environment is made, or while it runs."""
    results = []
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            env = AutoReset(TimeLimit(make_core(make_task_cfg(task), 3, observations="dict"), 3))
            trace = [env.reset(seed=0)[0]]
            trace += [env.step(np.zeros(env.action_space.shape, np.float32))[:4] for _ in range(5)]
            env.set_state(env.get_state())
            results.append(trace)
        finally:
            torch.set_default_dtype(torch.float32)
    assert_same(*results)


def test_a_thread_that_starts_while_another_one_steps_keeps_its_threads():
    """A learner and a simulation in one process: neither takes the threads of the other."""
    code = (
        "import threading, torch, numpy as np, gymnasium as gym, legged_envs\n"
        "torch.set_num_threads(2)\n"
        f"env = gym.make_vec('{TASK}', num_envs=8); env.reset(seed=0)\n"
        "action, stop, seen = np.zeros((8, 12), np.float32), threading.Event(), []\n"
        "def step():\n"
        "    while not stop.is_set():\n"
        "        env.step(action)\n"
        "stepping = threading.Thread(target=step); stepping.start()\n"
        "for _ in range(20):\n"
        "    learner = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))\n"
        "    learner.start(); learner.join()\n"
        "stop.set(); stepping.join(); env.step(action)\n"
        "print(set(seen), torch.get_num_threads())\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert result.stdout.split() == ["{2}", "2"], result.stdout + result.stderr[-1500:]


@pytest.mark.parametrize("form", FORMS)
def test_the_single_environment_of_a_form_passes_the_checkers_of_gymnasium_and_stable_baselines3(
    form,
):
    env = gym.make(register_form(form))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", message=".*(-inf|infinity|unbounded).*"
        )  # other frameworks' sizes are
        check_env(env.unwrapped, skip_render_check=True)
        stable_baselines3.common.env_checker.check_env(env, warn=True)
    env.close()


@pytest.mark.parametrize(
    "task", sorted(task_id for task_id in TASKS if task_id.startswith("Legged/"))
)
def test_robots_beyond_a_block_of_vectorized_maths_are_the_same(task):
    """float32 functions may round in one way in blocks of 32 numbers, and in another what remains."""
    few, many = (make_core(make_task_cfg(task), n) for n in (5, 70))
    (seen, _), (whole, _) = few.reset(seed=3), many.reset(seed=3)
    for _ in range(8):
        np.testing.assert_array_equal(seen, whole[:5])
        size = few.single_action_space.shape[0]
        steps = [
            env.step(np.clip(rows[:, :size], -1.0, 1.0))
            for env, rows in ((few, seen), (many, whole))
        ]
        seen, whole = steps[0][0], steps[1][0]
        np.testing.assert_array_equal(steps[0][1], steps[1][1][:5])


def test_a_state_between_two_episodes_is_of_its_autoreset_mode(random_actions, assert_same):
    later, same = (
        stack(ManagerTask, mode, limit=4)
        for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
    )
    for env in (later, same):
        env.reset(seed=0)
        run(env, random_actions(4, 3))
    other = copy.deepcopy(same)
    with pytest.raises(ValueError, match="another autoreset mode"):
        same.set_state(later.get_state())
    for action in random_actions(5, 3, seed=1):
        assert_same(same.step(action)[:4], other.step(action)[:4])


@pytest.mark.parametrize("seed", [True, [0, True, 2], np.array([True, False, True]), 1.5, "one"])
def test_a_seed_that_is_no_integer_is_refused(seed):
    with pytest.raises(TypeError, match="seed must be an integer or a list of them, got"):
        stack(ManagerTask, AutoresetMode.SAME_STEP).reset(seed=seed)


@pytest.mark.parametrize("seed", [-1, [1, -2, 3], np.array([-1, 2, 3])])
def test_a_negative_seed_is_refused_and_changes_nothing(seed, random_actions, assert_same):
    env = stack(ManagerTask, AutoresetMode.SAME_STEP)
    env.reset(seed=0)
    run(env, random_actions(2, 3))
    other = copy.deepcopy(env)
    with pytest.raises(ValueError, match="seeds must not be negative"):
        env.reset(seed=seed)
    for action in random_actions(3, 3, seed=1):
        assert_same(env.step(action)[:4], other.step(action)[:4])


def test_a_refused_state_with_changes_changes_nothing(random_actions, assert_same):
    one = make(ManagerTask)
    one.reset(seed=0)
    one.reconfigure({"rewards.joint_torque.weight": -0.5})
    cfg = make_task_cfg(TASK)
    cfg.rewards = {
        "power" if name == "joint_torque" else name: term for name, term in cfg.rewards.items()
    }
    env = make_core(cfg, 3)
    env.reset(seed=5)
    other = copy.deepcopy(env)
    with pytest.raises(ValueError, match="joint_torque"):
        env.set_state(one.get_state())
    for action in random_actions(3, 3):
        assert_same(env.step(action)[:4], other.step(action)[:4])


def test_a_state_whose_physics_does_not_fit_takes_its_changes_back(random_actions, assert_same):
    one, larger, env = make(ManagerTask), make(ManagerTask, 4), make(ManagerTask)
    for each in (one, larger, env):
        each.reset(seed=0)
    other = copy.deepcopy(env)
    one.reconfigure({"rewards.joint_torque.weight": -0.5})
    with pytest.raises(ValueError):
        env.set_state({**one.get_state(), "sim": larger.get_state()["sim"]})
    assert not env.changes
    for action in random_actions(3, 3):
        assert_same(env.step(action)[:4], other.step(action)[:4])


def test_observing_again_remembers_this_moment_once():
    env = make_core(make_task_cfg("Legged/K1-Flat-v0"), 2)
    env.reset(seed=0)
    for i in range(6):
        env.step(np.full(env.action_space.shape, 0.1 * i, np.float32))
    group = env.observations.groups["critic"]
    before = group.past.clone()
    env.observe_again()
    torch.testing.assert_close(
        env.observations.groups["critic"].past[:, :-1], before[:, :-1], rtol=0.0, atol=0.0
    )
