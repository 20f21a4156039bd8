"""TimeLimit, EpisodeStatistics and AutoReset against Gymnasium's own vector environment of the same environments."""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from wrapper_checks import skip_wrong_lengths

from legged_envs import make_task_cfg
from legged_envs.managers import TerminationTermCfg
from legged_envs.wrappers import AutoReset, EpisodeStatistics, TimeLimit
from legged_envs.wrappers.plumbing.base import StatefulWrapper

GO2 = "Legged/Go2-Flat-v0"
MODES = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
RESETTING = pytest.mark.parametrize(
    "mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP], ids=lambda mode: mode.name
)
KINDS = pytest.mark.parametrize(
    ("array", "grouped"), [("numpy", False), ("numpy", True), ("torch", False), ("torch", True)]
)
SEEDS = [3, 11, 4, 20]
LIMIT = 5
STEPS = 40


class Countdown(gym.Env):
    """An episode of random length that ends by itself, by termination or by truncation."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (4,))
    action_space = gym.spaces.Box(-1.0, 1.0, (2,))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.length = int(self.np_random.integers(2, 8))
        self.terminates = bool(self.np_random.random() < 0.6)
        self.time = 0
        self.action = np.zeros(2, np.float32)
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        self.action = action
        over = self.time >= self.length
        reward = float(np.float32(self.time) + np.float32(0.5) * np.round(4 * action[0]))
        cost = np.float32(self.time % 3)
        info = {"cost": cost, "costs": np.array([cost, 0.0], np.float32)}
        return self._observe(), reward, over and self.terminates, over and not self.terminates, info

    def _observe(self) -> np.ndarray:
        return np.array([self.length, self.time, *self.action], np.float32)


class GroupedCountdown(Countdown):
    """The same with observations in two groups."""

    observation_space = gym.spaces.Dict(
        {"critic": gym.spaces.Box(-10.0, 10.0, (4,)), "policy": gym.spaces.Box(-10.0, 10.0, (2,))}
    )

    def _observe(self) -> Any:
        observation = super()._observe()
        return {"critic": observation, "policy": observation[2:].copy()}


class Countdowns(VectorEnv):
    """A batch of countdowns that never reset by themselves."""

    def __init__(self, num_envs: int = len(SEEDS), array: str = "numpy", grouped: bool = False):
        self.num_envs, self.array = num_envs, array
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED}
        self.envs = [(GroupedCountdown if grouped else Countdown)() for _ in range(num_envs)]
        self.single_observation_space, self.single_action_space = (
            self.envs[0].observation_space,
            self.envs[0].action_space,
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = (
            np.ones(self.num_envs, bool) if options is None else np.asarray(options["reset_mask"])
        )
        for i, env in enumerate(self.envs):
            if mask[i]:
                env.reset(seed=None if seed is None else seed[i])
        return self._batch([env._observe() for env in self.envs]), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        steps = [
            env.step(np.asarray(action)) for env, action in zip(self.envs, actions, strict=True)
        ]
        observations, rewards, terminated, truncated, infos = zip(*steps, strict=True)
        info = {key: self._batch([info[key] for info in infos]) for key in ("cost", "costs")}
        return (
            self._batch(observations),
            self._batch(np.array(rewards, np.float32)),
            self._batch(np.array(terminated)),
            self._batch(np.array(truncated)),
            info,
        )

    def get_state(self) -> Any:
        return copy.deepcopy(self.envs)

    def set_state(self, state: Any) -> None:
        self.envs = copy.deepcopy(state)

    def _batch(self, values: Any) -> Any:
        if isinstance(values[0], dict):
            return {key: self._batch([value[key] for value in values]) for key in values[0]}
        stacked = np.array(values)
        return stacked if self.array == "numpy" else torch.from_numpy(stacked)


def stack(env: VectorEnv, mode: AutoresetMode, limit: int = LIMIT) -> VectorEnv:
    env = EpisodeStatistics(TimeLimit(env, limit))
    return env if mode is AutoresetMode.DISABLED else AutoReset(env, mode)


def reference(mode: AutoresetMode, grouped: bool, limit: int = LIMIT) -> SyncVectorEnv:
    def make() -> gym.Env:
        return gym.wrappers.TimeLimit((GroupedCountdown if grouped else Countdown)(), limit)

    return SyncVectorEnv([make] * len(SEEDS), autoreset_mode=mode)


def actions(
    num_steps: int = STEPS, num_envs: int = len(SEEDS), size: int = 2, seed: int = 0
) -> np.ndarray:
    return (
        np.random.default_rng(seed).uniform(-1, 1, (num_steps, num_envs, size)).astype(np.float32)
    )


def given(env: VectorEnv, array: np.ndarray) -> Any:
    """An array of the kind that the environment takes."""
    return torch.from_numpy(array) if env.unwrapped.array == "torch" else array


def to_numpy(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: to_numpy(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [to_numpy(value) for value in tree]
    return np.asarray(tree)


def pick(tree: Any, index: Any) -> Any:
    return (
        {key: value[index] for key, value in tree.items()}
        if isinstance(tree, dict)
        else tree[index]
    )


def assert_equal(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in theirs:
            np.testing.assert_array_equal(ours[key], theirs[key])
    else:
        np.testing.assert_array_equal(ours, theirs)


def assert_step_for_step(
    ours: VectorEnv, theirs: SyncVectorEnv, mode: AutoresetMode, moves: np.ndarray
) -> int:
    """Drive both with the same actions, with a partial reset now and then; returns the number of episodes."""
    num_envs = ours.num_envs
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is mode
    assert_equal(
        to_numpy(ours.reset(seed=SEEDS[:num_envs])[0]), theirs.reset(seed=SEEDS[:num_envs])[0]
    )
    episodes = 0
    for step, action in enumerate(moves):
        observation, reward, terminated, truncated, info = to_numpy(ours.step(given(ours, action)))
        expected = theirs.step(action)
        ended = expected[2] | expected[3]
        episodes += int(ended.sum())
        assert_equal(observation, expected[0])
        np.testing.assert_array_equal(reward, expected[1].astype(np.float32))
        np.testing.assert_array_equal(terminated, expected[2])
        np.testing.assert_array_equal(truncated, expected[3])
        cost = np.array(expected[4].get("cost", np.zeros(num_envs)), np.float32)
        if mode is AutoresetMode.SAME_STEP and ended.any():
            cost[ended] = expected[4]["final_info"]["cost"][ended]
            np.testing.assert_array_equal(info["_final_obs"], expected[4]["_final_obs"])
            np.testing.assert_array_equal(info["_final_obs"], ended)
            for i in range(num_envs):
                of_ended = expected[4]["final_obs"][i] if ended[i] else pick(observation, i)
                assert_equal(pick(info["final_obs"], i), of_ended)
        else:
            assert "final_obs" not in info and "_final_obs" not in info
        np.testing.assert_array_equal(info["cost"], cost)

        mask = ended.copy() if mode is AutoresetMode.DISABLED else np.zeros(num_envs, bool)
        mask[step % num_envs] |= step % 7 == 6
        if mask.any():
            ours_again = ours.reset(options={"reset_mask": given(ours, mask)})[0]
            assert_equal(to_numpy(ours_again), theirs.reset(options={"reset_mask": mask})[0])
    return episodes


# --- step for step ----------------------------------------------------------------------------------------------------


@MODES
@KINDS
def test_the_stack_does_what_gymnasiums_vector_environment_does(mode, array, grouped):
    ours = stack(Countdowns(array=array, grouped=grouped), mode)
    assert assert_step_for_step(ours, reference(mode, grouped), mode, actions()) > 20


@pytest.mark.parametrize(
    ("mode", "noisy"),
    [
        (AutoresetMode.SAME_STEP, True),
        (AutoresetMode.DISABLED, True),
        (AutoresetMode.NEXT_STEP, False),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_go2_does_what_gymnasiums_vector_environment_of_single_robots_does(mode, noisy, make_vec):
    """In the next-step mode without noise: the step that is ignored draws from the noise of the next episode."""
    changes = {"observations.policy.noisy": noisy}
    ours = make_vec(3, max_episode_steps=7, autoreset_mode=mode, cfg=changes)

    def make() -> gym.Env:
        return gym.make(GO2, max_episode_steps=7, disable_env_checker=True, cfg=changes)

    theirs = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    assert assert_step_for_step(ours, theirs, mode, actions(30, 3, 12)) >= 9
    theirs.close()


# --- AutoReset --------------------------------------------------------------------------------------------------------


@KINDS
def test_final_observations_serve_as_next_observations_for_all(array, grouped):
    """Without autoreset the same step shows the same observation in every row."""
    ours = stack(Countdowns(array=array, grouped=grouped), AutoresetMode.SAME_STEP)
    plain = stack(Countdowns(array=array, grouped=grouped), AutoresetMode.DISABLED)
    ours.reset(seed=SEEDS)
    plain.reset(seed=SEEDS)
    seen = 0
    for action in actions():
        observation, _, terminated, truncated, info = ours.step(given(ours, action))
        expected, _, _, _, _ = plain.step(given(plain, action))
        ended = terminated | truncated
        next_observation = info.get("final_obs", observation)
        assert_equal(to_numpy(next_observation), to_numpy(expected))
        if ended.any():
            seen += 1
            assert_equal(
                to_numpy(plain.reset(options={"reset_mask": ended})[0]), to_numpy(observation)
            )
    assert seen > 8


@RESETTING
@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_costs_stay_on_the_step_that_they_belong_to(mode, array):
    ours = stack(Countdowns(array=array), mode)
    ours.reset(seed=SEEDS)
    clock = np.zeros(len(SEEDS))
    fresh = np.zeros(len(SEEDS), bool)
    terminal_costs = []
    for action in actions():
        _, reward, terminated, truncated, info = to_numpy(ours.step(given(ours, action)))
        clock = np.where(fresh, 0, clock + 1)
        np.testing.assert_array_equal(info["cost"], clock % 3)
        np.testing.assert_array_equal(info["costs"], np.stack((clock % 3, 0 * clock), axis=1))
        ended = terminated | truncated
        terminal_costs += info["cost"][ended].tolist()
        if mode is AutoresetMode.SAME_STEP:
            clock[ended] = 0
            if ended.any():
                np.testing.assert_array_equal(
                    info["final_info"]["cost"][ended], info["cost"][ended]
                )
                np.testing.assert_array_equal(info["final_info"]["costs"], info["costs"])
        else:
            assert (reward[fresh] == 0.0).all() and not ended[fresh].any()
            assert (info["cost"][fresh] == 0.0).all() and (info["costs"][fresh] == 0.0).all()
            fresh = ended
    assert {1.0, 2.0} <= set(terminal_costs)


def test_the_step_that_resets_ignores_its_action(make_vec, random_actions, assert_same):
    traces = []
    for changed in (False, True):
        env = make_vec(3, max_episode_steps=4, autoreset_mode="NextStep", observations="dict")
        env.reset(seed=0)
        trace = []
        for step, action in enumerate(random_actions(12, 3)):
            if changed and step % 5 == 4:
                action = -action
            trace.append(
                [
                    x.copy() if isinstance(x, np.ndarray) else copy.deepcopy(x)
                    for x in env.step(action)[:4]
                ]
            )
        traces.append(trace)
    assert_same(*traces)


@RESETTING
def test_the_log_describes_the_same_episodes_whenever_the_reset_comes(
    mode, make_vec, random_actions
):
    env = make_vec(3, max_episode_steps=5, autoreset_mode=mode)
    disabled = make_vec(3, max_episode_steps=5, autoreset_mode="Disabled")
    logs = []
    for each in (env, disabled):
        each.reset(seed=0)
        infos = [each.step(action)[4] for action in random_actions(5, 3)]
        infos.append(each.reset()[1] if each is disabled else each.step(random_actions(1, 3)[0])[4])
        logs.append(next(info["log"] for info in infos if "log" in info))
    assert logs[0]["episodes"] == 3
    assert logs[0]["episode_length_s"] == pytest.approx(5 * 0.02)
    assert {key: float(value) for key, value in logs[0].items()} == pytest.approx(
        {key: float(value) for key, value in logs[1].items()}
    )


@RESETTING
def test_the_log_names_the_condition_that_ended_the_episode_whenever_the_reset_comes(
    mode, make_vec, random_actions
):
    """Also an object that held only on the last step."""

    def falls(env: Any) -> torch.Tensor:
        clock["step"] += 1  # terms are evaluated once for their shape, then once per step
        return (torch.arange(env.num_envs) == 1) & (clock["step"] == 3)

    clock = {"step": -1}
    cfg = make_task_cfg(GO2)
    cfg.terminations = {"falls": TerminationTermCfg(falls)}
    env = make_vec(3, autoreset_mode=mode, cfg=cfg)
    env.reset(seed=0)
    logs = [
        info["log"]
        for info in (env.step(action)[4] for action in random_actions(5, 3))
        if "log" in info
    ]
    assert [(log["episodes"], log["termination/falls"]) for log in logs] == [(1, 1)]


@MODES
def test_autoreset_refuses_environments_and_modes_it_cannot_serve(mode):
    if mode is AutoresetMode.DISABLED:
        with pytest.raises(ValueError, match=r"SAME_STEP or NEXT_STEP"):
            AutoReset(TimeLimit(Countdowns(), 3), mode)
    else:
        once = AutoReset(Countdowns(), mode.value)
        assert once.mode is once.metadata["autoreset_mode"] is mode
        assert once.env.metadata["autoreset_mode"] is AutoresetMode.DISABLED
        with pytest.raises(ValueError, match=mode.name):
            AutoReset(once, AutoresetMode.SAME_STEP)
        with pytest.raises(ValueError, match=mode.name):
            AutoReset(reference(mode, False), AutoresetMode.SAME_STEP)
    with pytest.raises(ValueError, match="sometimes"):
        AutoReset(Countdowns(), "sometimes")


# --- EpisodeStatistics ------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("grouped", [False, True])
def test_statistics_agree_with_gymnasiums_own(mode, grouped):
    skip_wrong_lengths(mode)
    env = RecordEpisodeStatistics(stack(Countdowns(grouped=grouped), mode), stats_key="theirs")
    env.reset(seed=SEEDS)
    episodes = 0
    for step, action in enumerate(actions()):
        _, _, terminated, truncated, info = env.step(action)
        ended = terminated | truncated
        episodes += int(ended.sum())
        assert (
            ("episode" in info) == ("_episode" in info) == ("theirs" in info) == bool(ended.any())
        ), step
        if ended.any():
            np.testing.assert_array_equal(info["_episode"], ended)
            np.testing.assert_array_equal(info["episode"]["l"], info["theirs"]["l"])
            np.testing.assert_allclose(info["episode"]["r"], info["theirs"]["r"], rtol=1e-6)
            assert (info["episode"]["l"][~ended] == 0).all() and (
                info["episode"]["r"][~ended] == 0.0
            ).all()
        mask = ended.copy() if mode is AutoresetMode.DISABLED else np.zeros(len(SEEDS), bool)
        mask[step % len(SEEDS)] |= step % 7 == 6
        if mask.any():
            env.reset(options={"reset_mask": mask})
    assert episodes > 20


@RESETTING
def test_statistics_of_go2_agree_with_gymnasiums_own(mode, make_vec, random_actions):
    skip_wrong_lengths(mode)
    env = RecordEpisodeStatistics(
        make_vec(3, max_episode_steps=6, autoreset_mode=mode), stats_key="theirs"
    )
    env.reset(seed=1)
    for action in random_actions(30, 3):
        _, _, terminated, truncated, info = env.step(action)
        ended = terminated | truncated
        assert ("episode" in info) == bool(ended.any())
        if ended.any():
            np.testing.assert_array_equal(info["_episode"], ended)
            np.testing.assert_array_equal(info["episode"]["l"], info["theirs"]["l"])
            np.testing.assert_allclose(info["episode"]["r"], info["theirs"]["r"], rtol=1e-5)


def test_statistics_count_each_episode_once_also_in_a_users_subclass():
    class MyStatistics(EpisodeStatistics):
        pass

    env = AutoReset(MyStatistics(TimeLimit(Countdowns(), LIMIT)), AutoresetMode.NEXT_STEP)
    env.reset(seed=SEEDS)
    for action in actions():
        _, _, terminated, truncated, info = env.step(action)
        ended = terminated | truncated
        np.testing.assert_array_equal(info.get("_episode", np.zeros(len(SEEDS), bool)), ended)


@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_statistics_sum_the_costs_and_measure_the_time_of_each_episode(array):
    env = stack(Countdowns(array=array), AutoresetMode.SAME_STEP)
    started = np.full(len(SEEDS), time.perf_counter())
    env.reset(seed=SEEDS)
    costs = np.zeros(len(SEEDS))
    for action in actions():
        time.sleep(0.001)
        before = time.perf_counter()
        _, _, terminated, truncated, info = env.step(given(env, action))
        now = time.perf_counter()
        ended = to_numpy(terminated | truncated)
        costs += to_numpy(info["cost"])
        if ended.any():
            episode = to_numpy(info["episode"])
            np.testing.assert_allclose(episode["c"], costs * ended)
            assert (episode["t"][ended] <= (now - started)[ended] + 1e-3).all()  # float32 rounds
            assert (episode["t"][ended] >= 0.001 * episode["l"][ended]).all()
            assert (episode["t"][~ended] == 0.0).all()
            costs[ended] = 0.0
            started[ended] = before


def test_statistics_work_without_costs():
    class WithoutCosts(Countdowns):
        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            return (*super().step(actions)[:4], {})

    env = stack(WithoutCosts(), AutoresetMode.SAME_STEP)
    env.reset(seed=SEEDS)
    infos = [env.step(action)[4] for action in actions()]
    episodes = [info["episode"] for info in infos if "episode" in info]
    assert len(episodes) > 8
    assert not any(episode["c"].any() for episode in episodes)


# --- TimeLimit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_the_time_limit_truncates_each_episode_at_its_own_step_and_keeps_the_environments_truncation(
    array,
):
    env = TimeLimit(Countdowns(array=array), 4)
    env.reset(seed=SEEDS)
    clock = np.zeros(len(SEEDS), int)
    by_limit = by_itself = 0
    for step, action in enumerate(actions()):
        _, _, terminated, truncated, _ = to_numpy(env.step(given(env, action)))
        clock += 1
        own = np.array([e.time >= e.length and not e.terminates for e in env.env.envs])
        np.testing.assert_array_equal(truncated, own | (clock >= 4))
        np.testing.assert_array_equal(np.asarray(env.elapsed_steps), clock)
        by_limit += int((clock == 4).sum())
        by_itself += int((own & (clock < 4)).sum())
        mask = terminated | truncated
        mask[step % len(SEEDS)] |= step % 5 == 4
        if mask.any():
            env.reset(options={"reset_mask": given(env, mask)})
            clock[mask] = 0
    assert by_limit > 5 and by_itself > 2


def test_a_whole_reset_starts_every_count_again():
    env = stack(Countdowns(), AutoresetMode.SAME_STEP, limit=3)
    env.reset(seed=[0] * 4)
    env.step(actions()[0])
    env.reset(seed=[0] * 4)
    lengths = []
    for action in actions(3):
        info = env.step(action)[4]
        lengths += info["episode"]["l"][info["_episode"]].tolist() if "episode" in info else []
    assert set(lengths) <= {2, 3} and len(lengths) == 4


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3", None])
def test_a_time_limit_that_is_no_positive_integer_is_refused(limit):
    with pytest.raises(ValueError, match=f"time_limit.*{limit!r}"):
        TimeLimit(Countdowns(), limit)


# --- the registered stack ---------------------------------------------------------------------------------------------


@MODES
def test_the_registration_stacks_the_wrappers_that_the_mode_asks_for(mode, make_vec):
    for kwargs, limit in (({}, 1000), ({"max_episode_steps": 3}, 3)):
        env = make_vec(2, autoreset_mode=mode, **kwargs)
        wrappers = []
        while env is not env.unwrapped:
            wrappers.append(env)
            env = env.env
        expected = [AutoReset, EpisodeStatistics, TimeLimit]
        names = [type(wrapper) for wrapper in wrappers]
        assert names == (expected[1:] if mode is AutoresetMode.DISABLED else expected)
        assert wrappers[-1].time_limit == limit


def test_the_stack_can_be_taken_apart_and_put_together_by_hand(
    make_vec, random_actions, assert_same
):
    registered = make_vec(3, max_episode_steps=4)
    core = make_vec(3).unwrapped
    by_hand = AutoReset(EpisodeStatistics(TimeLimit(core, 4)))
    assert_same(registered.reset(seed=0)[0], by_hand.reset(seed=0)[0])
    for action in random_actions(10, 3):
        assert_same(list(registered.step(action)[:4]), list(by_hand.step(action)[:4]))


# --- state ------------------------------------------------------------------------------------------------------------


def record(env: VectorEnv, moves: np.ndarray) -> list[Any]:
    trace = []
    for action in moves:
        *step, info = copy.deepcopy(env.step(given(env, action)))
        info.get("episode", {}).pop("t", None)
        info.get("final_info", {}).get("episode", {}).pop("t", None)
        trace.append([*step, info])
    return trace


@RESETTING
@KINDS
@pytest.mark.parametrize("saved_at", [0, 1, 5, 9, 10])
def test_a_stack_goes_on_from_its_saved_state(mode, array, grouped, saved_at, assert_same):
    def fresh() -> VectorEnv:
        return stack(Countdowns(array=array, grouped=grouped), mode)

    env, moves = fresh(), actions(25)
    env.reset(seed=SEEDS)
    record(env, moves[:saved_at])
    state = env.get_state()
    expected = record(env, moves[saved_at:])
    for target in (env, fresh()):
        target.set_state(state)
        assert_same(record(target, moves[saved_at:]), expected)


@pytest.mark.parametrize("wrapper", [lambda env: TimeLimit(env, 4), EpisodeStatistics, AutoReset])
def test_the_own_state_of_a_wrapper_is_a_copy_and_comes_back(
    wrapper: Callable[[VectorEnv], StatefulWrapper],
):
    env = wrapper(Countdowns())
    env.reset(seed=SEEDS)
    record(env, actions(3))
    state = env.state_dict()
    before = copy.deepcopy(state)
    assert state
    record(env, actions(5))
    env.reset(seed=SEEDS)
    other = wrapper(Countdowns())
    other.load_state_dict(state)
    record_of_other = other.state_dict()
    for key in before:
        if key != "ages":
            np.testing.assert_array_equal(state[key], before[key])
            np.testing.assert_array_equal(record_of_other[key], before[key])
    if "ages" in before:
        np.testing.assert_array_equal(state["ages"], before["ages"])
        assert (record_of_other["ages"] >= before["ages"]).all()
        assert (record_of_other["ages"] < before["ages"] + 1.0).all()


def test_a_state_of_another_stack_is_refused_and_nothing_changes():
    env = stack(Countdowns(), AutoresetMode.SAME_STEP)
    env.reset(seed=SEEDS)
    record(env, actions(3))
    before = copy.deepcopy(env.get_state())
    with pytest.raises(ValueError, match=r"AutoReset.*EpisodeStatistics"):
        env.set_state(env.env.get_state())
    deeper = copy.deepcopy(before)
    deeper["env"]["env"]["wrapper"] = "Other"
    with pytest.raises(ValueError, match=r"TimeLimit.*Other"):
        env.set_state(deeper)
    after = env.get_state()
    np.testing.assert_array_equal(after["own"]["ended"], before["own"]["ended"])
    np.testing.assert_array_equal(after["env"]["own"]["returns"], before["env"]["own"]["returns"])
    elapsed_steps = before["env"]["env"]["own"]["elapsed_steps"]
    np.testing.assert_array_equal(after["env"]["env"]["own"]["elapsed_steps"], elapsed_steps)
    assert [e.time for e in after["env"]["env"]["env"]] == [
        e.time for e in before["env"]["env"]["env"]
    ]


@pytest.mark.parametrize("wrapper", [lambda env: TimeLimit(env, 4), EpisodeStatistics, AutoReset])
def test_a_state_of_another_number_of_environments_is_refused_and_nothing_changes(
    wrapper, assert_same
):
    env, other = wrapper(Countdowns()), wrapper(Countdowns(1))
    for each in (env, other):
        each.reset(seed=SEEDS[: each.num_envs])
        for move in actions(12, each.num_envs):
            ended = np.logical_or(*each.step(move)[2:4])
            if isinstance(each, AutoReset):
                each._ended.end(ended)
    before, envs = env.state_dict(), copy.deepcopy(env.get_state()["env"])
    name = type(env).__name__
    with pytest.raises(
        ValueError,
        match=rf"{name}.*\({len(SEEDS)},\).*\(1,\)",
    ):
        env.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match=name):
        env.set_state(other.get_state())
    with pytest.raises(ValueError, match=rf"{name}.*\['other'\]"):
        env.load_state_dict({"other": 1})
    after = env.state_dict()
    for state in (before, after):
        state.pop("ages", None)
    assert_same(after, before)
    assert [vars(one)["time"] for one in env.get_state()["env"]] == [
        vars(one)["time"] for one in envs
    ]


def test_statistics_refuse_a_state_of_another_number_of_costs():
    class Third(gym.vector.VectorWrapper):
        def step(self, actions: Any) -> Any:
            *step, info = self.env.step(actions)
            return *step, {
                **info,
                "costs": np.concatenate((info["costs"], info["costs"][:, :1]), axis=1),
            }

    env, other = EpisodeStatistics(Countdowns()), EpisodeStatistics(Third(Countdowns()))
    for each in (env, other):
        each.reset(seed=SEEDS)
        each.step(actions(1)[0])
    with pytest.raises(
        ValueError,
        match=r"EpisodeStatistics.*'costs_sums'.* 2\).* 3\)",
    ):
        env.load_state_dict(other.state_dict())


def test_a_wrapper_without_state_refuses_one():
    with pytest.raises(ValueError, match="StatefulWrapper"):
        StatefulWrapper(Countdowns()).load_state_dict({"count": 1})
    assert StatefulWrapper(Countdowns()).state_dict() == {}


def test_a_wrapper_that_goes_leaves_the_environment_open(make_vec, random_actions):
    env = make_vec(2)
    with pytest.raises(ValueError, match="resets by itself"):
        AutoReset(env)
    passing = EpisodeStatistics(make_vec(2, statistics=False))
    below = passing.env
    del passing
    gc.collect()
    for each in (env, below):
        each.reset(seed=0)
        each.step(random_actions(1, 2)[0])
