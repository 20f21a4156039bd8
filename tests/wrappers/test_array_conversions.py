"""ToNumpy and ToTorch: converted values, and values that stay unchanged."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch
from gymnasium.vector import VectorEnv
from toy_envs import ToyVectorEnv, convert
from wrapper_checks import DISABLED, KINDS, MODES, assert_equal, moves, to_numpy

from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.time_limit import TimeLimit
from legged_envs.wrappers.to_numpy import ToNumpy
from legged_envs.wrappers.to_torch import ToTorch


def assert_kind(tree: Any, kind: type, where: str = "") -> int:
    """Asserts that all arrays of numbers are of one kind; returns how many there are."""
    if isinstance(tree, dict):
        return sum(assert_kind(value, kind, f"{where}[{key!r}]") for key, value in tree.items())
    if isinstance(tree, tuple):
        return sum(assert_kind(value, kind, f"{where}[{i}]") for i, value in enumerate(tree))
    if isinstance(tree, (np.ndarray, torch.Tensor, array_api_strict.asarray(0).__class__)):
        if isinstance(tree, np.ndarray) and tree.dtype == object:
            return 0
        assert isinstance(tree, kind), f"{where} is {type(tree)}"
        return 1
    return 0


@pytest.mark.parametrize(
    ("wrapper", "kind"), [(ToNumpy, np.ndarray), (ToTorch, torch.Tensor)], ids=["numpy", "torch"]
)
@KINDS
@MODES
def test_every_array_is_converted_and_nothing_else_changes(wrapper, kind, array, mode):
    def stack(inner: ToyVectorEnv) -> VectorEnv:
        env = EpisodeStatistics(TimeLimit(inner, 4))
        return env if mode is DISABLED else AutoReset(env, mode)

    env, plain = (
        wrapper(stack(ToyVectorEnv(array=array, grouped=True))),
        stack(ToyVectorEnv(grouped=True)),
    )
    target = "numpy" if kind is np.ndarray else "torch"
    assert_kind(env.reset(), kind)
    plain.reset()
    for action in moves(10):
        result, expected = env.step(convert(action, target)), plain.step(action)
        ended = expected[2] | expected[3]
        assert assert_kind(result, kind) == assert_kind(expected, np.ndarray)
        assert_equal(to_numpy(result), expected)
        if mode is DISABLED and ended.any():
            assert_kind(env.reset(options={"reset_mask": convert(ended, target)}), kind)
            plain.reset(options={"reset_mask": ended})


def test_conversions_share_memory_and_leave_objects_alone():
    class Remembering(ToyVectorEnv):
        def step(self, actions: Any) -> Any:
            result = super().step(actions)
            result[4].update(
                note="text",
                number=3,
                objects=np.array([None, {}, "x"], object),
                frozen=np.arange(3),
            )
            result[4]["frozen"].flags.writeable = False
            self.result, self.given = result, actions
            return result

    inner = Remembering()
    env = ToTorch(inner)
    env.reset()
    actions = torch.zeros(3, 2)
    observation, reward, _, _, info = env.step(actions)
    assert observation.data_ptr() == inner.result[0].ctypes.data
    assert reward.data_ptr() == inner.result[1].ctypes.data
    assert inner.given.ctypes.data == actions.data_ptr()
    assert info["objects"] is inner.result[4]["objects"] and (info["note"], info["number"]) == (
        "text",
        3,
    )
    info["frozen"][:] = 0
    assert inner.result[4]["frozen"].tolist() == [0, 1, 2]
    back = ToNumpy(env)
    back.reset()
    assert back.step(np.zeros((3, 2), np.float32))[0].ctypes.data == inner.result[0].ctypes.data
    assert ToTorch(ToyVectorEnv(), "cpu").device == torch.device("cpu")


@pytest.mark.parametrize(("saved", "loaded"), [("numpy", "torch"), ("torch", "numpy")])
def test_a_state_of_a_stack_over_other_arrays_keeps_the_present_kind(saved, loaded):
    def make(kind: str) -> Any:
        wrapper = ToTorch if kind == "numpy" else ToNumpy
        env = wrapper(EpisodeStatistics(AutoReset(ToyVectorEnv(array=kind))))
        env.reset(seed=0)
        return env

    first, other = make(saved), make(loaded)
    other.load_state_dict(first.state_dict())
    actions = np.zeros((other.num_envs, 2), np.float32)
    other.step(convert(actions, "torch" if loaded == "numpy" else "numpy"))
