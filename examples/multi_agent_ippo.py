"""Train several agents with skrl's IPPO or MAPPO, each with separate networks; then evaluate them and render a video.

Writes policy.pt, evaluation.json, video.mp4 to ``--out``. IPPO's critics see what their agent sees, MAPPO's the state.
"""

import argparse
import json
import math
import os
import sys
import time
from contextlib import closing
from pathlib import Path

# OpenMP threads that wait leave the cores to the physics after a short spin; read once, when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import gymnasium as gym
import torch
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.resources.preprocessors.torch import RunningStandardScaler
from torch import nn

import legged_envs  # noqa: F401  (registers the ids)
from legged_envs.errors import print_mistake
from legged_envs.evaluation.conditions import EVALUATION_ENV_OPTIONS, evaluation_cfg
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.tasks import make_task_cfg
from legged_envs.viewing.film import film
from legged_envs.viewing.scenes import make_scenes
from legged_envs.wrappers.skrl import BootstrapIPPO, BootstrapMAPPO, SkrlMultiAgentEnv

STEPS, EPOCHS, MINI_BATCHES = 24, 5, 3  # of each environment between two updates; of an update
RATES = 1e-3, 1e-4  # learning rate at the start and at the end
HIDDEN, STD = 128, 0.5  # units of the two hidden layers; standard deviation of the first actions

sys.excepthook = print_mistake
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--task", default="Legged/Go2-Legs-v0")
parser.add_argument("--algorithm", choices=("ippo", "mappo"), default="ippo")
parser.add_argument("--minutes", type=float, default=29.0, help="of training")
parser.add_argument("--num-envs", type=int, default=768)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--entropy", type=float, default=0.01)
parser.add_argument(
    "--coarse", action="store_true", help="train on physics steps twice as long: twice as fast"
)
parser.add_argument("--episodes", type=int, default=256, help="of the evaluation")
parser.add_argument("--no-video", action="store_true")
parser.add_argument("--out", type=Path, default=Path("runs/multi_agent"))
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)
torch.set_num_threads(
    os.cpu_count() or 1
)  # of the update: the environment takes one thread for its own maths
torch.manual_seed(args.seed)


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    hidden = nn.Linear(inputs, HIDDEN), nn.ELU(), nn.Linear(HIDDEN, HIDDEN), nn.ELU()
    return nn.Sequential(*hidden, nn.Linear(HIDDEN, outputs))


class Policy(GaussianMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self, clip_actions=False)
        self.net = mlp(self.num_observations, self.num_actions)
        self.net[-1].weight.data *= 0.1
        self.log_std = nn.Parameter(torch.full((self.num_actions,), math.log(STD)))

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.seen = "states" if args.algorithm == "mappo" else "observations"
        self.net = mlp(getattr(self, f"num_{self.seen}"), 1)

    def compute(self, inputs, role):
        return self.net(inputs[self.seen]), {}


changes = {"sim.dt": 0.01, "decimation": 2} if args.coarse else {}
envs = gym.make_vec(
    args.task, num_envs=args.num_envs, cfg=changes, array="torch", observations="dict"
)
env = SkrlMultiAgentEnv(envs, seed=args.seed)
agents = env.possible_agents
spaces = {"observation_spaces": env.observation_spaces, "action_spaces": env.action_spaces}
if args.algorithm == "mappo":
    spaces["state_spaces"] = env.state_spaces
of = {agent: {name[:-1]: by_agent[agent] for name, by_agent in spaces.items()} for agent in agents}
cfg = {
    **{"rollouts": STEPS, "learning_epochs": EPOCHS, "mini_batches": MINI_BATCHES},
    "observation_preprocessor": RunningStandardScaler,
    "observation_preprocessor_kwargs": {
        agent: {"size": of[agent]["observation_space"]} for agent in agents
    },
    "state_preprocessor": RunningStandardScaler if args.algorithm == "mappo" else None,
    "state_preprocessor_kwargs": {
        agent: {"size": of[agent].get("state_space")} for agent in agents
    },
    **{"value_preprocessor": RunningStandardScaler, "value_preprocessor_kwargs": {"size": 1}},
    **{"entropy_loss_scale": args.entropy, "value_loss_scale": 1.0, "grad_norm_clip": 1.0},
    "experiment": {"write_interval": 0, "checkpoint_interval": 0},
}
learner = (BootstrapMAPPO if args.algorithm == "mappo" else BootstrapIPPO)(
    possible_agents=agents,
    models={
        agent: {"policy": Policy(**of[agent]), "value": Value(**of[agent])} for agent in agents
    },
    memories={agent: RandomMemory(memory_size=STEPS, num_envs=args.num_envs) for agent in agents},
    **{"state_spaces": dict.fromkeys(agents), **spaces},
    cfg=cfg,
)
learner.init()
learner.enable_training_mode(True)
(observation, _), states, step, rewards, begun = (
    env.reset(),
    env.state(),
    0,
    [],
    time.perf_counter(),
)
clock = {"timestep": 0, "timesteps": 0}
while (done := (time.perf_counter() - begun) / (60.0 * args.minutes)) < 1.0:
    for optimizer in learner.optimizers.values():
        optimizer.param_groups[0]["lr"] = RATES[0] + done * (RATES[1] - RATES[0])
    for _ in range(STEPS):
        with torch.no_grad():
            actions, _ = learner.act(observation, states, **clock)
            given = {"observations": observation, "states": states, "actions": actions}
            observation, reward, terminated, truncated, infos = env.step(actions)
            states = env.state()
            told = {
                "rewards": reward,
                "terminated": terminated,
                "truncated": truncated,
                "infos": infos,
            }
            rewards.append(sum(reward.values()).mean().item())
            learner.record_transition(
                **given, **told, next_observations=observation, next_states=states, **clock
            )
        learner.post_interaction(**clock)
    step += STEPS
    if step % (20 * STEPS) == 0:
        mean, seconds = (
            sum(rewards) / len(rewards) / envs.unwrapped.step_dt,
            time.perf_counter() - begun,
        )
        millions = step * args.num_envs / 1e6
        print(f"{seconds:5.0f} s  {millions:5.2f} M steps  reward {mean:.2f}/s", flush=True)
        rewards.clear()
        learner.tracking_data.clear()
seconds, task = time.perf_counter() - begun, envs.unwrapped.task.user
env.close()
learner.enable_training_mode(False)


def act(joined: torch.Tensor) -> torch.Tensor:
    """The means of the actions of all agents, for their observations in a row."""
    seen = task.split(joined, task.observation_spaces)
    scaled = {agent: learner._observation_preprocessor[agent](part) for agent, part in seen.items()}
    return torch.cat([learner.policies[agent].net(part) for agent, part in scaled.items()], 1)


weights = {
    agent: (learner.policies[agent], learner._observation_preprocessor[agent]) for agent in agents
}
torch.save(
    {agent: [part.state_dict() for part in parts] for agent, parts in weights.items()},
    args.out / "policy.pt",
)
registered = make_task_cfg(args.task)
result = Evaluator(args.task, registered, args.episodes).run(act).as_dict()
report = {
    "task": args.task,
    "algorithm": args.algorithm,
    "seed": args.seed,
    "env_steps": step * args.num_envs,
}
report |= {"training_seconds": round(seconds, 1), **result}
(args.out / "evaluation.json").write_text(json.dumps(report, indent=1) + "\n")
print(
    {
        name: round(result[name], 3)
        for name in ("lin_vel_error", "ang_vel_error", "falls", "base_height")
    }
)
if not args.no_video:
    options = {
        "cfg": evaluation_cfg(registered),
        "render_mode": "rgb_array",
        **EVALUATION_ENV_OPTIONS,
    }
    with closing(gym.make_vec(args.task, num_envs=1, **options)) as one:
        film(one, act, ("policy",), make_scenes(registered), args.out / "video.mp4")
