"""Actions as people give them: lists, integers, float64 and arrays that run backwards, through every layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import VectorEnv

from legged_envs.mdp.actions import JointAction, JointPositionCfg
from legged_envs.state import Stateful
from legged_envs.wrappers import (
    ActionRepeat,
    ActionScale,
    AutoReset,
    TimeLimit,
    ToNumpy,
    ToTorch,
    Unsqueeze,
)

GO2 = "Legged/Go2-Flat-v0"
ACTIONS = np.random.default_rng(0).choice([-1.0, -0.5, 0.0, 0.25, 1.0], (2, 12)).astype(np.float32)
KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "lists": np.ndarray.tolist,
    "tuples": lambda actions: tuple(map(tuple, actions.tolist())),
    "list of rows": list,
    "float64": lambda actions: actions.astype(np.float64),
    "float16": lambda actions: actions.astype(np.float16),
    "big-endian": lambda actions: actions.astype(">f4"),
    "backwards": lambda actions: actions[::-1, ::-1].copy()[::-1, ::-1],
    "columns first": np.asfortranarray,
    "every other": lambda actions: np.repeat(actions, 2, 1)[:, ::2],
    "read-only": lambda actions: np.broadcast_to(actions, (1, 2, 12))[0],
}
WHOLE: dict[str, Callable[[np.ndarray], Any]] = {
    "integers": lambda actions: actions.astype(int),
    "bytes": lambda actions: actions.astype(np.int8),
    "lists of integers": lambda actions: actions.astype(int).tolist(),
}
TENSORS: dict[str, Callable[[np.ndarray], Any]] = {
    "lists": np.ndarray.tolist,
    "list of tensors": lambda actions: list(torch.from_numpy(actions)),
    "float64": lambda actions: torch.from_numpy(actions).double(),
    "half": lambda actions: torch.from_numpy(actions).half(),
    "columns first": lambda actions: torch.from_numpy(actions).T.contiguous().T,
    "in a graph": lambda actions: torch.from_numpy(actions).double().requires_grad_(),
}


def rewards(env: Any, actions: Any, steps: int = 3) -> np.ndarray:
    env.reset(seed=0)
    return np.stack([np.asarray(env.step(actions)[1]) for _ in range(steps)])


class LowPass(JointAction, Stateful):
    """Targets follow the actions slowly."""

    STATE = ("last",)

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.last = torch.zeros(env.num_envs, self.size)

    def reset(self, env_ids):
        self.last = self.last.index_fill(0, env_ids, 0.0)

    def targets(self, action):
        self.last = 0.8 * self.last + 0.2 * action
        return super().targets(self.last)


class LowPassCfg(JointPositionCfg):
    def build(self, env):
        return LowPass(self, env)


def test_an_action_term_with_a_state_is_reset_and_saved(make_vec):
    env = make_vec(2, cfg={"actions": {"slow": LowPassCfg(scale=0.25)}})
    first = rewards(env, ACTIONS)
    assert np.array_equal(first, rewards(env, ACTIONS))  # each begins with a reset
    assert not np.array_equal(first, rewards(make_vec(2), ACTIONS))
    state = env.unwrapped.get_state()
    expected = [env.step(ACTIONS)[1] for _ in range(3)]
    env.unwrapped.set_state(state)
    assert np.array_equal(expected, [env.step(ACTIONS)[1] for _ in range(3)])


def test_an_environment_takes_any_array_of_numbers_and_lists(make_vec):
    env, tensors = make_vec(2), make_vec(2, array="torch")
    expected = rewards(env, ACTIONS)
    for kind, convert in KINDS.items():
        assert np.array_equal(rewards(env, convert(ACTIONS)), expected), kind
    for kind, convert in TENSORS.items():
        assert np.array_equal(rewards(tensors, convert(ACTIONS)), expected), kind
    whole = np.trunc(ACTIONS)
    expected = rewards(env, whole)
    for kind, convert in WHOLE.items():
        assert np.array_equal(rewards(env, convert(whole)), expected), kind
    assert np.array_equal(rewards(tensors, torch.from_numpy(whole).int()), expected)
    for wrong in (torch.zeros(2, 12, dtype=torch.bool), torch.zeros(2, 12, dtype=torch.complex64)):
        with pytest.raises(TypeError, match="real numbers"):
            tensors.step(wrong)
    with pytest.raises(ValueError, match=r"finite.*\[0, 1\]"):
        tensors.step(torch.full((2, 12), 1e300, dtype=torch.float64))
    with pytest.raises(TypeError, match="array='torch'"):
        tensors.step(ACTIONS)


def test_a_single_environment_does_too(make_single):
    env = make_single()
    row = ACTIONS[0]
    expected = rewards(env, row)
    for convert in (
        np.ndarray.tolist,
        list,
        tuple,
        np.float64,
        lambda a: a[::-1].copy()[::-1],
        torch.from_numpy,
    ):
        assert np.array_equal(rewards(env, convert(row)), expected)
    core = env.unwrapped
    for wrong, error, culprit in (
        ([0.0] * 11, ValueError, r"\(12,\).*\(11,\)"),
        (0.0, ValueError, r"\(12,\).*\(\)"),
        ([0.0, [1.0]] * 6, ValueError, r"\(12,\)"),
        (["a"] * 12, TypeError, "real numbers.*list"),
        (None, TypeError, "NoneType"),
        (torch.zeros(12, requires_grad=True), ValueError, "detach"),
        (np.full(12, 1e300), ValueError, "finite"),
    ):
        with pytest.raises(error, match=culprit):
            core.step(wrong)


def deep(env: VectorEnv) -> VectorEnv:
    return AutoReset(TimeLimit(ActionRepeat(ActionScale(env, -2.0, 2.0), 2), 50))


STACKS: dict[str, Callable[[VectorEnv], VectorEnv]] = {
    "ActionScale, ActionRepeat, TimeLimit, AutoReset": deep,
    "ToTorch": ToTorch,
    "ToNumpy and ToTorch": lambda env: ToNumpy(ToTorch(env)),
    "NEXT_STEP": lambda env: AutoReset(TimeLimit(env, 2), "NextStep"),
    "SyncVectorEnv": lambda env: Unsqueeze(gym.make(GO2)),
}


@pytest.mark.parametrize("name", STACKS)
def test_every_wrapper_hands_them_down(name, make_vec):
    num_envs = 1 if name == "SyncVectorEnv" else 2
    env = STACKS[name](make_vec(num_envs, autoreset_mode="Disabled", statistics=False).unwrapped)
    actions = ACTIONS[:num_envs]
    given = torch.from_numpy(actions) if name == "ToTorch" else actions
    expected = rewards(env, given)
    wide = given.double() if name == "ToTorch" else actions.astype(np.float64)
    for other in (actions.tolist(), wide):
        assert np.array_equal(rewards(env, other), expected)
    whole = np.trunc(actions)
    assert np.array_equal(rewards(env, whole.astype(int).tolist()), rewards(env, whole))
    env.close()


def test_scaled_actions_stay_lists_or_the_kind_that_they_were(make_vec):
    env = ActionScale(make_vec(2, autoreset_mode="Disabled", array="torch"), -2.0, 2.0)
    expected = rewards(env, torch.from_numpy(ACTIONS))
    for other in (ACTIONS.tolist(), torch.from_numpy(ACTIONS).double()):
        assert np.array_equal(rewards(env, other), expected)
    with pytest.raises(ValueError, match=r"\(2, 12\).*\(2, 11\)"):
        env.step(ACTIONS[:, 1:].tolist())
    with pytest.raises(TypeError, match="float"):
        env.step(ACTIONS > 0)
