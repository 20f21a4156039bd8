"""The saved state of a core environment."""

from typing import TYPE_CHECKING, Any

from legged_envs.envs.arguments import check_same_structure
from legged_envs.state import copy_state, restore_state

if TYPE_CHECKING:
    from legged_envs.envs.core import CoreVectorEnv


def collect(env: "CoreVectorEnv") -> dict[str, Any]:
    """Return a copy of everything that the future of ``env`` depends on."""
    return {
        "sim": env.sim.get_state(),
        "random": env.random.state_dict(),
        **_collect_own(env),
    }


def _collect_own(env: "CoreVectorEnv") -> dict[str, Any]:
    state = {
        "own": env.task.state(),
        "episode_steps": copy_state(env.episode_steps),
        "bad_physics": copy_state(env.had_bad_physics),
        "over": copy_state(env.has_ended),
        "ended_rows": copy_state(env.log.rows),
        "steps": env.num_steps,
        "robots": copy_state(env.robots),
        "observation": copy_state(env.last_observation),
    }
    if env.ground is not None:
        state["ground"] = copy_state(env.ground)
    return state


def restore(env: "CoreVectorEnv", state: dict[str, Any]) -> None:
    """Return ``env`` to a state from :func:`collect`.

    Raises:
        ValueError: If the state has another structure; nothing is changed then.
    """
    present = _collect_own(env)
    _check_structure(env, state, present)
    env.task.check_state(state["own"])
    env.task.load_changes(state["own"])
    try:
        env.sim.set_state(state["sim"])
    except ValueError:
        env.task.load_changes(present["own"])
        raise
    env.random.load_state_dict(state["random"])
    env.episode_steps = restore_state(env.episode_steps, state["episode_steps"])
    env.had_bad_physics = restore_state(env.had_bad_physics, state["bad_physics"])
    env.has_ended = restore_state(env.has_ended, state["over"])
    env.log.rows = restore_state(env.log.rows, state["ended_rows"])
    env.num_steps = state["steps"]
    env.robots = restore_state(env.robots, state["robots"])
    if env.ground is not None:
        env.ground = restore_state(env.ground, state["ground"])
    env.last_observation = restore_state(env.last_observation, state["observation"])
    env.task.load_state(state["own"])


def _check_structure(env: "CoreVectorEnv", state: dict[str, Any], present: dict[str, Any]) -> None:
    expected = dict(present)
    # The engine checks its own part. The number of streams may differ, and so may the number of
    # episodes that ended.
    expected["sim"] = None
    expected["random"] = {**env.random.state_dict(), "streams": None}
    episodes = len(state.get("ended_rows", ()))
    expected["ended_rows"] = env.log.rows.new_zeros(episodes, len(env.log.names))
    check_same_structure(state, expected, "the state")
