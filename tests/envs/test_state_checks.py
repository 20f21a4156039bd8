"""A state is loaded whole, or refused with nothing changed, whatever is wrong in it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from legged_envs.envs import unwrap
from legged_envs.wrappers import (
    CostNormalize,
    EpisodeStatistics,
    LagrangianReward,
    ObsNormalize,
    RewardNormalize,
)

FLAT, ROUGH, MIMIC = "Legged/Go2-Flat-v0", "Legged/Go2-Rough-v0", "Legged/Go2-Mimic-v0"
Change = Callable[[dict[str, Any]], object]


def made(task: str = FLAT) -> Any:
    cfg = {"sim.num_threads": 1}
    if task == ROUGH:
        cfg |= {"scene.terrain.rows": 2, "scene.terrain.columns": 7, "scene.terrain.border": 1.0}
    return gym.make_vec(
        task, num_envs=2, cfg=cfg, autoreset_mode="Disabled", statistics=False, array="torch"
    ).unwrapped


def stream_of(state: dict[str, Any]) -> dict[str, Any]:
    return next(iter(state["random"]["streams"].values()))


def rewards_of(state: dict[str, Any]) -> dict[str, Any]:
    return state["own"]["rewards"]


CHANGES: dict[str, Change] = {
    "a stream without its key": lambda state: stream_of(state).pop("key"),
    "a stream of one environment": lambda state: stream_of(state).update(
        counter=stream_of(state)["counter"][:1]
    ),
    "a stream of floats": lambda state: stream_of(state).update(
        counter=stream_of(state)["counter"].double()
    ),
    "a stream of nothing": lambda state: stream_of(state).update(key=None),
    "streams of another kind": lambda state: state["random"].update(streams=[1]),
    "a stream with a number as its name": lambda state: state["random"]["streams"].update({3: {}}),
    "no keys": lambda state: state["random"].update(env_keys=None),
    "no random numbers": lambda state: state.update(random=None),
    "no step count": lambda state: state.update(steps=None),
    "a step count of half a step": lambda state: state.update(steps=0.5),
    "a negative step count": lambda state: state.update(steps=-1),
    "no ages": lambda state: state.update(episode_steps=None),
    "ages as an array": lambda state: state.update(episode_steps=np.zeros(2, np.int64)),
    "no observation": lambda state: state.update(observation=None),
    "no robots": lambda state: state.update(robots=None),
    "no rows of ended episodes": lambda state: state.update(ended_rows=None),
    "no physics": lambda state: state.update(sim=None),
    "physics without its arrays": lambda state: state.update(sim={}),
    "weights that are words": lambda state: rewards_of(state).update(
        weights=tuple("x" for _ in rewards_of(state)["weights"])
    ),
    "weights that are no numbers": lambda state: rewards_of(state).update(
        weights=tuple(float("nan") for _ in rewards_of(state)["weights"])
    ),
    "one weight": lambda state: rewards_of(state).update(weights=(1.0,)),
    "no weights": lambda state: rewards_of(state).update(weights=None),
    "no sums": lambda state: rewards_of(state).update(episode_sums=None),
    "a part more": lambda state: state["own"].update(other=1),
    "no own part": lambda state: state.update(own=None),
    "no changes": lambda state: state["own"].update(changes=None),
    "changes of terms that do not exist": lambda state: vars(state["own"]["changes"]).update(
        {"rewards.nothing.weight": 1.0}
    ),
}


@pytest.fixture(scope="module")
def flat() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """An environment, an earlier state and the present one."""
    env = made()
    env.reset(seed=0)
    earlier = env.get_state()
    for _ in range(5):
        env.step(torch.zeros(2, 12))
    return env, earlier, env.get_state()


@pytest.mark.parametrize("what", CHANGES)
def test_a_state_that_is_not_whole_changes_nothing(what: str, flat: Any, assert_same: Any) -> None:
    env, earlier, now = flat
    env.set_state(now)
    wrong = copy.deepcopy(earlier)
    CHANGES[what](wrong)
    with pytest.raises(ValueError):
        env.set_state(wrong)
    assert_same(env.get_state(), now)
    env.set_state(earlier)
    assert_same(env.get_state(), earlier)


@pytest.mark.parametrize("given", [None, 3, [], {}, "state"])
def test_what_is_no_state_is_refused(given: Any, flat: Any, assert_same: Any) -> None:
    env, _, now = flat
    env.set_state(now)
    with pytest.raises(ValueError):
        env.set_state(given)
    assert_same(env.get_state(), now)


@pytest.mark.parametrize("index", [7, -1])
def test_a_tile_or_a_clip_that_does_not_exist_is_refused_at_once(
    index: int, assert_same: Any
) -> None:
    for task, part in ((ROUGH, ("ground", "levels")), (MIMIC, ("own", "commands"))):
        env = made(task)
        env.reset(seed=0)
        now = env.get_state()
        wrong = copy.deepcopy(now)
        indices = wrong[part[0]][part[1]]
        if task == MIMIC:
            (motion,) = (term for term in indices["terms"].values() if "player" in term)
            indices = motion["player"]["clip"]
            index = 10_000 if index > 0 else index
        indices.fill_(index)
        with pytest.raises(ValueError, match=str(index)):
            env.set_state(wrong)
        assert_same(env.get_state(), now)
        env.close()


def test_a_pinned_clip_and_its_absence_are_states(assert_same: Any) -> None:
    """A part that is None at some times is loaded where it is not, and the other way round."""
    env = made(MIMIC)
    env.reset(seed=0)
    free = env.get_state()
    command = next(term for term in env.commands.terms.values() if hasattr(term, "pin"))
    command.pin(torch.tensor(0), torch.tensor(0.0))
    pinned = env.get_state()
    for state in (free, pinned, free):
        env.set_state(state)
        assert_same(env.get_state(), state)
    env.close()


def stack() -> Any:
    env = gym.make_vec(FLAT, num_envs=2, cfg={"sim.num_threads": 1}, statistics=False)
    env = RewardNormalize(ObsNormalize(EpisodeStatistics(env)))
    return LagrangianReward(CostNormalize(env))


def part(state: dict[str, Any], wrapper: str) -> dict[str, Any]:
    while state["wrapper"] != wrapper:
        state = state["env"]
    return state["own"]


def find(tree: Any, key: str) -> dict[str, Any]:
    """Return the first of nested dicts that has a key."""
    waiting = [tree]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, dict):
            if key in each:
                return each
            waiting.extend(each.values())
    raise AssertionError(key)


WRAPPER_CHANGES: dict[str, Change] = {
    "a negative count": lambda state: find(part(state, "ObsNormalize"), "count").update(count=-1),
    "half a count": lambda state: find(part(state, "ObsNormalize"), "count").update(count=0.5),
    "no count": lambda state: find(part(state, "ObsNormalize"), "count").update(count=None),
    "a mean of nothing": lambda state: find(part(state, "ObsNormalize"), "mean").update(mean=None),
    "a mean of words": lambda state: find(part(state, "ObsNormalize"), "mean").update(
        mean=np.full(np.shape(find(part(state, "ObsNormalize"), "mean")["mean"]), "x")
    ),
    "NaN": lambda state: find(part(state, "ObsNormalize"), "m2").update(
        m2=find(part(state, "ObsNormalize"), "m2")["m2"] * np.nan
    ),
    "a negative deviation": lambda state: find(part(state, "ObsNormalize"), "m2").update(
        m2=find(part(state, "ObsNormalize"), "m2")["m2"] - 1e9
    ),
    "returns of words": lambda state: find(part(state, "RewardNormalize"), "returns").update(
        returns=np.array(["a", "b"])
    ),
    "multipliers of nothing": lambda state: find(
        part(state, "LagrangianReward"), "multipliers"
    ).update(multipliers=None),
    "no own part": lambda state: state.update(own=None),
    "no environment": lambda state: state.update(env=None),
    "physics of nothing": lambda state: _core(state).update(sim={}),
}


def _core(state: dict[str, Any]) -> dict[str, Any]:
    while "wrapper" in state:
        state = state["env"]
    return state


@pytest.fixture(scope="module")
def wrapped() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    env = stack()
    env.reset(seed=0)
    env.step(np.zeros((2, 12), np.float32))
    earlier = env.get_state()
    env.step(np.zeros((2, 12), np.float32))
    return env, earlier, env.get_state()


@pytest.mark.parametrize("what", WRAPPER_CHANGES)
def test_a_stack_refuses_a_state_whole(what: str, wrapped: Any, assert_same: Any) -> None:
    env, earlier, now = wrapped
    env.set_state(now)
    wrong = copy.deepcopy(earlier)
    WRAPPER_CHANGES[what](wrong)
    with pytest.raises(ValueError):
        env.set_state(wrong)
    after = env.get_state()
    assert_same(unwrap(env).get_state(), _core(now))
    for wrapper in ("LagrangianReward", "CostNormalize", "RewardNormalize", "ObsNormalize"):
        assert_same(part(after, wrapper), part(now, wrapper))
