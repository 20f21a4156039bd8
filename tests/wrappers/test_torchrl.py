"""TorchRL's own GymWrapper reads the environments, costs included."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("torchrl", reason="TorchRL is not installed")

from torchrl.data import Unbounded
from torchrl.envs import GymEnv, GymWrapper, default_info_dict_reader

GO2 = "Legged/Go2-Flat-v0"
NUM_ENVS, NUM_COSTS = 3, 6
SEED, STEPS = 5, 26
EASY_TO_FALL = {"terminations.fallen.params": {"max_projected_gravity": -0.97}}
READER_SPEC = {"cost": Unbounded((NUM_ENVS,)), "costs": Unbounded((NUM_ENVS, NUM_COSTS))}
MODES = pytest.mark.parametrize("mode", ["Disabled", "SameStep"])


def rollout(envs: Any, actions: np.ndarray) -> Any:
    """TorchRL's rollout with these actions. Shapes: (num_envs, num_steps, …)."""
    env = GymWrapper(envs)
    env.set_info_dict_reader(
        default_info_dict_reader(list(READER_SPEC), spec=list(READER_SPEC.values()))
    )
    env.set_seed(SEED)
    script = iter(torch.from_numpy(actions))
    return env.rollout(
        len(actions),
        policy=lambda td: td.set("action", next(script).clone()),
        break_when_any_done=False,
    )


def step_directly(envs: Any, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return the same steps by Gymnasium without TorchRL: observation before and after a step, reward, flags and costs."""
    envs.reset(seed=SEED)
    observation, _ = envs.reset()
    rows = []
    for action in actions:
        after, reward, terminated, truncated, info = envs.step(action)
        rows.append(
            (
                observation,
                info.get("final_obs", after),
                reward,
                terminated,
                truncated,
                info["cost"],
                info["costs"],
            )
        )
        observation, ended = after, terminated | truncated
        if ended.all():  # TorchRL resets all, also an environment that has just done so
            observation, _ = envs.reset()
        elif "final_obs" not in info and ended.any():
            observation, _ = envs.reset(options={"reset_mask": ended})
    names = (
        "observation",
        "next observation",
        "reward",
        "terminated",
        "truncated",
        "cost",
        "costs",
    )
    return {
        name: np.stack(values, 1)
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }


@MODES
@pytest.mark.parametrize(
    ("limit", "ending"), [(4, {NUM_ENVS}), (12, {1, 2})], ids=["all-end-together", "some-end"]
)
def test_a_rollout_of_torchrl_equals_stepping_the_environment(
    make_vec, random_actions, assert_same, mode: str, limit: int, ending: set[int]
) -> None:
    actions = random_actions(STEPS, NUM_ENVS)
    kwargs = {"autoreset_mode": mode, "max_episode_steps": limit, "cfg": EASY_TO_FALL}

    data = rollout(make_vec(NUM_ENVS, **kwargs), actions)
    expected = step_directly(make_vec(NUM_ENVS, **kwargs), actions)

    ended = (expected["terminated"] | expected["truncated"]).sum(0)
    assert set(ended[ended > 0]) == ending
    assert expected["cost"].any()
    got = {name: data["next", name].numpy() for name in ("cost", "costs")}
    got |= {
        name: data["next", name].squeeze(-1).numpy()
        for name in ("reward", "terminated", "truncated")
    }
    got |= {
        "observation": data["observation"].numpy(),
        "next observation": data["next", "observation"].numpy(),
    }
    for name, values in expected.items():
        assert_same(got[name], values, f"{mode} {name}")


def test_torchrl_refuses_an_environment_that_resets_in_the_next_step(make_vec) -> None:
    with pytest.raises(RuntimeError, match="SAME_STEP"):
        GymWrapper(make_vec(autoreset_mode="NextStep"))


@pytest.mark.parametrize("frame_skip", [1, 3])
def test_torchrl_makes_an_environment_by_its_id(
    make_single, random_actions, assert_same, frame_skip: int
) -> None:
    """TorchRL tries the keyword ``frameskip``, and continues without it if an environment refuses it."""
    actions = torch.from_numpy(random_actions(5, 1)[:, 0])
    made, wrapped = (
        GymEnv(GO2, frame_skip=frame_skip),
        GymWrapper(make_single(), frame_skip=frame_skip),
    )

    def roll_out(env: Any) -> Any:
        env.set_seed(SEED)
        script = iter(actions)
        return env.rollout(len(actions), policy=lambda td: td.set("action", next(script).clone()))

    rollouts = [roll_out(env) for env in (made, wrapped)]
    for key in ("observation", ("next", "observation"), ("next", "reward"), ("next", "truncated")):
        assert_same(*(data[key].numpy() for data in rollouts), str(key))
    made.close()


def test_a_keyword_that_torchrl_passes_on_and_no_environment_has_is_named() -> None:
    with pytest.raises(TypeError, match=r"'rendermode'.*'render_mode'"):
        GymEnv(GO2, rendermode="rgb_array")


def test_the_example_runs_as_it_stands(capsys) -> None:
    runpy.run_path(
        str(Path(__file__).parents[2] / "examples" / "torchrl_rollout.py"), run_name="__main__"
    )
    assert "foot_slip" in capsys.readouterr().out
