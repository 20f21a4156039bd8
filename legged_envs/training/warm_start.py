"""Networks of a run for a training of another task of the same robot, which shows more or keeps larger networks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.envs.cfg import override
from legged_envs.mdp.observations import last_action
from legged_envs.policy.metadata import contract, observation_entries
from legged_envs.tasks import make_task_cfg
from legged_envs.training.checkpoint import read_checkpoint
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

MEMORY = 200_000
"""Samples that statistics of observations count at most, for those of new ones to become right soon."""
State = dict[str, torch.Tensor]


def begin_with(
    place: Path, algorithm: BootstrapPPO, task_id: str, env: RslRlVecEnv, noise: float
) -> None:
    """Give actor and critic of ``algorithm`` what those of the run at ``place`` have learnt. What they both see keeps
    its weights; new observations, normalised as ``env`` shows them now, and units of wider layers count for nothing at
    first. So actions and values are those of the run, or, where something is no longer shown, those at its mean; the
    standard deviation of actions is multiplied by ``noise``. An action of another scale keeps its joint targets, as far
    as they are in range. ValueError if the run is of another robot, other actions, larger networks or another
    algorithm, or shares no observation; FileNotFoundError if there is none."""
    state = read_checkpoint(place)
    there_id = state["task_id"]
    if "actor_state_dict" not in state["algorithm"]:
        wrong = f"{str(place)!r} is a checkpoint of {there_id!r}, not of {task_id!r}"
        raise ValueError(f"{wrong}, and of another algorithm, whose networks cannot begin")
    cfg = (
        override(make_task_cfg(there_id), state["cfg"].changes)
        if "cfg" in state
        else make_task_cfg(there_id)
    )
    envs = gym.make_vec(there_id, num_envs=1, cfg=cfg, array="torch", observations="dict")
    try:
        there = unwrap(envs)
        here, shown = unwrap(env.env), env.get_observations()
        ours, theirs = contract(task_id, here), contract(there_id, there)
        if odd := next(
            (key for key in ("robot", "action") if ours.get(key) != theirs.get(key)), None
        ):
            wrong = f"{str(place)!r} is a run of {there_id!r}, whose {odd} is {theirs.get(odd)}"
            raise ValueError(
                f"{wrong}; {task_id!r} has {ours.get(odd)}, so its networks cannot begin"
            )
        ratio = there.actions.scale / here.actions.scale
        shows = {
            name: term.func
            for group in there.cfg.observations.values()
            for name, term in group.terms.items()
        }
        for name, model in (("actor", algorithm.actor), ("critic", algorithm.critic)):
            known = [
                group if group in there.group_sizes else "policy" for group in model.obs_groups
            ]
            places = _places(here, model.obs_groups), _places(there, known)
            columns = [(places[0][key], at) for key, at in places[1].items() if key in places[0]]
            if not columns:
                raise ValueError(
                    f"{there_id!r}, of which {str(place)!r} is a run, shows nothing that {task_id!r} does"
                )
            model.obs_normalizer.train().update(
                torch.cat([shown[group] for group in model.obs_groups], dim=1)
            )
            actions = [at for key, at in places[1].items() if shows.get(key[0]) is last_action]
            old = _rescaled(
                state["algorithm"][f"{name}_state_dict"], ratio, actions, model.obs_normalizer.eps
            )
            model.load_state_dict(_grown(model.state_dict(), old, columns))
    finally:
        envs.close()
    with torch.no_grad():
        algorithm.get_policy().distribution.std_param.mul_(noise)


def _places(env: CoreVectorEnv, groups: Sequence[str]) -> dict[Any, range]:
    """What each observation is → its columns."""
    places, start = dict[Any, range](), 0
    for term in (term for group in groups for term in observation_entries(env, group)):
        key = (term["name"], term.get("steps_ago", 0), term["size"], str(term["scale"]))
        places[key] = range(start, start := start + term["size"])
    return places


def _rescaled(state: State, ratio: torch.Tensor, actions: Sequence[range], eps: float) -> State:
    """``state`` with actions ``ratio`` times what they were, as it sees them in columns ``actions`` and gives them."""
    state = {name: value.clone() for name, value in state.items()}
    weights = [value for name, value in state.items() if name.endswith("weight")]
    for columns in map(list, actions):
        old = state["obs_normalizer._std"][:, columns]
        weights[0][:, columns] *= (ratio * old + eps) / (ratio * (old + eps))
        for name, factor in {"_mean": ratio, "_std": ratio, "_var": ratio.square()}.items():
            state[f"obs_normalizer.{name}"][:, columns] *= factor
    if "distribution.std_param" in state:  # the actor, whose output is an action
        weights[-1].mul_(ratio[:, None])
        next(value for name, value in reversed(state.items()) if name.endswith("bias")).mul_(ratio)
        state["distribution.std_param"].mul_(ratio)
    return state


def _grown(new: State, old: State, columns: Sequence[tuple[range, range]]) -> State:
    """``new`` with the values of ``old``, of whose ``columns`` of inputs (new, old) are the same."""
    to, of = (
        torch.tensor([column for pair in columns for column in pair[side]]) for side in (0, 1)
    )
    sizes = [
        [len(value) for name, value in each.items() if name.endswith("bias")] for each in (old, new)
    ]
    if len(sizes[0]) != len(sizes[1]) or any(a > b for a, b in zip(*sizes, strict=True)):
        raise ValueError(
            f"layers must be as many and as wide as those of the run, {sizes[0]}, got {sizes[1]}"
        )
    grown = {name: value.clone() for name, value in new.items()}
    first = min(name for name in new if name.endswith("weight"))
    for name, value in old.items():
        if not value.dim():
            same = len(of) == new[first].shape[1]
            grown[name] = value if same else value.clamp(max=MEMORY)
        elif name.startswith("obs_normalizer"):
            grown[name][:, to] = value[:, of]
        elif value.dim() == 1:
            grown[name][: len(value)] = value
        else:
            rows = grown[name][: len(value)].zero_()
            if name == first:
                rows[:, to] = value[:, of]
            else:
                rows[:, : value.shape[1]] = value
    return grown
