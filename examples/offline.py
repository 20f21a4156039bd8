"""Clone a recorded policy from a Minari dataset, and hold the clone to the costs of what it saw.

First record one: ``legged-envs record Legged/Go2-Flat-v0 --name go2/walk-v0 --episodes 200 --noise 0.2``. With
``--safest 0.5`` only the half of the episodes with the least cost per step is cloned (BC-Safe, Liu et al. 2023).
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from torch import nn

from legged_envs.checks import check_number, whole_number
from legged_envs.envs.cfg import override
from legged_envs.errors import print_mistake
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.evaluation.record import load_dataset
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import save_policy
from legged_envs.system_checks import check_output
from legged_envs.tasks import make_task_cfg

sys.excepthook = print_mistake
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("dataset", help="such as go2/walk-v0")
parser.add_argument("--env-id", default="Legged/Go2-Flat-v0")
parser.add_argument(
    "--safest",
    type=float,
    default=1.0,
    help="share of the episodes to clone, starting with the lowest costs",
)
parser.add_argument("--updates", type=int, default=3000)
parser.add_argument("--episodes", type=int, default=256, help="of the evaluation")
parser.add_argument(
    "--save", type=Path, default=Path("offline.safetensors"), help="where to write the policy"
)
arguments = parser.parse_args()

try:
    check_number("--safest", arguments.safest, above=0.0, most=1.0)
    whole_number("--updates", arguments.updates)
    whole_number("--episodes", arguments.episodes)
    check_output("--save", arguments.save, endings=(".safetensors",))
    dataset = load_dataset(arguments.dataset, arguments.env_id)
except (ValueError, OSError, ImportError) as error:
    sys.exit(f"offline.py: {error}")
if dataset.observation_space.shape is None:
    sys.exit(
        "offline.py: its network takes vectors, and this dataset has several groups of observations"
    )

about = dataset.storage.metadata
episodes = sorted(dataset.iterate_episodes(), key=lambda episode: episode.infos["cost"].mean())
cloned = episodes[: max(1, round(arguments.safest * len(episodes)))]


def describe(name, episodes):
    costs = np.concatenate([episode.infos["costs"] for episode in episodes]).mean(axis=0)
    reward = np.mean([episode.rewards.sum() for episode in episodes])
    falls = np.mean([episode.terminations[-1] for episode in episodes])
    print(
        f"{name}: {len(episodes)} episodes, return {reward:.2f}, falls {falls:.1%}, costs per step (limit)"
    )
    limits = zip(about["cost_names"], costs, about["cost_limits"], strict=True)
    print("   " + ", ".join(f"{cost} {mean:.4f} ({limit:g})" for cost, mean, limit in limits))


describe("recorded", episodes)
describe("cloned", cloned)

torch.manual_seed(0)
observations = torch.from_numpy(np.concatenate([episode.observations[:-1] for episode in cloned]))
actions = torch.from_numpy(np.concatenate([episode.actions for episode in cloned]))
sizes = (observations.shape[1], 256, 128, actions.shape[1])
network = nn.Sequential(
    nn.Linear(*sizes[:2]), nn.ELU(), nn.Linear(*sizes[1:3]), nn.ELU(), nn.Linear(*sizes[2:])
)
optimizer = torch.optim.Adam(network.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.updates)
for update in range(arguments.updates):
    rows = torch.randint(len(actions), (1024,))
    loss = nn.functional.mse_loss(network(observations[rows]), actions[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if update % 500 == 0 or update == arguments.updates - 1:
        print(f"update {update:5d}   error of the actions {loss.item() ** 0.5:.4f}")

changes = dataset.env_spec.kwargs.get("cfg", {})
task = override(make_task_cfg(arguments.env_id), changes)
evaluator = Evaluator(arguments.env_id, task, arguments.episodes)
arguments.save.parent.mkdir(parents=True, exist_ok=True)
save_policy(arguments.save, network, contract(arguments.env_id, evaluator.core, changes=changes))
with torch.inference_mode():
    evaluator.run(network).print(Console())
print(f"watch it: legged-envs play {arguments.env_id} --policy {arguments.save}")
