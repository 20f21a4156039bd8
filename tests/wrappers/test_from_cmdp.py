"""Environments with six values per step, below the wrappers; and constructors with OmniSafe's arguments."""

from __future__ import annotations

import copy
import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import ToyEnv, ToyVectorEnv, make_toy_env

from legged_envs.wrappers import (
    CMDP,
    ActionRepeat,
    ActionScale,
    AutoReset,
    CostNormalize,
    CostReduce,
    EpisodeStatistics,
    FromCMDP,
    Normalizer,
    ObsNormalize,
    RewardNormalize,
    TimeLimit,
    ToNumpy,
    ToTorch,
    Unsqueeze,
    VectorCMDP,
)

DISABLED, SAME_STEP, NEXT_STEP = (
    AutoresetMode.DISABLED,
    AutoresetMode.SAME_STEP,
    AutoresetMode.NEXT_STEP,
)


class Countdown:
    """One environment in OmniSafe's format: tensors without a batch dimension, flags as floats, a cost next to the reward."""

    observation_space, action_space = Box(-99.0, 99.0, (2,)), Box(-1.0, 1.0, (2,))
    need_auto_reset_wrapper = need_time_limit_wrapper = True
    num_envs, metadata, length = 1, {}, 4

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return torch.tensor([0.0, 1.0]), {}

    def step(self, action: torch.Tensor) -> Any:
        assert action.shape == (2,)
        self.time += 1
        observation = torch.tensor([float(self.time), float(action[0])])
        info = {"goal": self.time == 2, "parts": {"x": torch.tensor(0.5)}, "note": "text"}
        done = torch.tensor(float(self.time == self.length))
        return (
            observation,
            torch.tensor(2.0),
            torch.tensor(float(self.time)),
            done,
            torch.tensor(0.0),
            info,
        )

    def get_state(self) -> Any:
        return self.time

    def set_state(self, state: Any) -> None:
        self.time = state


class Resetting:
    """A batch of two that resets by itself, as OmniSafe's vector environments do, with a mask of who ended."""

    observation_space, action_space = Box(-99.0, 99.0, (1,)), Box(-1.0, 1.0, (1,))
    need_auto_reset_wrapper = need_time_limit_wrapper = False
    num_envs = 2

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.times = torch.zeros(2)
        return self.times[:, None].clone(), {}

    def step(self, action: torch.Tensor) -> Any:
        self.times = self.times + 1.0
        final, ended = self.times[:, None].clone(), self.times >= torch.tensor([2.0, 3.0])
        cost = self.times.clone()
        self.times = torch.where(ended, 0.0, self.times)
        info = {"final_observation": final, "_final_observation": ended} if ended.any() else {}
        return (
            self.times[:, None].clone(),
            torch.ones(2),
            cost,
            ended,
            torch.zeros(2, dtype=torch.bool),
            info,
        )


ACTION = torch.zeros(1, 2)


def test_six_values_of_one_environment_become_five_of_a_batch_of_one():
    env = FromCMDP(Countdown())
    observation, info = env.reset(seed=0)
    assert (
        observation.tolist() == [[0.0, 1.0]]
        and info == {}
        and env.metadata["autoreset_mode"] is DISABLED
    )
    assert env.observation_space.shape == (1, 2) and env.num_envs == 1
    observation, reward, terminated, truncated, info = env.step(ACTION)
    assert (observation.tolist(), reward.tolist(), info["cost"].tolist()) == (
        [[1.0, 0.0]],
        [2.0],
        [1.0],
    )
    assert terminated.dtype == truncated.dtype == torch.bool and terminated.shape == (1,)
    assert (
        info["parts"]["x"].tolist() == [0.5]
        and info["goal"].tolist() == [False]
        and info["note"] == "text"
    )
    again, _ = env.reset(options={"reset_mask": torch.tensor([False])})
    assert again.tolist() == observation.tolist()
    assert env.reset(options={"reset_mask": torch.tensor([True])})[0].tolist() == [[0.0, 1.0]]
    with pytest.raises(RuntimeError, match="reset_mask"):
        FromCMDP(Countdown()).reset(options={"reset_mask": torch.tensor([False])})


@pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP], ids=lambda mode: mode.name)
def test_the_whole_stack_works_above_it(mode):
    env = FromCMDP(Countdown())
    env = AutoReset(EpisodeStatistics(TimeLimit(ObsNormalize(env), 3)), mode)
    env = CostNormalize(RewardNormalize(env))
    env.reset(seed=0)
    costs, sums = [], []
    for _ in range(12):
        *_, info = env.step(ACTION)
        costs.append(info["original_cost"].item())
        if "episode" in info:
            sums.append(
                (
                    info["episode"]["l"].item(),
                    info["episode"]["c"].item(),
                    info["episode"]["r"].item(),
                )
            )
    cycle = [1.0, 2.0, 3.0] if mode is SAME_STEP else [1.0, 2.0, 3.0, 0.0]
    assert costs == cycle * (12 // len(cycle))
    assert set(sums) == {(3, 6.0, 6.0)}
    assert set(env.save()) == {"obs_normalizer", "reward_normalizer", "cost_normalizer"}


def test_one_that_resets_by_itself_has_the_form_of_this_package():
    env = FromCMDP(Resetting())
    assert env.metadata["autoreset_mode"] is SAME_STEP
    top = EpisodeStatistics(ObsNormalize(env))
    top.reset(seed=0)
    ends = []
    for _ in range(6):
        _, _, terminated, _, info = top.step(torch.zeros(2, 1))
        assert ("final_obs" in info) == bool(terminated.any())
        if "final_obs" in info:
            assert torch.equal(info["_final_obs"], terminated) and not {"final_observation"} & set(
                info
            )
            rows = terminated[:, None]
            raw = torch.where(rows, info["original_final_obs"], info["original_obs"])
            assert torch.equal(raw, info["original_final_obs"])
            assert info["original_final_obs"][terminated].flatten().tolist() == [
                [2.0, 3.0][i] for i in torch.nonzero(terminated).flatten()
            ]
            ends += info["episode"]["c"][terminated].tolist()
    assert ends == [3.0, 6.0, 3.0, 3.0, 6.0]


def test_a_step_of_other_values_is_refused():
    class Five(Countdown):
        def step(self, action: Any) -> Any:
            return super().step(action)[:5]

    class Wide(Countdown):
        def step(self, action: Any) -> Any:
            observation, reward, _, *rest = super().step(action)
            return observation, reward, torch.ones(3), *rest

    for cmdp, message in (
        (Five(), "six values, got 5"),
        (Wide(), r"cost of shape \(1,\) from Wide, got \(1, 3\)"),
    ):
        env = FromCMDP(cmdp)
        env.reset()
        with pytest.raises(ValueError, match=message):
            env.step(ACTION)
    with pytest.raises(TypeError, match=r"reset.*int"):
        FromCMDP(3)


@pytest.mark.parametrize(
    "make", [lambda: CMDP(make_toy_env(5)), lambda: VectorCMDP(ToyVectorEnv())]
)
def test_what_a_cmdp_wrapper_took_apart_comes_together_again(make):
    six = make()
    env = FromCMDP(six)
    single = not hasattr(six, "num_envs")
    five = Unsqueeze(make_toy_env(5)) if single else ToyVectorEnv()
    env.reset(seed=0), five.reset(seed=0)
    for action in np.random.default_rng(0).uniform(-1, 1, (8, five.num_envs, 2)).astype(np.float32):
        ours, expected = env.step(action), five.step(action)
        for one, other in zip(ours[:4], expected[:4], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        np.testing.assert_array_equal(ours[4]["cost"], expected[4]["cost"])
        np.testing.assert_array_equal(ours[4]["costs"], expected[4]["costs"])
        ended = expected[2] | expected[3]
        if ended.any():
            again = [each.reset(options={"reset_mask": ended})[0] for each in (env, five)]
            np.testing.assert_array_equal(*again)


def test_limits_are_those_of_the_environment():
    env = CostReduce(FromCMDP(VectorCMDP(ToyVectorEnv())), "weighted")
    env.reset()
    info = env.step(np.zeros((3, 2), np.float32))[4]
    np.testing.assert_allclose(info["cost"], info["costs"] @ [2.0, 4.0])


def test_a_stack_above_it_goes_on_from_its_state_and_its_copy():
    env = AutoReset(ObsNormalize(TimeLimit(FromCMDP(Countdown()), 3)))
    env.reset(seed=0)
    env.step(ACTION)
    copies = [copy.deepcopy(env), AutoReset(ObsNormalize(TimeLimit(FromCMDP(Countdown()), 3)))]
    copies[1].set_state(env.get_state())
    for _ in range(5):
        expected = env.step(ACTION)
        for other in copies:
            assert torch.equal(other.step(ACTION)[0], expected[0])


def test_environments_of_omnisafe_go_under_the_stack():
    pytest.importorskip(
        "legged_envs.wrappers.adapters.omnisafe",
        reason="OmniSafe is not installed",
        exc_type=ImportError,
    )
    from omnisafe.envs.core import make

    simple = make("Simple-v0")
    env = AutoReset(
        TimeLimit(simple, time_limit=5, device=torch.device("cpu")), torch.device("cpu")
    )
    env = EpisodeStatistics(CostNormalize(ObsNormalize(env, torch.device("cpu")), device="cpu"))
    assert isinstance(env.unwrapped, FromCMDP) and env.unwrapped.cmdp is simple
    env.reset(seed=0)
    lengths = []
    for _ in range(30):
        observation, _, _, _, info = env.step(torch.zeros(1, 2))
        assert observation.shape == (1, 3) and info["cost"].shape == (1,)
        lengths += info["episode"]["l"].tolist() if "episode" in info else []
    assert lengths and max(lengths) <= 5
    go2 = FromCMDP(make("Legged/Go2-Flat-v0", num_envs=3))
    assert go2.metadata["autoreset_mode"] is SAME_STEP and len(go2.cost_limits) == 6
    top = CostReduce(ObsNormalize(go2), "weighted")
    top.reset(seed=0)
    assert top.step(torch.zeros(3, 12))[4]["cost"].shape == (3,)
    top.close()


# --- constructors as OmniSafe's ---------------------------------------------------------------------------------------


def test_constructors_take_the_device_of_omnisafe_wherever_it_stands():
    device = torch.device("cpu")

    def chain(env: Any, **named: Any) -> Any:
        at = () if named else (device,)
        env = TimeLimit(env, 4, *at, **named)
        env = AutoReset(env, *at, **named)
        env = (
            ObsNormalize(env, *at, norm=None, **named) if named else ObsNormalize(env, device, None)
        )
        env = RewardNormalize(env, *at, **named)
        env = CostNormalize(env, *at, **named)
        env = (
            ActionScale(env, low=-1.0, high=1.0, **named)
            if named
            else ActionScale(env, device, -1.0, 1.0)
        )
        return Unsqueeze(env, *at, **named)

    traces = []
    for env in (
        chain(make_toy_env()),
        chain(make_toy_env(), device="cpu"),
        chain(Unsqueeze(make_toy_env()), device=device),
    ):
        env.reset(seed=3)
        traces.append([env.step(np.full((1, 2), 0.5, np.float32))[0] for _ in range(10)])
    np.testing.assert_array_equal(traces[0], traces[1])
    np.testing.assert_array_equal(traces[0], traces[2])
    assert traces[0][0].shape == (1, 5)
    norm = Normalizer((5,))
    assert ObsNormalize(ToyVectorEnv(), device, norm).normalizer is norm
    assert ObsNormalize(ToyVectorEnv(), norm).normalizer is norm
    assert ObsNormalize(ToyVectorEnv(), device, norm=norm).normalizer is norm
    assert ActionRepeat(ToyVectorEnv(), 3, device).times == 3
    assert TimeLimit(ToyVectorEnv(), 3, True).is_finite_horizon
    assert AutoReset(ToyVectorEnv(), device, mode=NEXT_STEP).mode is NEXT_STEP
    assert AutoReset(ToyVectorEnv(), NEXT_STEP, device=device).mode is NEXT_STEP
    for scaled in (
        ActionScale(ToyVectorEnv(), -2.0, 4.0),
        ActionScale(ToyVectorEnv(), -2.0, high=4.0, device=device),
        ActionScale(ToyVectorEnv(), device, low=-2.0, high=4.0),
    ):
        assert scaled.single_action_space.low.tolist() == [-2.0, -2.0]
        assert scaled.single_action_space.high.tolist() == [4.0, 4.0]
    assert ToTorch(ToyVectorEnv(), "cpu").device == device


def test_a_device_where_the_environment_is_not_is_refused():
    for env, shown in (
        (TimeLimit(ToyVectorEnv(), 5, device="cuda:1"), "cuda:1"),
        (AutoReset(ToyVectorEnv(), "cuda"), "cuda"),
    ):
        with pytest.raises(ValueError, match=rf"{type(env).__name__}.*'{shown}'.*'cpu'.*ToTorch"):
            env.reset()
    for given in (3, "gpu"):
        with pytest.raises(TypeError, match=f"device={given!r}"):
            Unsqueeze(make_toy_env(), device=given)
    with pytest.raises(TypeError, match=r"'cpu' and 'cuda'"):
        RewardNormalize(ToyVectorEnv(), "cpu", device="cuda")
    with pytest.raises(ValueError, match="gpu"):
        AutoReset(ToyVectorEnv(), "gpu")


def test_an_argument_that_is_given_twice_or_not_at_all_is_refused():
    norm = Normalizer(())
    for wrapper in (ObsNormalize, RewardNormalize, CostNormalize):
        with pytest.raises(TypeError, match="norm"):
            wrapper(ToyVectorEnv(), norm, norm)
    with pytest.raises(TypeError, match="mode"):
        AutoReset(ToyVectorEnv(), NEXT_STEP, mode=SAME_STEP)
    with pytest.raises(TypeError, match="is_finite_horizon"):
        TimeLimit(ToyVectorEnv(), 3, "gpu")
    with pytest.raises(TypeError, match="high=None"):
        ActionScale(ToyVectorEnv(), -1.0)
    with pytest.raises(TypeError, match=r"1\.0, 2\.0 and 3\.0"):
        ActionScale(ToyVectorEnv(), 1.0, 2.0, high=3.0)


def test_every_layer_can_save():
    norm = ObsNormalize(ToyVectorEnv())
    env: Any = norm
    for wrap in (
        functools.partial(TimeLimit, time_limit=4),
        EpisodeStatistics,
        AutoReset,
        ToTorch,
        ToNumpy,
        VectorCMDP,
    ):
        env = wrap(env)
        assert env.save() == {"obs_normalizer": norm.normalizer}
    assert TimeLimit(ToyVectorEnv(), 3).save() == Unsqueeze(ToyEnv()).save() == {}


# --- plain environments, and others' in the form of this package ------------------------------------------------------


def test_a_plain_environment_becomes_a_batch_of_one_under_any_wrapper():
    ours = AutoReset(TimeLimit(gym.make("CartPole-v1"), 5))
    expected = AutoReset(TimeLimit(Unsqueeze(gym.make("CartPole-v1")), 5))
    for env in (ours, expected):
        env.reset(seed=1)
    for _ in range(12):
        one, other = ours.step(np.array([0])), expected.step(np.array([0]))
        np.testing.assert_array_equal(one[0], other[0])
    with pytest.raises(ValueError, match="CMDP"):
        TimeLimit(CMDP(make_toy_env()), 5)


@pytest.mark.parametrize(
    "wrap", [lambda env: env, gym.wrappers.vector.RecordEpisodeStatistics], ids=["bare", "wrapped"]
)
def test_others_environments_have_one_form_and_stay_what_they_are(wrap):
    core = SyncVectorEnv([functools.partial(make_toy_env, 4)] * 3, autoreset_mode=SAME_STEP)
    env = EpisodeStatistics(ObsNormalize(wrap(core)))
    assert env.unwrapped is core
    env.reset(seed=0)
    ends = 0
    for _ in range(12):
        _, _, terminated, truncated, info = env.step(np.zeros((3, 2), np.float32))
        ended = terminated | truncated
        assert info["cost"].shape == (3,) and (info["cost"] == info["costs"].sum(1)).all()
        if ended.any():
            ends += 1
            assert info["final_obs"].shape == (3, 5) and info["final_obs"].dtype == np.float32
            np.testing.assert_array_equal(info["_final_obs"], ended)
            np.testing.assert_array_equal(
                info["original_final_obs"][~ended], info["original_obs"][~ended]
            )
            np.testing.assert_array_equal(info["cost"][ended], info["final_info"]["cost"][ended])
    assert ends > 3


@pytest.mark.parametrize(
    "layout", [lambda mask: mask[::-1][::-1], lambda mask: np.repeat(mask, 2)[::2], None]
)
def test_masks_and_actions_of_any_layout_reach_tensors(layout):
    mask, action = np.array([True, False, False]), np.zeros((3, 2), np.float32)
    if layout is None:
        mask, action = mask[::-1], action[::-1]
    else:
        mask = layout(mask)
    env = AutoReset(ToNumpy(ToyVectorEnv(array="torch")), NEXT_STEP)
    env.reset()
    env.step(action)
    observation, _ = env.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(observation[:, 2] == 0.0, mask)
