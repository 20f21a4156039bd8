"""The gait command in a plain loop, compared with the gait command of the environment."""

import numpy as np
import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.envs import make_core
from legged_envs.evaluation.plain_gait import PlainGait, gait_term
from legged_envs.mdp.gait_command import GaitCommand
from legged_envs.policy.metadata import contract

TASK = "Legged/Go2-Gaits-v0"


def test_robots_observe_their_gaits_as_in_the_environment():
    cfg = make_task_cfg(TASK)
    cfg.commands["gait"].level = 1.0
    cfg.observations["policy"].noisy = False
    core = make_core(cfg, 12, array="torch")
    observation, _ = core.reset(seed=4)
    command = core.commands.terms["gait"]
    assert isinstance(command, GaitCommand)
    entry = contract(TASK, core)["gait_command"]
    plain = PlainGait(entry, command.value.numpy().copy(), command.stride_time.numpy().copy())
    for _ in range(60):
        for i in range(12):
            terms = plain.observe(i, core.commands["velocity"][i].numpy())
            names = ("gait", "gait_style", "clock_sin", "clock_cos")
            expected = np.concatenate([terms[name] for name in names])
            np.testing.assert_allclose(observation[i, 3:18], expected, atol=1e-4)
        observation = core.step(torch.zeros(12, 12))[0]
        plain.advance(core.step_dt)


def test_a_contract_without_the_gaits_that_it_observes_is_named():
    class Loop:
        gait = None

    with pytest.raises(ValueError, match="clock_sin"):
        gait_term("clock_sin")(Loop(), None, 0)
