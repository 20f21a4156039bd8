"""Normalization against float64 statistics of all samples, and against Gymnasium, Stable-Baselines3 and OmniSafe."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import array_api_strict
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward
from hypothesis import given, settings
from hypothesis import strategies as st

from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.cost_normalize import CostNormalize
from legged_envs.wrappers.obs_normalize import ObsNormalize
from legged_envs.wrappers.plumbing.normalizer import Normalizer
from legged_envs.wrappers.reward_normalize import RewardNormalize
from legged_envs.wrappers.time_limit import TimeLimit

SAME_STEP, NEXT_STEP, DISABLED = (
    AutoresetMode.SAME_STEP,
    AutoresetMode.NEXT_STEP,
    AutoresetMode.DISABLED,
)
MODES = pytest.mark.parametrize(
    "mode", [DISABLED, NEXT_STEP, SAME_STEP], ids=lambda mode: mode.name
)
KINDS = pytest.mark.parametrize("kind", ["numpy", "torch", "strict"])
SCALES = pytest.mark.parametrize("scale", ["return", "step"])
NUM_ENVS = 4
STEPS = 30
GAMMA = 0.99


# --- environments -----------------------------------------------------------------------------------------------------


class Walk(gym.Env):
    """Random observations, rewards and costs, in episodes of random length or of a fixed one.

    The seed and the number of an episode determine its numbers, whatever the length of the episode before. After its end, an episode continues without flags.
    """

    observation_space: gym.Space = Box(-100.0, 100.0, (3,))
    action_space = Box(-1.0, 1.0, (1,))
    length: int | None = None
    terminates = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.turn = (seed, 0) if seed is not None else (self.turn[0], self.turn[1] + 1)
        self.np_random = np.random.default_rng(self.turn)
        self.left = self.length or int(self.np_random.integers(2, 7))
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        over = self.left == 0
        costs = np.float32(2.0) * self.np_random.random(2, dtype=np.float32)
        reward = float(np.float32(self.np_random.normal(0.3, 2.0)))
        terminated = over and self.terminates and bool(self.np_random.random() < 0.7)
        return (
            self._observe(),
            reward,
            terminated,
            over and not terminated,
            {"cost": costs.sum(), "costs": costs},
        )

    def _observe(self) -> Any:
        return (self.np_random.normal(size=3) * (0.5, 2.0, 0.1) + (0.0, 3.0, -4.0)).astype(
            np.float32
        )


class GroupedWalk(Walk):
    """The same with observations in two groups."""

    observation_space = Dict(
        {"policy": Box(-100.0, 100.0, (3,)), "critic": Box(-100.0, 100.0, (2, 2))}
    )

    def _observe(self) -> Any:
        return {
            "policy": super()._observe(),
            "critic": self.np_random.random((2, 2), dtype=np.float32),
        }


class LongWalk(Walk):
    """Episodes of five steps that are only ever truncated."""

    length, terminates = 5, False


class Walks(VectorEnv):
    """A batch of walks that never reset by themselves, of any kind of arrays."""

    def __init__(self, single: type[Walk] = Walk, kind: str = "numpy"):
        self.num_envs, self.kind = NUM_ENVS, kind
        self.metadata = {"autoreset_mode": DISABLED}
        self.envs = [single() for _ in range(NUM_ENVS)]
        self.single_observation_space, self.single_action_space = (
            single.observation_space,
            single.action_space,
        )
        self.observation_space = batch_space(self.single_observation_space, NUM_ENVS)
        self.action_space = batch_space(self.single_action_space, NUM_ENVS)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = np.ones(NUM_ENVS, bool) if options is None else np.asarray(options["reset_mask"])
        for i in np.flatnonzero(mask):
            self._set(i, self.envs[i].reset(seed=None if seed is None else seed + int(i))[0])
        return convert(copy.deepcopy(self.observation), self.kind), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        steps = [env.step(None) for env in self.envs]
        for i, step in enumerate(steps):
            self._set(i, step[0])
        _, reward, terminated, truncated, infos = zip(*steps, strict=True)
        info = {key: np.array([info[key] for info in infos]) for key in ("cost", "costs")}
        values = (
            self.observation,
            np.array(reward, np.float32),
            np.array(terminated),
            np.array(truncated),
            info,
        )
        return tuple(convert(copy.deepcopy(values), self.kind))

    def get_state(self) -> Any:
        return copy.deepcopy((self.envs, self.observation))

    def set_state(self, state: Any) -> None:
        self.envs, self.observation = copy.deepcopy(state)

    def _set(self, row: Any, value: Any) -> None:
        if not hasattr(self, "observation"):
            self.observation = to_numpy(
                batch_space(self.single_observation_space, NUM_ENVS).sample()
            )
        pairs = (
            [(self.observation[key], value[key]) for key in value]
            if isinstance(value, dict)
            else None
        )
        for batch, single in pairs or [(self.observation, value)]:
            batch[row] = single


class Steps(VectorEnv):
    """A batch without randomness: what each step returns is given. Observations are zeros."""

    def __init__(
        self, rewards: Any, infos: Any = None, mode: AutoresetMode = SAME_STEP, flags: Any = None
    ):
        self.rewards = np.array(rewards, np.float32)
        self.num_envs = self.rewards.shape[1]
        self.infos, self.flags = infos or [{}] * len(self.rewards), flags
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space, self.single_action_space = (
            Box(-1.0, 1.0, (1,)),
            Box(-1.0, 1.0, (1,)),
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.time = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((self.num_envs, 1), np.float32), {}

    def step(self, actions: Any = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        step, self.time = self.time, self.time + 1
        none = np.zeros(self.num_envs, bool)
        ended = none if self.flags is None else np.array(self.flags[step])
        return self.reset()[0], self.rewards[step], ended, none.copy(), self.infos[step]


def convert(tree: Any, kind: str) -> Any:
    if isinstance(tree, dict):
        return {key: convert(value, kind) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return [convert(value, kind) for value in tree]
    if not isinstance(tree, np.ndarray):
        return tree
    return {"numpy": np.array, "torch": torch.from_numpy, "strict": array_api_strict.asarray}[kind](
        tree
    )


def to_numpy(tree: Any) -> Any:
    """A copy as NumPy arrays; object arrays keep what is in them."""
    if isinstance(tree, dict):
        return {key: to_numpy(value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return [to_numpy(value) for value in tree]
    return (
        copy.deepcopy(tree)
        if tree is None or isinstance(tree, Normalizer)
        else np.asarray(tree).copy()
    )


def resetting(env: VectorEnv, mode: AutoresetMode) -> VectorEnv:
    return env if mode is DISABLED else AutoReset(env, mode)


def sync(mode: AutoresetMode, single: type[Walk] = Walk) -> SyncVectorEnv:
    return SyncVectorEnv([single] * NUM_ENVS, autoreset_mode=mode)


def trace(
    env: VectorEnv, mode: AutoresetMode, spoil: bool = False, steps: int = STEPS
) -> list[Any]:
    """All resets and steps, with partial resets now and then: (mask or None, observation, info) and what steps return.

    Without autoreset, an environment continues after the end of its episode until the next step divisible by three.
    ``spoil`` overwrites everything that is returned once it is recorded.
    """
    kind = getattr(env.unwrapped, "kind", "numpy")
    events: list[Any] = []

    def record(result: Any, mask: Any = None, *, reset: bool = False) -> list[Any]:
        event = to_numpy(result)
        events.append((mask, *event) if reset else event)
        if spoil:
            overwrite(result)
        return event

    record(env.reset(seed=7), reset=True)
    waiting = np.zeros(NUM_ENVS, bool)
    for step in range(steps):
        _, _, terminated, truncated, _ = record(env.step(np.zeros((NUM_ENVS, 1), np.float32)))
        waiting |= terminated | truncated
        mask = waiting & (mode is DISABLED and step % 3 == 0)
        waiting &= ~mask
        mask[step % NUM_ENVS] |= step % 7 == 6
        if mask.any():
            record(env.reset(options={"reset_mask": convert(mask.copy(), kind)}), mask, reset=True)
    return events


def overwrite(tree: Any) -> None:
    if isinstance(tree, dict):
        for value in list(tree.values()):
            overwrite(value)
        tree.clear()
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            overwrite(value)
    elif isinstance(tree, np.ndarray) and tree.dtype == object:
        tree[:] = None
    elif tree is not None:
        tree[...] = True if "bool" in str(tree.dtype) else 77


# --- float64 oracles --------------------------------------------------------------------------------------------------


class AllSamples:
    """Statistics over samples that are all kept: the definition, in two passes."""

    def __init__(self, clip: float = 5.0):
        self.rows: list[np.ndarray] = []
        self.clip = clip

    def add(self, samples: Any) -> None:
        self.rows.extend(np.asarray(samples, np.float64))

    @property
    def mean(self) -> Any:
        return np.mean(self.rows, axis=0)

    @property
    def std(self) -> Any:
        return np.maximum(np.std(self.rows, axis=0, ddof=1), 0.01) if len(self.rows) > 1 else 1.0

    def normalize(self, values: Any) -> Any:
        mean = self.mean if len(self.rows) > 1 else 0.0
        return np.clip((np.asarray(values, np.float64) - mean) / self.std, -self.clip, self.clip)

    def scale(self, values: Any) -> Any:
        return np.clip(np.asarray(values, np.float64) / self.std, -self.clip, self.clip)

    def assert_equals(self, normalizer: Normalizer) -> None:
        assert normalizer.count == len(self.rows)
        np.testing.assert_allclose(np.asarray(normalizer.mean), self.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.asarray(normalizer.std), self.std, rtol=1e-9)


class Episodes:
    """Which rows belong to an episode, from the flags and the resets."""

    def __init__(self, mode: AutoresetMode):
        self.mode = mode
        self.over = np.zeros(NUM_ENVS, bool)

    def reset(self, mask: Any) -> None:
        self.over = np.zeros(NUM_ENVS, bool) if mask is None else self.over & ~mask

    def step(self, ended: Any) -> None:
        self.over = {SAME_STEP: self.over, NEXT_STEP: ended, DISABLED: self.over | ended}[self.mode]


def expected_observations(
    raw: list[Any], mode: AutoresetMode, samples: AllSamples
) -> list[tuple[Any, Any]]:
    """Return the expected (observation, final observation) of every reset and step."""
    expected, episodes = [], Episodes(mode)
    for event in raw:
        if len(event) == 3:
            mask, observation, _ = event
            if mask is None:
                samples.add(observation)
            expected.append((samples.normalize(observation), None))
            if mask is not None:
                samples.add(observation[mask])
            episodes.reset(mask)
            continue
        observation, _, terminated, truncated, info = event
        ended, last = terminated | truncated, None
        if "final_obs" in info:
            samples.add(info["final_obs"][ended])
            last = samples.normalize(info["final_obs"])
        samples.add(observation[~episodes.over] if mode is DISABLED else observation)
        normalized = samples.normalize(observation)
        if last is not None:
            last[~ended] = normalized[~ended]
        expected.append((normalized, last))
        episodes.step(ended)
    return expected


def expected_values(
    raw: list[Any], mode: AutoresetMode, scale: str, samples: AllSamples, pick: Callable[[Any], Any]
) -> list[Any]:
    """Return the expected value of every step for the rewards or costs that ``pick`` selects."""
    expected, episodes = [], Episodes(mode)
    returns: Any = 0.0
    for event in raw:
        if len(event) == 3:
            episodes.reset(event[0])
            if event[0] is None:
                returns = np.zeros_like(returns)
            else:
                returns[event[0]] = 0.0
            continue
        values, ended, counted = (
            np.asarray(pick(event), np.float64),
            event[2] | event[3],
            ~episodes.over,
        )
        returns = GAMMA * returns + values
        samples.add((returns if scale == "return" else values)[counted])
        if scale == "return":
            expected.append(samples.scale(values))
        else:
            expected.append(samples.normalize(values))
            expected[-1][~counted] = 0.0
        returns[ended | ~counted] = 0.0
        episodes.step(ended)
    return expected


def group(events: list[Any], name: str) -> list[Any]:
    """The events as they would be if there were only one group of observations."""
    picked = []
    for event in events:
        *head, info = event
        at = 1 if len(event) == 3 else 0
        head[at] = head[at][name]
        info = {
            key: value[name] if key.endswith("_obs") and key[0] != "_" else value
            for key, value in info.items()
        }
        picked.append((*head, info))
    return picked


# --- Normalizer -------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    offset=st.floats(-1e6, 1e6),
    spread=st.floats(1e-1, 1e3),
    drift=st.floats(-10.0, 10.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_statistics_equal_those_of_all_samples_at_once(sizes, offset, spread, drift, seed):
    rng = np.random.default_rng(seed)
    normalizer, samples = Normalizer((2, 3)), AllSamples()
    for i, size in enumerate(sizes):
        batch = offset + spread * (drift * i + rng.standard_normal((size, 2, 3)))
        normalizer.push(batch)
        samples.add(batch)
    assert normalizer.count == sum(sizes)
    assert np.isfinite([normalizer.mean, normalizer.var, normalizer.std]).all()
    if sum(sizes):
        np.testing.assert_allclose(normalizer.mean, samples.mean, rtol=1e-12, atol=1e-9 * spread)
    if sum(sizes) > 1:
        np.testing.assert_allclose(normalizer.var, np.var(samples.rows, axis=0, ddof=1), rtol=1e-7)
    values = offset + spread * rng.standard_normal((5, 2, 3))
    np.testing.assert_allclose(normalizer.normalize(values), samples.normalize(values), atol=1e-6)


@KINDS
def test_nothing_is_nan_before_the_second_sample(kind):
    normalizer = Normalizer((2,))
    value = convert(np.array([[3.0, -9.0]]), kind)
    for samples in (value[:0, ...], value, value[:0, ...]):
        normalizer.push(samples)
        for result in (normalizer.normalize(value), normalizer.scale(value)):
            assert to_numpy(result).tolist() == [[3.0, -5.0]]
        assert to_numpy(normalizer.var).tolist() == to_numpy(normalizer.std).tolist() == [1.0, 1.0]
    assert normalizer.count == 1 and to_numpy(normalizer.mean).tolist() == [3.0, -9.0]
    restored = pickle.loads(pickle.dumps(normalizer))
    restored.push(value - 2.0)
    assert to_numpy(restored.mean).tolist() == [2.0, -10.0] and to_numpy(restored.var).tolist() == [
        2.0,
        2.0,
    ]


@pytest.mark.parametrize(("count", "size"), [(2**26, 1), (2**32, 64), (2**40, 64)])
def test_statistics_go_on_changing_after_any_number_of_samples(count, size):
    normalizer = Normalizer(())
    normalizer.load_state_dict({"count": count, "mean": 0.0, "m2": float(count), "clip": 5.0})
    batch = np.tile([2.0, -2.0], 32)[:size]
    for _ in range(50):
        normalizer.push(batch)
    assert normalizer.count == count + 50 * size and isinstance(normalizer.count, int)
    assert normalizer.m2 - count == pytest.approx(50 * size * 4.0, rel=1e-2)


def test_the_variance_is_unbiased_and_its_root_not_below_one_hundredth():
    normalizer = Normalizer((2,))
    normalizer.push(np.array([[1.0, 5.0], [3.0, 5.0]]))
    assert normalizer.var.tolist() == [2.0, 0.0] and normalizer.std.tolist() == [np.sqrt(2.0), 0.01]
    assert normalizer.normalize(np.array([2.0, 5.02])).tolist() == pytest.approx([0.0, 2.0])
    constant = Normalizer(())
    for _ in range(100):
        constant.push(np.full(7, 0.1))  # not exact in binary: M2 is rounding alone
    assert constant.std == 0.01 and constant.normalize(np.array([0.1])) == pytest.approx(
        0.0, abs=1e-9
    )


@KINDS
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_values_keep_their_kind_and_floating_dtype_and_are_new_arrays(kind, dtype):
    values = convert(np.arange(8).reshape(4, 2).astype(dtype), kind)
    for pushes in range(3):
        normalizer = Normalizer((2,), clip=1e6)
        for _ in range(pushes):
            normalizer.push(values)
        for result in (normalizer.normalize(values), normalizer.scale(values)):
            assert type(result) is type(values)
            assert str(result.dtype).endswith(dtype if "float" in dtype else "float32")
            result[...] = 0
        assert to_numpy(values).tolist() == np.arange(8).reshape(4, 2).tolist()


def test_statistics_follow_the_data_to_another_kind_of_array():
    data = np.random.default_rng(0).normal(3.0, 2.0, (6, 10, 4)).astype(np.float32)
    one, mixed = Normalizer((4,)), Normalizer((4,))
    for batch, kind in zip(
        data, ["numpy", "torch", "strict", "torch", "numpy", "strict"], strict=True
    ):
        one.push(batch)
        mixed.push(convert(batch, kind))
        result = mixed.normalize(convert(batch, kind))
        assert type(result) is type(convert(batch, kind))
        np.testing.assert_allclose(to_numpy(result), one.normalize(batch), atol=1e-6)
    np.testing.assert_allclose(to_numpy(mixed.m2), one.m2, rtol=1e-12)


@KINDS
@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))], ids=["copied", "pickled"]
)
def test_a_copy_is_exact_and_separate(kind, again):
    data = convert(np.random.default_rng(0).normal(size=(3, 10, 4)), kind)
    normalizer = Normalizer((4,), clip=3.0)
    normalizer.push(data[0, ...])
    other = again(normalizer)
    loaded = Normalizer((4,), clip=3.0)
    loaded.load_state_dict(normalizer.state_dict())
    normalizer.push(data[1, ...])
    assert other.count == loaded.count == 10 and other.clip == 3.0
    for copied in (other, loaded):
        copied.push(data[1, ...])
        assert (
            to_numpy(copied.normalize(data[2, ...])) == to_numpy(normalizer.normalize(data[2, ...]))
        ).all()
        assert type(copied.mean) is type(normalizer.mean)


@KINDS
def test_pushing_and_normalizing_at_once_equals_one_after_the_other(kind):
    rng = np.random.default_rng(0)
    once, twice = Normalizer((4,)), Normalizer((4,))
    for size in (0, 1, 1, 0, 7, 3):
        samples = convert(rng.normal(1e3, 2.0, (size, 4)).astype(np.float32), kind)
        result = once.push_and_normalize(samples)
        twice.push(samples)
        assert type(result) is type(samples) and result.dtype == samples.dtype
        np.testing.assert_allclose(to_numpy(result), to_numpy(twice.normalize(samples)), atol=1e-6)
    assert (to_numpy(once.m2) == to_numpy(twice.m2)).all() and once.count == twice.count == 12
    with pytest.raises(ValueError, match=r"\(num_samples, 4\)"):
        once.push_and_normalize(convert(np.zeros((2, 3)), kind))


def test_a_single_number_is_normalized_too():
    normalizer = Normalizer(())
    normalizer.push(np.array([1.0, 3.0]))
    for number in (np.float64(4.0), np.array(4.0)):
        assert normalizer.normalize(number) == pytest.approx(2.0 / np.sqrt(2.0))
        assert normalizer.scale(number) == pytest.approx(4.0 / np.sqrt(2.0))


def test_a_state_is_a_copy():
    normalizer = Normalizer((2,))
    normalizer.push(np.random.default_rng(0).normal(size=(5, 2)))
    state = normalizer.state_dict()
    mean = normalizer.mean.copy()
    state["mean"][:] = 9.0
    assert (normalizer.mean == mean).all()
    normalizer.load_state_dict(state)
    state["mean"][:] = 7.0
    assert normalizer.mean.tolist() == [9.0, 9.0]


def test_a_normalizer_refuses_what_does_not_fit():
    normalizer = Normalizer((3,))
    for wrong in (np.zeros(3), np.zeros((2, 4)), np.zeros(())):
        with pytest.raises(ValueError, match=r"\(num_samples, 3\)"):
            normalizer.push(wrong)
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\)|\(2,\).*\(3,\)"):
        normalizer.load_state_dict(Normalizer((2,)).state_dict())
    with pytest.raises(ValueError, match=r"clip=4\.0.*clip=5\.0"):
        normalizer.load_state_dict(Normalizer((3,), clip=4.0).state_dict())
    state = normalizer.state_dict()
    with pytest.raises(ValueError, match=r"\(7,\).*\(3,\)"):
        normalizer.load_state_dict({**state, "count": 9, "m2": np.zeros(7)})
    for lacking in state:
        with pytest.raises(ValueError, match=f"no {lacking!r}"):
            normalizer.load_state_dict(
                {key: value for key, value in state.items() if key != lacking} | {"shape": (3,)}
            )
    for clip in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="clip"):
            Normalizer((3,), clip=clip)
    assert normalizer.count == 0


# --- ObsNormalize -----------------------------------------------------------------------------------------------------


@MODES
@KINDS
def test_observations_are_normalized_by_the_statistics_of_all_that_were_seen(mode, kind):
    raw = trace(resetting(Walks(kind=kind), mode), mode)
    env = ObsNormalize(resetting(Walks(kind=kind), mode))
    events, samples = trace(env, mode), AllSamples()
    finals = 0
    for event, before, (observation, last) in zip(
        events, raw, expected_observations(raw, mode, samples), strict=True
    ):
        at = 1 if len(event) == 3 else 0
        np.testing.assert_allclose(event[at], observation, atol=1e-6)
        assert env.observation_space.contains(event[at])
        assert (event[-1]["original_obs"] == before[at]).all()
        assert (
            ("final_obs" in event[-1]) == ("original_final_obs" in event[-1]) == (last is not None)
        )
        if last is not None:
            finals += 1
            np.testing.assert_allclose(event[-1]["final_obs"], last, atol=1e-6)
            going = ~event[-1]["_final_obs"]
            assert (event[-1]["final_obs"][going] == event[at][going]).all()
            assert (event[-1]["original_final_obs"] == before[-1]["final_obs"]).all()
    samples.assert_equals(env.normalizer)
    assert finals > 5 or mode is not SAME_STEP


@MODES
@KINDS
def test_each_group_of_observations_has_its_own_statistics(mode, kind):
    raw = trace(resetting(Walks(GroupedWalk, kind), mode), mode)
    env = ObsNormalize(resetting(Walks(GroupedWalk, kind), mode))
    events = trace(env, mode)
    assert set(env.save()["obs_normalizer"]) == {"policy", "critic"}
    for name in ("policy", "critic"):
        samples = AllSamples()
        expected = expected_observations(group(raw, name), mode, samples)
        for event, (observation, last) in zip(group(events, name), expected, strict=True):
            np.testing.assert_allclose(event[1 if len(event) == 3 else 0], observation, atol=1e-6)
            if last is not None:
                np.testing.assert_allclose(event[-1]["final_obs"], last, atol=1e-6)
        samples.assert_equals(env.normalizer[name])


@MODES
@pytest.mark.parametrize("single", [Walk, GroupedWalk])
def test_gymnasiums_vector_environment_gives_the_same(mode, single):
    """It reports final observations as an array of objects, and the costs of ended environments in ``final_info``."""

    def wrapped(env: VectorEnv) -> VectorEnv:
        return CostNormalize(RewardNormalize(ObsNormalize(env)))

    def steps(env: VectorEnv, mode: AutoresetMode) -> list[Any]:
        env.reset(seed=7)
        results = []
        for _ in range(STEPS):
            results.append(to_numpy(env.step(np.zeros((NUM_ENVS, 1), np.float32))))
            if mode is DISABLED and (results[-1][2] | results[-1][3]).any():
                results.append(
                    to_numpy(env.reset(options={"reset_mask": results[-1][2] | results[-1][3]}))
                )
        return results

    ours, theirs = wrapped(resetting(Walks(single), mode)), wrapped(sync(mode, single))
    ended_steps = 0
    for mine, other in zip(steps(ours, mode), steps(theirs, mode), strict=True):
        assert_close(other[0], mine[0])
        for one, two in zip(other[1:-1], mine[1:-1], strict=True):
            np.testing.assert_allclose(one, two, atol=1e-6)
        for key in ("cost", "costs", "original_cost", "original_costs") if len(mine) == 5 else ():
            np.testing.assert_allclose(
                other[-1].get(key, 0.0 * mine[-1][key]), mine[-1][key], atol=1e-6
            )
        if "final_obs" in mine[-1]:
            ended_steps += 1
            for key in ("final_obs", "original_final_obs"):
                assert_close(
                    other[-1][key], mine[-1][key]
                )  # a full batch, also in the rows that go on
            for key in ("cost", "original_cost", "costs"):
                rows = mine[-1]["_final_obs"]
                np.testing.assert_allclose(
                    other[-1]["final_info"][key][rows], mine[-1][key][rows], atol=1e-6
                )
    assert ended_steps > 5 or mode is not SAME_STEP
    assert_same_statistics(theirs.save(), ours.save(), rtol=1e-9)


def pick(tree: Any, row: Any) -> Any:
    return {key: value[row] for key, value in tree.items()} if isinstance(tree, dict) else tree[row]


def assert_close(one: Any, other: Any) -> None:
    if isinstance(other, dict):
        assert set(one) == set(other)
        for key in other:
            assert_close(one[key], other[key])
    else:
        np.testing.assert_allclose(one, other, atol=1e-6)


def assert_same_statistics(one: Any, other: Any, rtol: float = 0.0) -> None:
    if isinstance(other, dict):
        assert set(one) == set(other)
        for key in other:
            assert_same_statistics(one[key], other[key], rtol)
    else:
        assert one.count == other.count > 0
        np.testing.assert_allclose(to_numpy(one.mean), to_numpy(other.mean), rtol=rtol)
        np.testing.assert_allclose(to_numpy(one.m2), to_numpy(other.m2), rtol=rtol)


@pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP], ids=lambda mode: mode.name)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_statistics_are_the_same_below_an_autoreset_and_above(mode, kind):
    def wrapped(env: VectorEnv) -> Any:
        return CostNormalize(RewardNormalize(ObsNormalize(env)))

    above, below = (
        wrapped(AutoReset(Walks(kind=kind), mode)),
        AutoReset(wrapped(Walks(kind=kind)), mode),
    )
    trace(above, mode)
    events = trace(below, mode)
    assert_same_statistics(below.save(), above.save(), rtol=1e-9)
    for event in events[1:]:
        if (
            "final_obs" in event[-1]
        ):  # rows that go on are next observations and observations at once
            going = ~event[-1]["_final_obs"]
            assert (event[-1]["final_obs"][going] == event[0][going]).all()


@KINDS
@pytest.mark.parametrize("mode", [DISABLED, SAME_STEP], ids=lambda mode: mode.name)
def test_a_partial_reset_leaves_the_other_rows_as_they_were(mode, kind):
    env = ObsNormalize(resetting(Walks(kind=kind), mode))
    env.reset(seed=1)
    before = to_numpy(env.step(np.zeros((NUM_ENVS, 1)))[0])
    count = env.normalizer.count
    mask = np.array([False, True, False, True])
    after, info = to_numpy(env.reset(options={"reset_mask": convert(mask, kind)}))
    assert (after[~mask] == before[~mask]).all() and (after[mask] != before[mask]).any(axis=1).all()
    assert env.normalizer.count == count + 2
    assert info["original_obs"].shape == (NUM_ENVS, 3)


@MODES
def test_observations_are_close_to_those_of_gymnasiums_wrapper_where_it_can_be_used(mode):
    if mode is not NEXT_STEP:
        # Gymnasium 1.2 asserts it, without a word.
        with pytest.raises((AssertionError, ValueError), match=r"NEXT_STEP|^$"):
            NormalizeObservation(sync(mode))
        return
    ours, theirs = ObsNormalize(sync(mode), clip=100.0), NormalizeObservation(sync(mode))
    ours.reset(seed=7)
    theirs.reset(seed=7)
    for _ in range(60):
        one, two = (env.step(np.zeros((NUM_ENVS, 1), np.float32))[0] for env in (ours, theirs))
    n = ours.normalizer.count
    np.testing.assert_allclose(ours.normalizer.mean, theirs.obs_rms.mean, rtol=1e-4)
    np.testing.assert_allclose(ours.normalizer.var * (n - 1) / n, theirs.obs_rms.var, rtol=1e-3)
    np.testing.assert_allclose(
        one, two * np.sqrt((n - 1) / n), atol=5e-3
    )  # theirs begins at variance 1 and adds 1e-8


def test_observations_of_whole_numbers_become_float32():
    class Image(Walk):
        observation_space = Box(0, 255, (2, 2, 3), np.uint8)

        def _observe(self) -> Any:
            return self.np_random.integers(0, 256, (2, 2, 3), np.uint8)

    env = ObsNormalize(sync(NEXT_STEP, Image))
    assert env.single_observation_space == Box(-5.0, 5.0, (2, 2, 3))
    env.reset(seed=0)
    assert env.observation_space.contains(env.step(np.zeros((NUM_ENVS, 1), np.float32))[0])


def test_the_observation_space_has_the_bounds_of_the_clip():
    assert ObsNormalize(Walks(), clip=2.0).single_observation_space == Box(-2.0, 2.0, (3,))
    assert ObsNormalize(Walks()).observation_space == Box(-5.0, 5.0, (NUM_ENVS, 3))
    assert ObsNormalize(Walks(), Normalizer((3,), clip=7.0)).observation_space == Box(
        -7.0, 7.0, (NUM_ENVS, 3)
    )
    grouped = ObsNormalize(Walks(GroupedWalk)).single_observation_space
    assert grouped == Dict({"policy": Box(-5.0, 5.0, (3,)), "critic": Box(-5.0, 5.0, (2, 2))})


# --- RewardNormalize --------------------------------------------------------------------------------------------------


@MODES
@KINDS
@SCALES
def test_rewards_are_scaled_by_the_statistics_of_all_episodes(mode, kind, scale):
    raw = trace(resetting(Walks(kind=kind), mode), mode)
    env = RewardNormalize(resetting(Walks(kind=kind), mode), scale=scale)
    events, samples = trace(env, mode), AllSamples()
    expected = expected_values(raw, mode, scale, samples, lambda event: event[1])
    ours = [event for event in events if len(event) == 5]
    for event, before, reward in zip(ours, [e for e in raw if len(e) == 5], expected, strict=True):
        np.testing.assert_allclose(event[1], reward, atol=1e-6)
        assert event[1].dtype == np.float32
        assert (event[-1]["original_reward"] == before[1]).all()
    samples.assert_equals(env.normalizer)


def test_rewards_equal_those_of_gymnasiums_wrapper_where_no_episode_terminates():
    """At a termination, Gymnasium's wrapper takes the last reward as the return, and its count starts at 0.0001."""
    if gym.__version__.startswith("1.2."):
        pytest.skip("Gymnasium 1.2 continues the return of an episode that was truncated")
    ours = RewardNormalize(sync(SAME_STEP, LongWalk), clip=1e9)
    theirs = NormalizeReward(sync(SAME_STEP, LongWalk))
    ours.reset(seed=3)
    theirs.reset(seed=3)
    for _ in range(40):
        one, two = (env.step(np.zeros((NUM_ENVS, 1), np.float32))[1] for env in (ours, theirs))
    n = ours.normalizer.count
    assert n == 40 * NUM_ENVS
    np.testing.assert_allclose(one, two * np.sqrt((n - 1) / n), rtol=1e-5)


def test_rewards_equal_those_of_stable_baselines3():
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    theirs = vec_env.VecNormalize(
        vec_env.DummyVecEnv([Walk] * NUM_ENVS), norm_obs=False, clip_reward=5.0
    )
    ours = RewardNormalize(sync(SAME_STEP))
    theirs.seed(3)
    theirs.reset()
    ours.reset(seed=3)
    for _ in range(40):
        one = ours.step(np.zeros((NUM_ENVS, 1), np.float32))[1]
        two = theirs.step(np.zeros((NUM_ENVS, 1), np.float32))[1]
    n = ours.normalizer.count
    np.testing.assert_allclose(one, two * np.sqrt((n - 1) / n), rtol=1e-5)


@SCALES
def test_the_step_that_resets_has_no_reward_and_counts_nothing(scale):
    flags = [[False, False], [True, False], [False, False], [False, False]]
    env = RewardNormalize(
        Steps([[1, 3], [2, 5], [0, 1], [3, 2]], mode=NEXT_STEP, flags=flags), scale=scale
    )
    env.reset()
    results = [env.step(None) for _ in range(3)]
    assert env.normalizer.count == 5
    assert results[2][1][0] == 0.0 and results[2][1][1] != 0.0
    env.step(None)
    assert env.normalizer.count == 7
    if scale == "return":
        last = [1 + 0, 3, GAMMA + 2, 3 * GAMMA + 5, (3 * GAMMA + 5) * GAMMA + 1]
        assert env.normalizer.mean == pytest.approx(np.mean([*last, 3, last[-1] * GAMMA + 2]))


@pytest.mark.parametrize("wrapper", [ObsNormalize, RewardNormalize, CostNormalize])
def test_a_reset_that_the_environment_refuses_changes_nothing(wrapper, assert_same):
    env = wrapper(sync(DISABLED))
    env.reset(seed=0)
    ended = np.zeros(NUM_ENVS, bool)
    while not ended.any():
        _, _, terminated, truncated, _ = env.step(np.zeros((NUM_ENVS, 1), np.float32))
        ended = terminated | truncated
    before = copy.deepcopy(env.state_dict())
    # An AssertionError is that of Gymnasium 1.2.
    with pytest.raises((TypeError, AssertionError), match="bool"):
        env.reset(options={"reset_mask": np.ones(NUM_ENVS, int)})
    assert_same(env.state_dict(), before)


class Whole(gym.vector.VectorWrapper):
    """Rewards and costs that are whole numbers, of any dtype."""

    def __init__(self, env: Walks, dtype: type):
        super().__init__(env)
        self.dtype = dtype

    def step(self, actions: Any) -> Any:
        observation, *values, info = self.env.step(actions)
        reward = self.cast(values.pop(0))
        return observation, reward, *values, {key: self.cast(value) for key, value in info.items()}

    def cast(self, values: Any) -> Any:
        return convert(np.rint(2 * to_numpy(values)).astype(self.dtype), self.env.kind)


@SCALES
@KINDS
def test_whole_rewards_and_costs_are_normalized_as_fractions_are(kind, scale):
    def make(dtype: type) -> Any:
        return CostNormalize(
            RewardNormalize(Whole(Walks(kind=kind), dtype), scale=scale), scale=scale
        )

    def values(step: Any) -> list[np.ndarray]:
        return [to_numpy(value) for value in (step[1], step[4]["cost"], step[4]["costs"])]

    whole, fractions = make(np.int64), make(np.float32)
    whole.reset(seed=0), fractions.reset(seed=0)
    for _ in range(5):
        results = [values(env.step(np.zeros((NUM_ENVS, 1)))) for env in (whole, fractions)]
        for one, other in zip(*results, strict=True):
            assert one.dtype == np.float32
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@SCALES
def test_gradients_go_through_a_step_and_not_through_the_statistics(scale):
    class Differentiable(gym.vector.VectorWrapper):
        def step(self, actions: Any) -> Any:
            observation, reward, *rest = self.env.step(actions)
            return observation + actions, reward + actions[:, 0], *rest

    env = ObsNormalize(RewardNormalize(Differentiable(Walks(kind="torch")), scale=scale))
    env.reset(seed=0)
    for _ in range(4):
        actions = torch.zeros(NUM_ENVS, 1, requires_grad=True)
        observation, reward, *_ = env.step(actions)
        (observation.sum() + reward.sum()).backward()
        assert actions.grad.any()
        for normalizer in env.save().values():
            assert not normalizer.mean.requires_grad and not normalizer.m2.requires_grad


def test_a_whole_reset_begins_all_returns_at_zero():
    env = RewardNormalize(Steps([[1, 2], [4, 8]]))
    env.reset()
    env.step(None)
    env.reset()
    env.step(None)
    assert env.normalizer.mean == (1 + 2 + 4 + 8) / 4


# --- CostNormalize ----------------------------------------------------------------------------------------------------


@MODES
@KINDS
@SCALES
def test_costs_are_scaled_term_by_term(mode, kind, scale):
    raw = trace(resetting(Walks(kind=kind), mode), mode)
    env = CostNormalize(resetting(Walks(kind=kind), mode), scale=scale)
    events = [event for event in trace(env, mode) if len(event) == 5]
    for key in ("cost", "costs"):
        samples = AllSamples()
        expected = expected_values(raw, mode, scale, samples, lambda event, key=key: event[-1][key])
        for event, before, values in zip(
            events, [e for e in raw if len(e) == 5], expected, strict=True
        ):
            np.testing.assert_allclose(event[-1][key], values, atol=1e-6)
            assert event[-1][key].dtype == np.float32
            assert (event[-1][f"original_{key}"] == before[-1][key]).all()
            assert (event[1] == before[1]).all() and (event[0] == before[0]).all()
            if "final_info" in event[-1]:
                assert (event[-1]["final_info"][key] == event[-1][key]).all()
                assert (event[-1]["final_info"][f"original_{key}"] == before[-1][key]).all()
        samples.assert_equals(env.normalizer[key])


@MODES
@SCALES
def test_costs_count_once_where_gymnasium_leaves_them_out_of_a_step(mode, scale):
    """With all episodes ending together ``info`` has no cost at all on that step, or on the next one."""
    env = CostNormalize(sync(mode, LongWalk), scale=scale)
    env.reset(seed=0)
    seen = AllSamples()
    returns = np.zeros(NUM_ENVS)
    reference = [Walk() for _ in range(NUM_ENVS)]
    for i, single in enumerate(reference):
        single.length, single.terminates = 5, False
        single.reset(seed=i)
    steps = 0
    for _ in range(14):
        _, _, _, truncated, info = env.step(np.zeros((NUM_ENVS, 1), np.float32))
        if mode is NEXT_STEP and "cost" not in info:
            for single in reference:
                single.reset()
            continue
        cost = np.array([single.step(None)[-1]["cost"] for single in reference], np.float64)
        np.testing.assert_array_equal(info["original_cost"], cost.astype(np.float32))
        returns = GAMMA * returns + cost
        seen.add(returns if scale == "return" else cost)
        steps += 1
        if truncated.all():
            returns[:] = 0.0
            if mode is not NEXT_STEP:
                for single in reference:
                    single.reset()
            if mode is DISABLED:
                env.reset(options={"reset_mask": truncated})
    assert steps == {SAME_STEP: 14, DISABLED: 14, NEXT_STEP: 12}[mode]
    seen.assert_equals(env.normalizer["cost"])


@MODES
def test_costs_that_a_reset_reports_are_not_mistaken_for_those_of_a_step(mode):
    class ReportsAtReset(Walk):
        def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
            return super().reset(**kwargs)[0], {"cost": np.float32(99.0)}

    def run(single: type[Walk]) -> Any:
        env = CostNormalize(sync(mode, single))
        env.reset(seed=0)
        for _ in range(14):
            _, _, terminated, truncated, info = env.step(np.zeros((NUM_ENVS, 1), np.float32))
            if mode is SAME_STEP:
                assert (info["original_cost"] < 5.0).all()
            elif mode is DISABLED and (terminated | truncated).any():
                env.reset(options={"reset_mask": terminated | truncated})
        return env.save()

    assert_same_statistics(run(ReportsAtReset), run(Walk))


def test_an_environment_without_costs_is_refused_by_name():
    env = CostNormalize(Steps([[1.0, 1.0]]))
    env.reset()
    with pytest.raises(ValueError, match=r"CostNormalize.*info\['cost'\]"):
        env.step(None)
    infos = [{"cost": np.ones(2), "costs": np.ones((2, 3))}, {"cost": np.ones(2)}]
    env = CostNormalize(Steps([[1.0, 1.0]] * 2, infos))
    env.reset()
    env.step(None)
    with pytest.raises(ValueError, match=r"info\['costs'\].*\['cost'\]"):
        env.step(None)


def test_a_single_kind_of_cost_has_a_single_normalizer():
    env = CostNormalize(Steps([[0.0, 0.0]] * 3, [{"cost": np.array([1.0, 3.0])}] * 3), scale="step")
    env.reset()
    infos = [env.step(None)[-1] for _ in range(3)]
    assert isinstance(env.save()["cost_normalizer"], Normalizer) and env.normalizer.mean == 2.0
    assert infos[-1]["cost"].tolist() == pytest.approx([-np.sqrt(5 / 6), np.sqrt(5 / 6)])
    assert "costs" not in infos[-1] and infos[-1]["original_cost"].tolist() == [1.0, 3.0]


# --- the stack --------------------------------------------------------------------------------------------------------


def full_stack(
    env: VectorEnv, mode: AutoresetMode, saved: dict[str, Any] | None = None
) -> VectorEnv:
    """All three, with wrappers that know nothing of normalization below, between and above."""
    saved = saved or {}
    env = ObsNormalize(resetting(TimeLimit(env, 5), mode), saved.get("obs_normalizer"))
    env = RewardNormalize(gym.vector.VectorWrapper(env), saved.get("reward_normalizer"))
    return CostNormalize(gym.vector.VectorWrapper(env), saved.get("cost_normalizer"))


@MODES
@pytest.mark.parametrize("single", [Walk, GroupedWalk])
def test_save_gives_the_normalizers_of_the_stack_and_they_can_be_given_to_another(
    mode, single, assert_same
):
    env = full_stack(Walks(single), mode)
    trace(env, mode)
    saved = env.save()
    assert list(saved) == ["obs_normalizer", "reward_normalizer", "cost_normalizer"]
    assert TimeLimit(gym.vector.VectorWrapper(env), 1000).save() == saved
    assert TimeLimit(Walks(), 3).save() == {}

    restored = pickle.loads(pickle.dumps(saved))
    assert_same_statistics(restored, saved)
    other = full_stack(Walks(single), mode, restored)
    assert_same_statistics(other.save(), saved)
    assert_same(trace(other, mode), trace(env, mode))


@MODES
@KINDS
def test_frozen_statistics_stay_as_they_are_until_training_goes_on(mode, kind):
    env = full_stack(Walks(kind=kind), mode)
    layers = (env, env.env.env, env.env.env.env.env)
    assert [type(layer) for layer in layers] == [CostNormalize, RewardNormalize, ObsNormalize]
    trace(env, mode)
    before = pickle.loads(pickle.dumps(env.save()))
    for layer in layers:
        layer.freeze()
    events = trace(env, mode)
    assert_same_statistics(env.save(), before)
    normalizer = before["obs_normalizer"]
    for event in events:
        np.testing.assert_allclose(
            event[1 if len(event) == 3 else 0],
            normalizer.normalize(event[-1]["original_obs"]),
            atol=1e-6,
        )
    for layer in layers:
        state = layer.state_dict()
        layer.train()
        layer.load_state_dict(state)
        assert layer.frozen
        layer.train()
    trace(env, mode)
    after = env.save()
    assert after["obs_normalizer"].count > normalizer.count
    assert after["reward_normalizer"].count > before["reward_normalizer"].count
    assert after["cost_normalizer"]["costs"].count > before["cost_normalizer"]["costs"].count


@MODES
@pytest.mark.parametrize("single", [Walk, GroupedWalk])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_run_goes_on_bit_for_bit_from_its_saved_state(mode, single, kind, assert_same):
    def make() -> Any:
        env = CostNormalize(RewardNormalize(ObsNormalize(resetting(Walks(single, kind), mode))))
        env.reset(seed=5)
        return env

    def run(env: Any, steps: int = 12) -> list[Any]:
        return [to_numpy(env.step(np.zeros((NUM_ENVS, 1), np.float32))) for _ in range(steps)]

    env = make()
    at_first = env.get_state()
    begun = run(env, 7)
    state = pickle.loads(pickle.dumps(env.get_state()))
    expected = run(env)
    env.set_state(at_first)
    assert_same(run(env, 7), begun)
    for other in (env, make()):
        other.set_state(state)
        assert_same(run(other), expected)


def replaced(tree: Any, key: str, value: Any) -> Any:
    """A copy of nested dicts with another value under a key wherever it is; None removes it."""
    if not isinstance(tree, dict):
        return tree
    copied = {name: replaced(part, key, value) for name, part in tree.items() if name != key}
    return {**copied, key: value} if key in tree and value is not None else copied


@pytest.mark.parametrize("wrapper", [ObsNormalize, RewardNormalize, CostNormalize])
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(wrapper, assert_same):
    class Named(gym.vector.VectorWrapper):
        cost_names = ("one", "two", "three")

        @property
        def unwrapped(self) -> Any:
            return self

    def used(env: VectorEnv, **kwargs: Any) -> Any:
        env = wrapper(env, **kwargs)
        env.reset(seed=0)
        for _ in range(7):
            env.step(np.zeros((env.num_envs, 1), np.float32))
        return env

    env = used(sync(NEXT_STEP))
    before = copy.deepcopy(env.state_dict())
    more = used(SyncVectorEnv([Walk] * (NUM_ENVS + 1))).state_dict()
    states = [
        (
            {**more, "over": np.zeros(NUM_ENVS + 1, bool)},
            rf"'over' of shape \({NUM_ENVS},\), got \({NUM_ENVS + 1},\)",
        ),
        (used(sync(NEXT_STEP), clip=3.0).state_dict(), r"clip=3\.0\), not of .* clip=5\.0"),
    ]
    if wrapper is ObsNormalize:
        states += [(used(sync(NEXT_STEP, GroupedWalk)).state_dict(), "the state has no 'mean'")]
    else:
        states += [
            ({**more, "over": None}, rf"returns of shape \({NUM_ENVS + 1},.*, not \({NUM_ENVS},")
        ]
    fitting = used(sync(NEXT_STEP)).state_dict()
    assert fitting.keys() == before.keys()
    states += [(replaced(fitting, key, None), f"with {key!r}, got") for key in fitting]
    states += [
        (replaced(fitting, key, None), f"the state has no {key!r}")
        for key in ("mean", "m2", "count", "clip")
    ]
    states += [(replaced(fitting, "m2", np.zeros(7)), r"of Normalizer\(\(7,\)")]
    for state, message in states:
        with pytest.raises(ValueError, match=rf"{wrapper.__name__}.*{message}"):
            env.load_state_dict(state)
        assert_same(env.state_dict(), before)
    if wrapper is CostNormalize:
        rewards = RewardNormalize(sync(NEXT_STEP)).state_dict()
        for state, message in ((rewards, "a scale of 'cost'"), (None, "got None")):
            with pytest.raises(ValueError, match=f"CostNormalize.*{message}"):
                env.load_state_dict(state)
        assert_same(env.state_dict(), before)
        with pytest.raises(ValueError, match=r"CostNormalize.*3 costs.*\(2,\)"):
            CostNormalize(Named(sync(NEXT_STEP))).load_state_dict(env.state_dict())


@MODES
def test_the_wrappers_can_be_pickled_and_copied(mode, assert_same):
    env = CostNormalize(RewardNormalize(ObsNormalize(resetting(Walks(), mode))))
    trace(env, mode)
    others = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    expected = trace(env, mode)
    for other in others:
        assert_same(trace(other, mode), expected)


@MODES
@KINDS
@SCALES
def test_what_was_returned_can_be_changed_without_any_effect(mode, kind, scale, assert_same):
    def make() -> VectorEnv:
        env = ObsNormalize(resetting(Walks(kind=kind), mode))
        return CostNormalize(RewardNormalize(env, scale=scale), scale=scale)

    assert_same(trace(make(), mode, spoil=True), trace(make(), mode))


def test_what_was_given_is_not_changed():
    class Remembers(gym.vector.VectorWrapper):
        """Keeps what it returned and a copy of it."""

        def step(self, actions: Any) -> Any:
            self.result = super().step(actions)
            self.copy = copy.deepcopy(self.result)
            return self.result

    for env in (AutoReset(Walks(), SAME_STEP), sync(SAME_STEP)):
        below = Remembers(env)
        above = CostNormalize(RewardNormalize(ObsNormalize(below)))
        above.reset(seed=1)
        for _ in range(10):
            above.step(np.zeros((NUM_ENVS, 1), np.float32))
            assert list(below.result[-1]) == list(below.copy[-1])
            for key, value in below.copy[-1].items():
                if key == "final_info":
                    assert list(value) == list(below.result[-1][key])
                    value, given = value["cost"], below.result[-1][key]["cost"]
                else:
                    given = below.result[-1][key]
                assert pickle.dumps(np.array(value).tolist()) == pickle.dumps(
                    np.array(given).tolist()
                ), key
            for value, given in zip(below.copy[:-1], below.result[:-1], strict=True):
                np.testing.assert_array_equal(value, given)


@pytest.mark.parametrize("wrapper", [ObsNormalize, RewardNormalize, CostNormalize])
def test_a_normalizer_that_does_not_fit_is_refused(wrapper):
    shape = (3,) if wrapper is ObsNormalize else ()
    wrong = (4,) if wrapper is ObsNormalize else (2,)
    with pytest.raises(
        ValueError, match=rf"{wrapper.__name__}.*shape {pattern(shape)}, got.*{pattern(wrong)}"
    ):
        wrapper(Walks(), Normalizer(wrong))
    with pytest.raises(TypeError, match=rf"{wrapper.__name__}.*Normalizer, got str"):
        wrapper(Walks(), "saved.pt")
    with pytest.raises(ValueError, match=r"clip=3\.0.*clip=5\.0"):
        wrapper(Walks(), Normalizer(shape), clip=3.0)
    with pytest.raises(ValueError, match=r"clip.*-1"):
        wrapper(Walks(), clip=-1)
    shared = Normalizer(shape, clip=3.0)
    assert wrapper(Walks(), shared, clip=3.0).normalizer is shared
    if wrapper is not ObsNormalize:
        with pytest.raises(ValueError, match=r"scale.*'return'.*'step'.*'both'"):
            wrapper(Walks(), scale="both")
        with pytest.raises(ValueError, match=r"gamma.*1\.5"):
            wrapper(Walks(), gamma=1.5)
        standardized = wrapper(Walks(), scale="step").state_dict()
        with pytest.raises(ValueError, match=r"scale='step'.*scale='return'"):
            wrapper(Walks()).load_state_dict(standardized)


def pattern(shape: tuple[int, ...]) -> str:
    return str(shape).replace("(", r"\(").replace(")", r"\)")


def test_normalizers_of_groups_and_of_costs_must_have_their_keys_and_shapes():
    class Choice(Walk):
        observation_space = Discrete(3)

    with pytest.raises(TypeError, match=r"Box observations.*Discrete\(3\)"):
        ObsNormalize(sync(NEXT_STEP, Choice))
    with pytest.raises(ValueError, match=r"\['critic', 'policy'\].*\['policy'\]"):
        ObsNormalize(Walks(GroupedWalk), {"policy": Normalizer((3,))})
    with pytest.raises(ValueError, match=r"\['critic', 'policy'\].*Normalizer"):
        ObsNormalize(Walks(GroupedWalk), Normalizer((3,)))
    with pytest.raises(ValueError, match=r"observation 'critic'.*\(2, 2\), got.*\(3,\)"):
        ObsNormalize(Walks(GroupedWalk), {"policy": Normalizer((3,)), "critic": Normalizer((3,))})
    with pytest.raises(ValueError, match=r"'cost', 'costs'\), got \['cost'\]"):
        CostNormalize(Walks(), {"cost": Normalizer(())})

    for norm, message in (
        (Normalizer(()), r"info\['costs'\] too: give it a dict"),
        (
            {"cost": Normalizer(()), "costs": Normalizer((3,))},
            r"shape \(3,\).*info\['costs'\].*\(2,\)",
        ),
    ):
        env = CostNormalize(Walks(), norm)
        env.reset(seed=0)
        with pytest.raises(ValueError, match=message):
            env.step(None)


# --- robots -----------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize(("array", "observations"), [("numpy", "policy"), ("torch", "dict")])
def test_a_robots_observations_rewards_and_costs_are_normalized(
    mode, array, observations, make_vec, random_actions
):
    arguments = {
        "array": array,
        "observations": observations,
        "autoreset_mode": mode,
        "max_episode_steps": 4,
        "cfg": {"observations.policy.noisy": False},
    }
    raw_env, env = make_vec(3, **arguments), make_vec(3, **arguments)
    env = CostNormalize(RewardNormalize(ObsNormalize(env)))
    observation, _ = raw_env.reset(seed=2)
    groups = (
        {name: AllSamples() for name in observation}
        if isinstance(observation, dict)
        else {"": AllSamples()}
    )

    def see(observation: Any, rows: Any = slice(None)) -> None:
        for name, samples in groups.items():
            samples.add(to_numpy(observation[name] if name else observation)[rows])

    rewards, returns, over = AllSamples(), np.zeros(3), np.zeros(3, bool)
    see(observation)
    env.reset(seed=2)
    for action in random_actions(11, 3):
        action = torch.from_numpy(action) if array == "torch" else action
        observation, reward, terminated, truncated, info = raw_env.step(action)
        normalized, scaled, _, _, normalized_info = env.step(action)
        ended = to_numpy(terminated | truncated)
        if "final_obs" in info:
            see(info["final_obs"], ended)
        see(observation)
        returns = GAMMA * returns + to_numpy(reward)
        rewards.add(returns[~over])
        returns[ended] = 0.0
        over = ended if mode is NEXT_STEP else over
        np.testing.assert_allclose(to_numpy(scaled), rewards.scale(to_numpy(reward)), atol=1e-5)
        for name, samples in groups.items():
            expected = samples.normalize(to_numpy(observation[name] if name else observation))
            np.testing.assert_allclose(
                to_numpy(normalized[name] if name else normalized), expected, atol=1e-4
            )
        np.testing.assert_array_equal(
            to_numpy(normalized_info["original_costs"]), to_numpy(info["costs"])
        )
        assert normalized_info["costs"].shape == (3, len(raw_env.unwrapped.cost_names))
        if mode is DISABLED and ended.any():
            options = {"reset_mask": terminated | truncated}
            see(raw_env.reset(options=dict(options))[0], ended)
            env.reset(options=options)
    assert set(env.save()) == {"obs_normalizer", "reward_normalizer", "cost_normalizer"}
    for name, samples in groups.items():
        samples.assert_equals(
            env.save()["obs_normalizer"][name] if name else env.save()["obs_normalizer"]
        )


# --- OmniSafe ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def omnisafe() -> Any:
    pytest.importorskip(
        "legged_envs.wrappers.adapters.omnisafe", reason="make omnisafe", exc_type=ImportError
    )
    from omnisafe.common import normalizer
    from omnisafe.envs import wrapper

    wrapper.Normalizer = normalizer.Normalizer
    return wrapper


class Replay:
    """A record of this package's environment as an environment of OmniSafe, in float64. ``num_envs=1`` has no batch dimension."""

    def __init__(self, events: list[Any], num_envs: int):
        self.events, self.num_envs = iter(events), num_envs
        self.observation_space = Walk.observation_space

    def reset(self, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self._tensor(next(self.events)[1]), {}

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = next(self.events)
        final = {}
        if "final_obs" in info:
            final = {
                "final_observation": info["final_obs"],
                "_final_observation": info["_final_obs"],
            }
        values = (observation, reward, info["cost"], terminated, truncated)
        return (
            *map(self._tensor, values),
            {key: self._tensor(value) for key, value in final.items()},
        )

    def save(self) -> dict[str, Any]:
        return {}

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        tensor = torch.from_numpy(
            array.astype(np.float64) if array.dtype == np.float32 else array.copy()
        )
        return tensor[0] if self.num_envs == 1 else tensor


@pytest.mark.parametrize("num_envs", [1, NUM_ENVS])
def test_observations_rewards_and_costs_equal_those_of_omnisafe(num_envs, omnisafe):
    """In float64 theirs; only values within the clip, which theirs does not apply to a first sample."""
    ours = AutoReset(SyncVectorEnv([Walk] * num_envs, autoreset_mode=DISABLED), SAME_STEP)
    ours.reset(seed=7)
    events = [(None, *to_numpy(ours.reset(seed=7)))]
    events += [to_numpy(ours.step(np.zeros((num_envs, 1), np.float32))) for _ in range(60)]

    theirs: Any = omnisafe.ObsNormalize(Replay(events, num_envs), torch.device("cpu"))
    theirs = omnisafe.CostNormalize(
        omnisafe.RewardNormalize(theirs, torch.device("cpu")), torch.device("cpu")
    )
    env = ObsNormalize(
        AutoReset(SyncVectorEnv([Walk] * num_envs, autoreset_mode=DISABLED), SAME_STEP)
    )
    env = CostNormalize(RewardNormalize(env, scale="step"), scale="step")
    np.testing.assert_allclose(
        env.reset(seed=7)[0], as_batch(theirs.reset()[0], num_envs), atol=1e-6
    )
    ends = 0
    for raw in events[1:]:
        observation, reward, terminated, truncated, info = env.step(
            np.zeros((num_envs, 1), np.float32)
        )
        their_observation, their_reward, their_cost, *_, their_info = theirs.step(None)
        np.testing.assert_allclose(observation, as_batch(their_observation, num_envs), atol=1e-6)
        np.testing.assert_allclose(reward, as_batch(their_reward, num_envs), atol=1e-6)
        np.testing.assert_allclose(info["cost"], as_batch(their_cost, num_envs), atol=1e-6)
        np.testing.assert_allclose(
            info["original_cost"], as_batch(their_info["original_cost"], num_envs), atol=1e-6
        )
        if "final_observation" in their_info:
            ended = terminated | truncated
            ends += int(ended.sum())
            last = as_batch(their_info["final_observation"], num_envs)
            np.testing.assert_allclose(info["final_obs"][ended], last[ended], atol=1e-6)
            # upstream's is the same tensor, which it has normalized in place
            assert (
                as_batch(their_info["original_final_observation"], num_envs)[ended] == last[ended]
            ).all()
            np.testing.assert_array_equal(
                info["original_final_obs"][ended], raw[-1]["final_obs"][ended]
            )
    assert ends > 10
    saved, their_saved = env.save(), theirs.save()
    assert set(saved) == set(their_saved)
    mean = as_batch(their_saved["obs_normalizer"].mean, 1)[0]
    np.testing.assert_allclose(saved["obs_normalizer"].mean, mean, atol=1e-9)
    np.testing.assert_allclose(
        saved["reward_normalizer"].std, their_saved["reward_normalizer"].std, atol=1e-9
    )


def as_batch(tensor: Any, num_envs: int) -> np.ndarray:
    return tensor.numpy()[None] if num_envs == 1 else tensor.numpy()


def test_upstreams_defects_that_ours_has_not(omnisafe):
    """A statistic that is NaN after one sample, after none for good, or stands still after 2³² samples."""
    upstream = omnisafe.Normalizer((2,), clip=5)
    upstream.normalize(torch.ones(1, 2))
    assert upstream.std.isnan().all()
    upstream.normalize(torch.zeros(1, 2))
    upstream.normalize(torch.zeros(0, 2))
    assert upstream.normalize(torch.zeros(3, 2)).isnan().all()

    stalled = omnisafe.Normalizer((), clip=5)
    stalled.normalize(torch.zeros(2))
    stalled._count, stalled._sumsq = torch.tensor(2**32), torch.tensor(2.0**32)
    batch = torch.tensor([1.0, -1.0]).repeat(32)
    for _ in range(50):
        stalled.normalize(batch)
    assert stalled._sumsq == 2.0**32

    ours = Normalizer((2,))
    ours.push(np.ones((1, 2)))
    ours.push(np.zeros((0, 2)))
    ours.push(np.zeros((1, 2)))
    assert ours.std.tolist() == [np.sqrt(0.5)] * 2


def test_a_pushed_row_is_normalized_as_one_that_is_not_to_the_last_bit() -> None:
    """An autoreset compares the two: rows of running episodes equal the observation."""
    normalizer, rng = Normalizer((4,)), np.random.default_rng(0)
    for _ in range(50):
        samples = rng.normal(size=(3, 4)) * 7.0 + 100.0
        assert np.array_equal(
            normalizer.push_and_normalize(samples.copy()), normalizer.normalize(samples)
        )
