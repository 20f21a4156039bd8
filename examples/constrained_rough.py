"""Go2 stumbles less on rough ground: a training of Legged/Go2-Rough-v0 continues with LagrangianReward on that one
cost.

Prints crossings, errors and costs on unseen episodes, before and after, and writes them to results.md in ``--out``.
"""

import argparse
import json
import os
import sys
from datetime import datetime
from pathlib import Path

# OpenMP threads that wait leave the cores to the physics after a short spin; read once, when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

from rich.console import Console

from legged_envs.errors import print_mistake
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.policy.policy import load_policy
from legged_envs.tasks import make_task_cfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer
from legged_envs.wrappers.lagrangian_reward import LagrangianReward

TASK, COST = "Legged/Go2-Rough-v0", "stumble"
NOISE = 0.7  # of the exploration remains, so that costs are the robot's rather than the noise's

sys.excepthook = print_mistake
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("run", type=Path, help="folder of a training of that task")
parser.add_argument("--updates", type=int, default=400)
parser.add_argument(
    "--share",
    type=float,
    default=0.2,
    help="limit of the cost, as a share of what it is evaluated at before",
)
parser.add_argument("--num-envs", type=int, default=768)
parser.add_argument("--episodes", type=int, default=1024, help="of the evaluations")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument(
    "--out", type=Path, default=Path(f"runs/constrained_rough/{datetime.now():%Y-%m-%d_%H-%M-%S}")
)
args = parser.parse_args()

policy = load_policy(args.run)
evaluator = Evaluator(TASK, make_task_cfg(TASK), args.episodes)
# A run of another task or with other observations is refused here, with the difference.
policy.check(evaluator.core)
before = evaluator.run(policy).as_dict()
evaluator.close()


def wrap(env):
    """The limit is a share of the evaluated cost, of which a training, with commands of all kinds, has about half."""
    limits = [
        args.share * before["costs"][COST] if name == COST else 1e6
        for name in env.unwrapped.cost_names
    ]
    return LagrangianReward(env, limits, pid=(0.05, 0.0006, 0.0))


ppo = PPOCfg(epochs=4, hidden=(256, 128), learning_rate=3e-4, entropy=0.0, noise_kept=NOISE)
cfg = TrainCfg(
    TASK,
    args.num_envs,
    seed=args.seed,
    video=False,
    algo=ppo,
    warm_start=args.run,
    run_dir=args.out,
)
cfg.iterations, cfg.episodes = args.updates, args.episodes
cfg.changes = {
    "scene.terrain.first_levels": (0, 9)
}  # a policy that knows them continues at all levels
after = json.loads((Trainer(prepare(cfg), Console(), wrap).run() / "eval.json").read_text())

rows = [
    ("cross their tile", before["crossed"], after["crossed"]),
    ("fall", before["falls"], after["falls"]),
]
rows += [("velocity error, m/s", before["lin_vel_error"], after["lin_vel_error"])]
rows += [(f"cost {name}", cost, after["costs"][name]) for name, cost in before["costs"].items()]
table = [
    f"| {args.episodes} unseen episodes | before | after | after / before |",
    "|---|---|---|---|",
]
table += [
    f"| {name} | {one:.4f} | {other:.4f} | {other / one if one else 1.0:.2f} |"
    for name, one, other in rows
]
(args.out / "results.md").write_text("\n".join(table) + "\n")
print("\n".join(table))
print("written to", args.out)
