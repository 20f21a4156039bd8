"""What a trainer needs of an algorithm, and how each is made for an environment."""

import contextlib
import warnings

import torch

from legged_envs.checks import check_known
from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.metrics.mimic import motion_of
from legged_envs.policy.policy import Policy, load_policy
from legged_envs.robots.reading.kinematics import is_leg_joint
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.mimic import CRITIC_GROUPS
from legged_envs.training.mimic.algorithm import MimicDistillation
from legged_envs.training.mimic.bonus import ExpertTransitions, amp_observations
from legged_envs.training.mimic.ppo import MimicPPO
from legged_envs.training.mimic_options import MimicDistillationCfg, MimicPPOCfg
from legged_envs.training.options import ARMS, AlgorithmCfg, PPOCfg, teacher_path
from legged_envs.training.ppo import HalfMirror, Model, Rollouts
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

Algorithm = BootstrapPPO | MimicPPO | MimicDistillation
"""Learns from rollouts: ``act`` and ``process_env_step`` around each step, then ``compute_returns`` and ``update``."""


def add_observations(cfg: AlgorithmCfg, task: TaskCfg) -> None:
    """Add to a task the observation groups that only the algorithm needs."""
    if isinstance(cfg, MimicPPOCfg) and cfg.amp.amp_reward_weight:
        task.observations.setdefault(cfg.amp.group, amp_observations())


def make_algorithm(cfg: AlgorithmCfg, env: RslRlVecEnv) -> Algorithm:
    """The algorithm of ``cfg``, untrained; FileNotFoundError or ValueError if its teacher is missing or unfit."""
    if isinstance(cfg, PPOCfg):
        return _make_ppo(cfg, env)
    core = unwrap(env.env)
    motion = motion_of(core)
    common = env.get_observations(), env.num_actions, len(motion.cfg.window)
    if isinstance(cfg, MimicDistillationCfg):
        return MimicDistillation(*common, cfg, teacher=_load_teacher(cfg, core))
    teacher = _load_teacher(cfg, core) if cfg.dagger.coefficient else None
    expert = None
    if cfg.amp.amp_reward_weight:
        states = core.cfg.observations[cfg.amp.group]
        expert = ExpertTransitions(motion.player.library, states, core.step_dt).sample
    names, limits = core.cost_names, core.cost_limits
    check_known("--lagrange.costs: there is no cost", cfg.lagrange.costs, names, "costs")
    return MimicPPO(
        *common, cfg, cost_names=names, cost_limits=limits, teacher=teacher, expert=expert
    )


def _make_ppo(ppo: PPOCfg, env: RslRlVecEnv) -> Algorithm:
    assert ppo.hidden is not None and ppo.init_std is not None, (
        "complete() was to give what the task has by default"
    )
    groups = unwrap(env.env).group_sizes
    network = {
        "hidden_dims": list(ppo.hidden),
        "activation": ppo.activation,
        "obs_normalization": True,
    }
    model = {"class_name": Model, **network}
    gaussian = {
        "class_name": "rsl_rl.modules.distribution:GaussianDistribution",
        "init_std": _noise(ppo.init_std, env),
    }
    passes = {"num_learning_epochs": ppo.epochs, "num_mini_batches": ppo.mini_batches}
    optimizer = {
        "learning_rate": ppo.learning_rate,
        "schedule": "fixed",
        "max_grad_norm": ppo.max_grad_norm,
    }
    returns = {"gamma": ppo.gamma, "lam": ppo.gae_lambda}
    loss = {"clip_param": ppo.clip, "entropy_coef": ppo.entropy, "value_loss_coef": ppo.value_loss}
    cfg = {
        "algorithm": {"class_name": BootstrapPPO, **passes, **optimizer, **returns, **loss},
        "actor": {**model, "distribution_cfg": gaussian},
        "critic": dict(model),
        "obs_groups": {
            "actor": ["policy"],
            "critic": ["critic" if "critic" in groups else "policy"],
        },
        "num_steps_per_env": ppo.steps_per_env,
        "multi_gpu": None,
    }
    with contextlib.redirect_stdout(None):  # rsl_rl prints the networks
        algorithm = BootstrapPPO.construct_algorithm(
            env.get_observations(), env, cfg, str(env.device)
        )
    steps, observations, actions = ppo.steps_per_env, env.get_observations(), [env.num_actions]
    algorithm.storage = storage = Rollouts(
        "rl", env.num_envs, steps, observations, actions, str(env.device)
    )
    storage.models = algorithm.actor, algorithm.critic
    if ppo.mirror:
        try:
            storage.mirror = HalfMirror(unwrap(env.env))
        except ValueError as error:
            warnings.warn(f"mini-batches are not mirrored: {error}", stacklevel=2)
    return algorithm


def _noise(init_std: float, env: RslRlVecEnv) -> torch.Tensor:
    """Standard deviation of the first actions. Shape: (num_actions,)."""
    std, core = torch.full((env.num_actions,), init_std), unwrap(env.env)
    if kind_of(core.cfg).balances:
        legs = is_leg_joint(core.cfg.robot)
        driven = [legs[joint] for term in core.actions.terms.values() for joint in term.joints]
        std[~torch.tensor(driven)] *= ARMS
    return std


def _load_teacher(cfg: MimicPPOCfg | MimicDistillationCfg, core: CoreVectorEnv) -> Policy:
    teacher = load_policy(teacher_path(cfg), str(core.device))
    teacher.check(core, CRITIC_GROUPS)
    return teacher
