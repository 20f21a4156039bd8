"""Construction of the learning algorithm of a training from its options and the environment."""

import contextlib
import warnings
from typing import Any

import torch

from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.evaluation.metrics.mimic import motion_of
from legged_envs.policy.policy import Policy, load_policy
from legged_envs.robots.reading.kinematics import is_leg_joint
from legged_envs.tasks.mimic import CRITIC_GROUPS
from legged_envs.training.mimic.algorithm import MimicDistillation
from legged_envs.training.mimic.ppo import MimicPPO
from legged_envs.training.mimic.style_prior import ExpertTransitions
from legged_envs.training.mimic_options import MimicDistillationCfg, MimicPPOCfg, teacher_path
from legged_envs.training.options import AlgorithmCfg, PPOCfg
from legged_envs.training.ppo import HalfMirror, Model, Rollouts
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

Algorithm = BootstrapPPO | MimicPPO | MimicDistillation
"""An algorithm that learns from rollouts, with rsl_rl's interface.

In a rollout, ``act`` is called before each step of the environment and ``process_env_step`` after
it. ``compute_returns`` and ``update`` follow the rollout.
"""


def make_algorithm(cfg: AlgorithmCfg, env: RslRlVecEnv, upper_body_noise: float = 1.0) -> Algorithm:
    """Make the algorithm that ``cfg`` configures, with newly initialised networks.

    Args:
        cfg: Options of the algorithm. Task defaults already replace its None fields.
        env: The training environment.
        upper_body_noise: Factor on ``PPOCfg.init_std`` for the actions of joints outside the legs.
            1 gives all joints the same noise. Only PPO uses it.

    Raises:
        FileNotFoundError: If the file of the teacher is missing.
        ValueError: If the observations or actions of the teacher differ from the environment's.
    """
    if isinstance(cfg, PPOCfg):
        return _make_ppo(cfg, env, upper_body_noise)
    if isinstance(cfg, MimicDistillationCfg):
        return _make_distillation(cfg, env)
    return _make_mimic_ppo(cfg, env)


def _make_distillation(cfg: MimicDistillationCfg, env: RslRlVecEnv) -> MimicDistillation:
    """Make the student of a motion-mimic task, and load its teacher."""
    core = unwrap(env.env)
    return MimicDistillation(
        env.get_observations(),
        env.num_actions,
        len(motion_of(core).cfg.window),
        cfg,
        teacher=_load_teacher(cfg, core),
    )


def _make_mimic_ppo(cfg: MimicPPOCfg, env: RslRlVecEnv) -> MimicPPO:
    """Make motion-mimic PPO, with the teacher and the style prior that ``cfg`` switches on."""
    core = unwrap(env.env)
    motion = motion_of(core)
    observations = env.get_observations()
    teacher = None
    if cfg.dagger.coefficient:
        # DAgger: a trained policy labels each visited state with its action.
        teacher = _load_teacher(cfg, core)
    expert = None
    if cfg.amp.amp_reward_weight:
        # AMP: a discriminator compares states of the robots with states of the clips. The clips
        # are observed through the same group, so that both have the same layout.
        amp_group = core.cfg.observations[cfg.amp.group]
        transitions = ExpertTransitions(motion.player.library, amp_group, core.step_dt)
        expert = transitions.sample
    return MimicPPO(
        observations,
        env.num_actions,
        len(motion.cfg.window),
        cfg,
        cost_names=core.cost_names,
        cost_limits=core.cost_limits,
        teacher=teacher,
        expert=expert,
    )


def _load_teacher(cfg: MimicPPOCfg | MimicDistillationCfg, core: CoreVectorEnv) -> Policy:
    teacher = load_policy(teacher_path(cfg), str(core.device))
    # Teachers see the privileged groups of the critic, which the student does not see.
    teacher.check(core, CRITIC_GROUPS)
    return teacher


def _make_ppo(ppo: PPOCfg, env: RslRlVecEnv, upper_body_noise: float) -> BootstrapPPO:
    assert ppo.init_std is not None, "prepare() completes the options with the task's defaults"
    core = unwrap(env.env)
    std = _initial_std(core, env.num_actions, ppo.init_std, upper_body_noise)
    cfg = _rsl_rl_cfg(ppo, core, std)
    with contextlib.redirect_stdout(None):  # rsl_rl prints the networks
        algorithm = BootstrapPPO.construct_algorithm(
            env.get_observations(), env, cfg, str(env.device)
        )
    # rsl_rl has made its own storage by now. Ours makes the mini-batches of an update only once.
    storage = Rollouts(
        "rl",
        env.num_envs,
        ppo.steps_per_env,
        env.get_observations(),
        [env.num_actions],
        str(env.device),
    )
    storage.models = (algorithm.actor, algorithm.critic)
    if ppo.mirror:
        try:
            storage.mirror = HalfMirror(core)
        except ValueError as error:
            # Mirroring only makes learning faster: a task that cannot be mirrored learns without.
            warnings.warn(f"mini-batches are not mirrored: {error}", stacklevel=2)
    algorithm.storage = storage
    return algorithm


def _rsl_rl_cfg(ppo: PPOCfg, core: CoreVectorEnv, init_std: torch.Tensor) -> dict[str, Any]:
    """Return the configuration from which rsl_rl makes PPO and its networks."""
    assert ppo.hidden is not None, "prepare() completes the options with the task's defaults"
    model = {
        "class_name": Model,
        "hidden_dims": list(ppo.hidden),
        "activation": ppo.activation,
        "obs_normalization": True,
    }
    gaussian = {
        "class_name": "rsl_rl.modules.distribution:GaussianDistribution",
        "init_std": init_std,
    }
    # A task without privileged observations shows the critic what the actor sees.
    critic_group = "critic" if "critic" in core.group_sizes else "policy"
    return {
        "algorithm": {
            "class_name": BootstrapPPO,
            "num_learning_epochs": ppo.epochs,
            "num_mini_batches": ppo.mini_batches,
            "learning_rate": ppo.learning_rate,
            # The trainer moves the learning rate.
            "schedule": "fixed",
            "max_grad_norm": ppo.max_grad_norm,
            "gamma": ppo.gamma,
            "lam": ppo.gae_lambda,
            "clip_param": ppo.clip,
            "entropy_coef": ppo.entropy,
            "value_loss_coef": ppo.value_loss,
        },
        "actor": {**model, "distribution_cfg": gaussian},
        "critic": dict(model),
        "obs_groups": {"actor": ["policy"], "critic": [critic_group]},
        "num_steps_per_env": ppo.steps_per_env,
        "multi_gpu": None,
    }


def _initial_std(
    core: CoreVectorEnv, num_actions: int, init_std: float, upper_body_noise: float
) -> torch.Tensor:
    """Return the initial standard deviation of each action. Shape: (num_actions,)."""
    std = torch.full((num_actions,), init_std)
    if upper_body_noise == 1.0:
        return std
    is_leg = is_leg_joint(core.cfg.robot)
    moves_leg = []
    for term in core.actions.terms.values():
        for joint in term.joints:
            moves_leg.append(is_leg[joint])
    # Actions are in the order of the action terms, not in that of the robot's joints.
    std[~torch.tensor(moves_leg)] *= upper_body_noise
    return std
