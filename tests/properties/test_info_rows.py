"""``info="arrays"``: everything in ``info`` has a row for each environment, and the numbers are equal to the default ``info``."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from forms import FORMS, register_form
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList

from legged_envs.envs import unwrap
from legged_envs.tasks import TASKS
from legged_envs.terrains import TerrainCfg
from legged_envs.wrappers import ConstraintsAsTerminations, LagrangianReward

GO2 = "Legged/Go2-Flat-v0"
ROUGH = "Legged/Go2-Rough-v0"
SMALL = TerrainCfg(rows=2, columns=6, size=4.0, border=2.0)
RESETTING = [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP]


def make(task: str, info: str, num_envs: int = 3, **kwargs: Any) -> Any:
    task_id = register_form(task) if task in FORMS else task
    if task_id == ROUGH:
        kwargs["cfg"] = {"scene.terrain": SMALL}
    return gym.make_vec(task_id, num_envs=num_envs, info=info, **kwargs)


def actions(env: Any, step: int = 0) -> np.ndarray:
    random = np.random.default_rng(step)
    return random.uniform(-1.0, 1.0, env.action_space.shape).astype(np.float32)


def assert_same_numbers(rows: list[dict[str, Any]], means: dict[str, Any]) -> None:
    """Assert that a list of infos, one for each environment, says what the default ``info`` says."""
    for i, row in enumerate(rows):
        expected = {key: value for key, value in means.items() if key != "log"}
        assert_same_row(row, expected, i)
    logs = [row["log"] for row in rows if "log" in row]
    assert bool(logs) == ("log" in means)
    for name, expected in means.get("log", {}).items():
        values = [log[name] for log in logs]
        is_count = name == "episodes" or name.startswith("termination/")
        assert (sum(values) if is_count else np.mean(values)) == pytest.approx(expected, 1e-5, 1e-6)


def assert_same_row(row: dict[str, Any], means: dict[str, Any], i: int) -> None:
    for key, value in means.items():
        if key.startswith("_") or not means.get(f"_{key}", np.ones(i + 1, bool))[i]:
            assert key.startswith("_") or key not in row
        elif isinstance(value, dict):
            assert_same_row(row[key], value, i)
        elif key != "t":  # seconds of this machine's clock
            np.testing.assert_array_equal(row[key], value[i], key)


@pytest.mark.parametrize("mode", RESETTING, ids=lambda mode: mode.name)
@pytest.mark.parametrize("task", [GO2, ROUGH, "Legged/Go2-Mimic-v0", "Legged/G1-Flat-v0", *FORMS])
def test_a_list_of_infos_has_the_numbers_of_the_default(task, mode):
    options = {"autoreset_mode": mode, "max_episode_steps": 8}
    means = make(task, "means", **options)
    lists = DictInfoToList(make(task, "arrays", **options))
    _, info = means.reset(seed=3)
    _, begun = lists.reset(seed=3)
    assert_same_numbers(begun, info)
    episodes = 0
    for step in range(20):
        action = actions(means, step)
        *outcome, info = means.step(action)
        *same, rows = lists.step(action)
        for one, other in zip(outcome, same, strict=True):
            np.testing.assert_array_equal(one, other)
        assert_same_numbers(rows, info)
        episodes += sum("log" in row for row in rows)
        # Episodes of one environment only end at other times than those of the others.
        if step == 3:
            mask = {"reset_mask": np.array([False, True, False])}
            _, info = means.reset(options=dict(mask))
            _, begun = lists.reset(options=dict(mask))
            assert_same_numbers(begun, info)
            assert "log" in begun[1] and "log" not in begun[0]
    assert episodes >= 5
    means.close()
    lists.close()


@pytest.mark.parametrize("task", sorted(task for task in TASKS if task.startswith("Legged/")))
def test_every_registered_task_has_rows_where_episodes_end(task):
    env = DictInfoToList(make(task, "arrays", num_envs=2, max_episode_steps=2))
    env.reset(seed=0)
    env.step(actions(env))
    *_, truncated, rows = env.step(actions(env))
    assert truncated.all()
    for row in rows:
        assert row["log"]["episodes"] == 1 and row["final_info"]["cost"] == row["cost"]
    env.close()


def test_an_episode_that_waits_for_its_reset_is_reported_by_its_own_environment_after_pickling():
    env = make(GO2, "arrays", autoreset_mode="NextStep")
    env.reset(seed=0)
    env.step(actions(env))
    env.step(actions(env))
    unwrap(env).end_episodes(np.array([False, False, True]))
    unwrap(env).end_episodes(np.array([True, False, False]))
    again = pickle.loads(pickle.dumps(unwrap(env)))
    for core in (unwrap(env), again):
        _, info = core.reset(options={"reset_mask": np.array([False, True, False])})
        np.testing.assert_array_equal(info["_log"], [True, True, True])
        np.testing.assert_array_equal(info["log"]["episode_length_s"], np.float32([0.04] * 3))
        core.close()


@pytest.mark.parametrize("wrapper", [LagrangianReward, ConstraintsAsTerminations])
def test_numbers_of_each_cost_are_rows_too(wrapper):
    env = wrapper(make(GO2, "arrays", max_episode_steps=2))
    lists = DictInfoToList(env)
    lists.reset(seed=0)
    lists.step(actions(env))
    *_, rows = lists.step(actions(env))
    (key,) = wrapper.whole_keys
    for row in rows:
        logged = [row["log"][f"{env.log_name}/{name}"] for name in env.cost_names]
        np.testing.assert_array_equal(logged, env.adapted)
        assert row[key].shape == (env.num_costs,)


def test_what_a_task_reports_itself_is_repeated_for_each_environment_that_was_reset():
    task = register_form(next(form for form in FORMS if "direct" in form.lower()))
    core = unwrap(gym.make_vec(task, num_envs=3, info="arrays"))
    core.reset(seed=0)
    core.step(actions(core))
    own = {"level": 2.5, "rows": np.arange(3), "name": "easy", "deep": {"tensor": [1.0, 2.0]}}
    core.task.user.extras["log"] = dict(own)
    _, info = core.reset(options={"reset_mask": np.array([True, False, True])})
    log = info["log"]
    np.testing.assert_array_equal(info["_log"], [True, False, True])
    np.testing.assert_array_equal(log["level"], [2.5, 0.0, 2.5])
    np.testing.assert_array_equal(log["rows"], own["rows"])
    np.testing.assert_array_equal(log["name"], ["easy", "", "easy"])
    np.testing.assert_array_equal(log["deep"]["tensor"], [[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("options", "found"),
    [({"info": "rows"}, "'rows'"), ({"info": "arrays", "array": "torch"}, "array='torch'")],
)
def test_another_word_and_tensors_are_refused(options, found):
    with pytest.raises(ValueError, match=found):
        gym.make_vec(GO2, num_envs=2, **options)
