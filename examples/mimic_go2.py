"""Reference motions in, an imitating robot out: look at a clip, let a policy imitate it, and count the misses."""

import argparse
import sys

import gymnasium as gym
import torch

import legged_envs  # noqa: F401  (registers the ids)
from legged_envs.errors import print_mistake
from legged_envs.mdp.motion_command import motion_command
from legged_envs.motions import foot_contacts, inspect_motion, shipped_motions
from legged_envs.policy.policy import load_policy, load_shipped_policy
from legged_envs.robots import GO2

TASK = "Legged/Go2-Mimic-v0"

sys.excepthook = print_mistake
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--clip", default="bound", help="a clip of the package")
parser.add_argument(
    "--policy",
    help="run folder of `legged-envs train Legged/Go2-Mimic-v0`; default: the shipped one",
)
parser.add_argument("--num-envs", type=int, default=64)
parser.add_argument("--steps", type=int, default=250)
args = parser.parse_args()

# A clip is a dataclass of tensors. Yours: load_motion, load_lafan1_csv, load_beyondmimic_npz, load_amp_json.
(clip,) = shipped_motions(GO2, args.clip)
report = inspect_motion(clip, GO2)
print(f"{clip.name}: {clip.duration:.2f} s at {clip.frame_rate:g} Hz, looped: {clip.loop}")
print(
    f"fastest joint {report.joint_speed:.0%} of its limit, feet stand {foot_contacts(clip, GO2).float().mean():.0%}"
)

envs = gym.make_vec(
    TASK,
    num_envs=args.num_envs,
    cfg={
        "commands.motion.motions": lambda robot: [clip],
        "commands.motion.reference_fraction": 1.0,
        "commands.motion.window": (1, 2, 4, 8),
    },
    array="torch",
    observations="dict",
)
core = envs.unwrapped
motion = motion_command(core.commands)
policy = load_policy(args.policy) if args.policy else load_shipped_policy(TASK)
policy.check(core, ("policy", "reference", "reference_mask"))

observation, info = envs.reset(seed=0)
print("observation groups:", {name: tuple(group.shape) for name, group in observation.items()})
misses, falls, costs = [], 0, torch.zeros(len(core.cost_names))
for _ in range(args.steps):
    target = motion.target_joint_pos  # where the joints should be after this step
    action = policy(observation["policy"], observation["reference"], observation["reference_mask"])
    observation, reward, terminated, truncated, info = envs.step(action)
    falls += int(terminated.sum())
    costs += info["costs"].mean(dim=0)
    going_on = ~(
        terminated | truncated
    )  # robots of ended episodes stand at the start of the next one
    misses.append((core.robot.joint_pos - target).abs().mean(dim=1)[going_on].mean())

print(
    f"{args.steps * args.num_envs} steps: mean joint error {torch.stack(misses).mean():.3f} rad, {falls} falls"
)
print(
    {
        name: round(cost, 4)
        for name, cost in zip(core.cost_names, (costs / args.steps).tolist(), strict=True)
    }
)
envs.close()
