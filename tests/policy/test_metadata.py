"""Metadata of policies: entries, entries of earlier versions, and the comparison with an environment."""

from __future__ import annotations

import json
import math
import re
from contextlib import closing
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import gymnasium as gym
import pytest
import torch

from legged_envs.envs import unwrap
from legged_envs.mdp import observations
from legged_envs.policy.metadata import LATER_ENTRIES, contract
from legged_envs.policy.policy import Policy, load_shipped_policy

GO2 = "Legged/Go2-Flat-v0"


def test_a_policy_of_before_contracts_named_joints_of_actions_is_played_on():
    shipped = load_shipped_policy(GO2)
    older = Policy(
        shipped,
        {name: value for name, value in shipped.contract.items() if name not in LATER_ENTRIES},
    )
    with closing(gym.make_vec(GO2, num_envs=1, observations="dict")) as env:
        older.check(unwrap(env))
    clipped = gym.make_vec(GO2, num_envs=1, cfg={"actions.joint_position.clip": (-1.0, 1.0)})
    with (
        closing(clipped),
        pytest.raises(ValueError, match=r"target_clip.*\[\[-1"),
    ):
        shipped.check(unwrap(clipped))


@pytest.mark.parametrize(
    ("task_id", "changes"),
    [
        ("Legged/Tron1-WF-Flat-v0", {}),
        (GO2, {"action_limit": 2.0}),
        (GO2, {"observations.policy.terms.joint_vel.clip": (-math.inf, 20.0)}),
    ],
    ids=str,
)
def test_what_earlier_versions_wrote_of_wheels_limits_and_bounds_is_the_same_policy(
    task_id, changes
):
    with closing(gym.make_vec(task_id, num_envs=1, cfg=changes, observations="dict")) as envs:
        meaning = contract(task_id, core := unwrap(envs))
        for term in meaning["inputs"]["policy"]:
            term["scale"] = core.cfg.observations["policy"].terms[term["name"]].scale
            term["clip"] = core.cfg.observations["policy"].terms[term["name"]].clip
        meaning["action"] = "joint target = default_joint_pos + action_scale * clip(action, -1, 1)"
        older = {name: value for name, value in meaning.items() if name not in LATER_ENTRIES}
        Policy(torch.nn.Identity(), json.loads(json.dumps(older))).check(core)
        older["inputs"] = {
            "policy": [{**term, "scale": 3.0} for term in meaning["inputs"]["policy"]]
        }
        with pytest.raises(ValueError, match="observation = "):
            Policy(torch.nn.Identity(), older).check(core)


@dataclass(frozen=True)
class Called:
    function: Any

    def __call__(self, env: Any) -> torch.Tensor:
        return self.function(env)


@pytest.mark.parametrize(
    ("func", "name"),
    [
        (Called(observations.command), r".*test_metadata.Called"),
        (partial(observations.command), "legged_envs.mdp.observations.command"),
        (lambda env: env.commands["velocity"], r".*test_metadata.<lambda>"),
    ],
    ids=["callable", "partial", "lambda"],
)
def test_a_term_that_is_no_plain_function_has_a_name_that_stays(func, name):
    with closing(
        gym.make_vec(GO2, num_envs=1, cfg={"observations.policy.terms.command.func": func})
    ) as envs:
        first = contract(GO2, unwrap(envs))["inputs"]["policy"][0]
    assert re.fullmatch(name, first["own"]) and first["name"] == "command"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"robot.default_joint_pos": (0.1, 0.85, -1.6) * 4}, "default_joint_pos"),
        ({"observations.policy.terms.ang_vel.clip": (-0.01, 0.01)}, "observation"),
    ],
    ids=str,
)
def test_a_policy_is_not_for_another_pose_or_other_clips(changes, name):
    envs = gym.make_vec(GO2, num_envs=1, cfg=changes)
    with closing(envs), pytest.raises(ValueError, match=f"{name} = "):
        load_shipped_policy(GO2).check(unwrap(envs))


@pytest.mark.parametrize(
    ("task_id", "place"),
    [
        ("Legged/G1-Flat-v0", ("gait", "swing", 0, "left_knee_joint")),
        ("Legged/Go2-Rough-v0", ("action_scale", 3)),
    ],
)
def test_a_policy_fits_where_numbers_differ_in_their_last_digits_alone(task_id, place):
    """Values computed from a model, such as a foot's lift, are rounded differently on each processor."""
    policy = load_shipped_policy(task_id)
    env = unwrap(gym.make_vec(task_id, num_envs=1, cfg=policy.changes, observations="dict"))
    *way, last = place
    part = reduce(lambda value, key: value[key], way, policy.contract)
    true = part[last]
    for change, fits in ((1e-8, True), (1e-3, False)):
        part[last] = true + change
        if fits:
            policy.check(env)
            continue
        with pytest.raises(ValueError, match=f"{place[0]} = "):
            policy.check(env)
    part[last] = true
    env.close()
