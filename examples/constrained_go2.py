"""Train Go2 three ways with rsl_rl's PPO: without constraints, with ConstraintsAsTerminations, with LagrangianReward.

All three continue one training in which the robot has started to walk. Writes constrained_go2.png (reward, tracking
error, costs against their limits over training), results.md and results.json (unseen episodes) to the folder ``--out``.
"""

import argparse
import json
import os
import sys
from datetime import datetime
from pathlib import Path

# OpenMP threads that wait leave the cores to the physics after a short spin; read once, when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import torch
from matplotlib import pyplot
from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.errors import print_mistake
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer
from legged_envs.wrappers.constraints_as_terminations import ConstraintsAsTerminations
from legged_envs.wrappers.lagrangian_reward import LagrangianReward
from legged_envs.wrappers.plumbing.base import StatefulWrapper

TASK = "Legged/Go2-Flat-v0"
# Costs that an unconstrained walk does not keep: joints in the middle half of their range and below half their speed.
CHANGES = {"costs.joint_position.params.soft_limit": 0.5, "costs.joint_position.limit": 0.05}
CHANGES |= {"costs.joint_velocity.params.soft_limit": 0.5, "costs.joint_velocity.limit": 0.025}
CHANGES["costs.foot_slip.limit"] = 0.1  # in training, feet slip mostly by exploration
CHANGES["commands.velocity.standing_fraction"] = (
    0.0  # as in the evaluation: standing robots have separate costs
)
AIM = 1.05  # of each limit: exploration, pushes and starts of episodes cost too, and the evaluation counts none of them
COMMON = 0.4  # of each training
NOISE = 0.4  # of its exploration remains after that, so that costs are the robot's rather than the noise's

sys.excepthook = print_mistake
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--updates", type=int, default=300, help="of the policy, for each of the three")
parser.add_argument("--num-envs", type=int, default=768)
parser.add_argument("--episodes", type=int, default=256, help="of the evaluation")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument(
    "--out", type=Path, default=Path(f"runs/constrained_go2/{datetime.now():%Y-%m-%d_%H-%M-%S}")
)
args = parser.parse_args()


class Recorder(StatefulWrapper):
    """Keeps the task's own reward per second, tracking error and costs: means over every 24 steps of all robots."""

    def __init__(self, env):
        super().__init__(env)
        self.core, self.recent, self.rows = unwrap(env), [], []

    def step(self, actions):
        observation, reward, terminated, truncated, info = self.env.step(actions)
        error = self.core.commands["velocity"][:, :2] - self.core.robot.lin_vel_b[:, :2]
        scalars = torch.stack((reward.mean() / self.core.step_dt, error.norm(dim=1).mean()))
        self.recent.append(torch.cat((scalars, info["costs"].mean(0))))
        if len(self.recent) == 24:
            self.rows.append(torch.stack(self.recent).mean(0).tolist())
            self.recent.clear()
        return observation, reward, terminated, truncated, info


GAMMA = 0.99  # with which the figures of docs/how-to/constrained.md were made
TERMINATIONS = {"combine": "product", "min_probability": 0.005, "rate": 0.15, "gain": 3.0}
METHODS = {
    "no constraints": lambda env, limits: env,
    "terminations": lambda env, limits: ConstraintsAsTerminations(env, limits, **TERMINATIONS),
    "lagrangian": lambda env, limits: LagrangianReward(env, limits, pid=(0.08, 0.001, 0.0)),
}


def train(name, part, method, ppo, warm_start=None):
    """Train for a part of the updates; returns the recorder's rows and the evaluation."""
    recorders = []

    def wrap(env):
        recorders.append(Recorder(env))
        return METHODS[method](recorders[0], [AIM * limit for limit in env.unwrapped.cost_limits])

    cfg = TrainCfg(
        TASK,
        args.num_envs,
        seed=args.seed,
        changes=CHANGES,
        video=False,
        algo=ppo,
        warm_start=warm_start,
    )
    cfg.iterations, cfg.episodes, cfg.first_trot = round(part * args.updates), args.episodes, 1.0
    cfg.run_dir = args.out / name.replace(" ", "_")
    trainer = Trainer(prepare(cfg), Console(), wrap)
    if warm_start is not None:
        with torch.no_grad():
            trainer.algorithm.get_policy().distribution.std_param.mul_(NOISE)
    result = json.loads((trainer.run() / "eval.json").read_text())
    trainer.core.close()
    return recorders[0].rows, result


rates = PPOCfg()
rate = rates.learning_rate + COMMON * (
    rates.final_learning_rate - rates.learning_rate
)  # it falls as in one training
common, _ = train(
    "common", COMMON, "no constraints", PPOCfg(gamma=GAMMA, entropy=0.002, final_learning_rate=rate)
)
curves, results = {}, {}
for name in METHODS:
    ppo = PPOCfg(gamma=GAMMA, learning_rate=rate, entropy=0.0)
    rows, results[name] = train(name, 1.0 - COMMON, name, ppo, args.out / "common")
    curves[name] = torch.tensor(common + rows)

limits = next(iter(results.values()))["cost_limits"]
labels = ["reward per second", "velocity error, m/s", *limits]
figure, axes = pyplot.subplots(2, 4, figsize=(16, 7), constrained_layout=True)
for k, (axis, label) in enumerate(zip(axes.flat, labels, strict=True)):
    for name, rows in curves.items():
        smooth = torch.nn.functional.avg_pool1d(rows[None, :, k], 9, 1, 4, count_include_pad=False)[
            0
        ]
        axis.plot(torch.arange(1, len(rows) + 1) * 24 * args.num_envs / 1e6, smooth, label=name)
    if label in limits:
        axis.axhline(limits[label], color="black", linestyle=":", label="limit")
        axis.set_ylim(0, 4 * limits[label])
    axis.set(title=label, xlabel="million environment steps")
    axis.axvline(len(common) * 24 * args.num_envs / 1e6, color="grey", linewidth=0.8)
axes[0, 2].legend(frameon=False)
figure.savefig(args.out / "constrained_go2.png", dpi=110)

free = results["no constraints"]
table = [
    f"| {args.episodes} unseen episodes | limit | {' | '.join(results)} |",
    "|---|---|" + "---|" * len(results),
]
for key in ("lin_vel_error", "ang_vel_error"):
    cells = (f"{run[key]:.4f} ({run[key] / free[key]:.2f}×)" for run in results.values())
    table.append(f"| {key} | | {' | '.join(cells)} |")
table.append(f"| falls | | {' | '.join(format(run['falls'], '.1%') for run in results.values())} |")
for cost, limit in limits.items():
    cells = (
        f"{run['costs'][cost]:.4f} ({run['costs'][cost] / limit:.2f}×)" for run in results.values()
    )
    table.append(f"| {cost} | {limit:g} | {' | '.join(cells)} |")
(args.out / "results.md").write_text("\n".join(table) + "\n")
(args.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
print(
    "\n".join(table),
    "\nerrors × those without constraints, costs × their limit; written to",
    args.out,
)
