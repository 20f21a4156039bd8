"""Construction of the learning algorithm of a training from its options and the environment."""

import contextlib
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from tensordict import TensorDict

from legged_envs.envs import CoreVectorEnv, unwrap
from legged_envs.evaluation.metrics.mimic import motion_of
from legged_envs.motions import Motion, MotionLibrary, shipped_motions
from legged_envs.policy.policy import Policy, load_policy
from legged_envs.robots import RobotCfg
from legged_envs.robots.reading.kinematics import is_leg_joint
from legged_envs.tasks.mimic import ACTOR_GROUPS, CRITIC_GROUPS
from legged_envs.training.learner.distillation import Distillation
from legged_envs.training.learner.inputs import Inputs
from legged_envs.training.learner.mirror import MirroredHalf, mirror_of
from legged_envs.training.learner.networks import Actor, make_network
from legged_envs.training.learner.part import Part
from legged_envs.training.learner.parts import make_bonuses, make_cost_part
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.learner.settings import settings_of
from legged_envs.training.learner.style_prior import Expert, ExpertTransitions
from legged_envs.training.learner.symmetry import image_of, make_symmetric
from legged_envs.training.learner_options import AmpCfg
from legged_envs.training.mimic.networks import MimicPolicy
from legged_envs.training.mimic.ppo import make_mimic_ppo, mimic_inputs
from legged_envs.training.mimic_options import MimicDistillationCfg, MimicPPOCfg, teacher_path
from legged_envs.training.options import AlgorithmCfg, PPOCfg
from legged_envs.training.scheme_options import LSTMCfg, SchemeCfg
from legged_envs.training.schemes.lstm import RecurrentPPO
from legged_envs.training.schemes.recurrent import MemoryActor
from legged_envs.training.schemes.registry import SCHEMES
from legged_envs.training.schemes.scheme import MirrorOf
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

Algorithm = PPO | Distillation | BootstrapPPO
"""An algorithm that learns from rollouts, with rsl_rl's interface.

In a rollout, ``act`` is called before each step of the environment and ``process_env_step`` after
it. ``compute_returns`` and ``update`` follow the rollout.
"""


def make_algorithm(
    cfg: AlgorithmCfg,
    env: RslRlVecEnv,
    upper_body_noise: float = 1.0,
    learner: str = "legged_envs",
    style: Callable[[RobotCfg], Sequence[Motion]] = shipped_motions,
) -> Algorithm:
    """Make the algorithm that ``cfg`` configures, with newly initialized networks.

    Args:
        cfg: Options of the algorithm. Task defaults already replace its None fields.
        env: The training environment.
        upper_body_noise: Factor on ``PPOCfg.init_std`` for the actions of joints outside the legs.
            1 gives all joints the same noise. Only PPO uses it.
        learner: Implementation of PPO without motions: ``"legged_envs"`` or ``"rsl_rl"``.
        style: Function that loads the clips for the style reward ``PPOCfg.amp``.

    Raises:
        FileNotFoundError: If the file of the teacher is missing.
        TypeError: If the task has no managers.
        ValueError: If the observations or actions of the teacher differ from the environment's.
    """
    core = unwrap(env.env)
    if not core.has_managers:
        raise TypeError(
            f"the task {type(core.task).__name__} has no managers, from which the metadata of a "
            "policy are made: train it with another library, such as Stable-Baselines3 or rsl_rl"
        )
    if isinstance(cfg, PPOCfg):
        if learner == "rsl_rl":
            return _make_rsl_rl_ppo(cfg, env, upper_body_noise)
        return _make_ppo(cfg, env, upper_body_noise, style)
    if isinstance(cfg, MimicDistillationCfg):
        return _make_distillation(cfg, env)
    return _make_mimic_ppo(cfg, env)


def _make_distillation(cfg: MimicDistillationCfg, env: RslRlVecEnv) -> Distillation:
    """Make the student of a motion-mimic task, and load its teacher."""
    core = unwrap(env.env)
    observation = env.get_observations()
    frames = len(motion_of(core).cfg.window)
    student = mimic_inputs(observation, ACTOR_GROUPS, frames)
    sizes = (sum(student.sizes), student.reference_size)
    return Distillation(
        observation,
        MimicPolicy(sizes, frames, env.num_actions, cfg),
        student,
        mimic_inputs(observation, CRITIC_GROUPS, frames),
        cfg,
        teacher=_load_teacher(cfg, core),
    )


def _make_mimic_ppo(cfg: MimicPPOCfg, env: RslRlVecEnv) -> PPO:
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
        # AMP: a discriminator compares states of the robots with states of the clips.
        expert = _make_expert(cfg.amp, core, motion.player.library)
    return make_mimic_ppo(
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


def _make_ppo(
    ppo: PPOCfg,
    env: RslRlVecEnv,
    upper_body_noise: float,
    style: Callable[[RobotCfg], Sequence[Motion]],
) -> PPO:
    """Make PPO for a task that has no reference motions: actor, critics and parts.

    The options decide about the parts: mirrored mini-batches, constraints, a scheme and bonuses.
    """
    assert ppo.init_std is not None and ppo.hidden is not None, "prepare() completes the options"
    core = unwrap(env.env)
    observation = env.get_observations()
    has_memory = isinstance(ppo, LSTMCfg)
    groups = SCHEMES[type(ppo)].groups if isinstance(ppo, SchemeCfg) else ("policy",)
    actor_inputs = Inputs.of(observation, groups)
    # A task without privileged observations shows the critic what the actor sees.
    critic_group = "critic" if "critic" in core.group_sizes else "policy"
    critic_inputs = Inputs.of(observation, (critic_group,))
    std = _initial_std(core, env.num_actions, ppo.init_std, upper_body_noise)
    mirror = None
    # The state of a memory cannot be mirrored.
    if ppo.symmetry != "off" and not has_memory:
        mirror = _mirrored_half(core, actor_inputs, critic_inputs)
        if mirror is None:
            # The task has no mirror image. Checkpoints hold these options, and a later run that
            # starts from one reads whether its networks are symmetric.
            ppo.symmetry = "off"
    parts: list[Part] = []
    if mirror is not None and ppo.symmetry == "batches":
        parts.append(mirror)
    actor, own_parts = _make_actor(
        ppo, observation, std, partial(mirror_of, core) if parts else None
    )
    parts += own_parts
    critic = make_network(sum(critic_inputs.sizes), 1, ppo.hidden, ppo.activation)
    assert ppo.gamma is not None and ppo.entropy is not None, "prepare() completes the options"
    constraints = make_cost_part(
        ppo,
        core.cost_names,
        core.cost_limits,
        discount=ppo.gamma * ppo.gae_lambda,
        num_envs=env.num_envs,
        device=core.device,
        with_reference=False,
    )
    cost_critic = None
    if constraints is not None and constraints.num_costs:
        num_costs = constraints.num_costs
        cost_critic = make_network(sum(critic_inputs.sizes), num_costs, ppo.hidden, ppo.activation)
    if mirror is not None and ppo.symmetry == "networks":
        make_symmetric(actor, image_of(mirror.actor), image_of(mirror.action))
        for values in (critic, cost_critic):
            if values is not None:
                make_symmetric(values, image_of(mirror.critic))
    expert = _make_style(ppo.amp, core, style)
    parts += make_bonuses(observation, ppo.steps_per_env, ppo.activation, ppo.amp, ppo.rnd, expert)
    algorithm = RecurrentPPO if has_memory else PPO
    return algorithm(
        observation,
        actor,
        critic,
        actor_inputs,
        critic_inputs,
        settings_of(ppo, ppo.gamma, ppo.entropy, clip_value=True),
        policy_groups=("policy",),
        parts=parts,
        constraints=constraints,
        cost_critic=cost_critic,
    )


def _make_actor(
    ppo: PPOCfg, observation: TensorDict, init_std: torch.Tensor, mirror_of: MirrorOf | None
) -> tuple[Any, list[Part]]:
    """Make the policy of plain PPO, of a scheme or with a memory, and the part that trains it."""
    assert ppo.hidden is not None, "prepare() completes the options"
    if isinstance(ppo, SchemeCfg):
        scheme = SCHEMES[type(ppo)](ppo, observation, init_std, mirror_of)
        return scheme.actor, [scheme]
    num_envs, size = observation["policy"].shape
    if isinstance(ppo, LSTMCfg):
        return MemoryActor(ppo, size, init_std, num_envs), []
    return Actor(size, init_std, ppo.hidden, ppo.activation), []


def _mirrored_half(core: CoreVectorEnv, actor: Inputs, critic: Inputs) -> MirroredHalf | None:
    """Return the part that mirrors mini-batches.

    None, with a warning, if the task has no mirror image or a wrapper changes the size of its
    observations.
    """
    try:
        mirrored = MirroredHalf(core, actor.groups, critic.groups)
        for inputs, mirror in ((actor, mirrored.actor), (critic, mirrored.critic)):
            if sum(inputs.sizes) != len(mirror.index):
                raise ValueError(
                    f"a wrapper changes the {len(mirror.index)} elements of {inputs.names} to "
                    f"{sum(inputs.sizes)}"
                )
        return mirrored
    except ValueError as error:
        # Mirroring only makes learning faster: a task that cannot be mirrored learns without.
        warnings.warn(f"left and right are not treated equally: {error}", stacklevel=2)
        return None


def _make_style(
    amp: AmpCfg, core: CoreVectorEnv, style: Callable[[RobotCfg], Sequence[Motion]]
) -> Expert | None:
    """Return the function that draws transitions of the clips, or None without a style reward."""
    if not amp.amp_reward_weight:
        return None
    robot = core.cfg.robot
    return _make_expert(amp, core, MotionLibrary(style(robot), robot, core.device))


def _make_expert(amp: AmpCfg, core: CoreVectorEnv, library: MotionLibrary) -> Expert:
    """Return the function that draws transitions of the clips, as the task observes them."""
    # The clips are observed through the same group, so that both have the same layout.
    group = core.cfg.observations[amp.group]
    return ExpertTransitions(library, group, core.step_dt).sample


def _make_rsl_rl_ppo(ppo: PPOCfg, env: RslRlVecEnv, upper_body_noise: float) -> BootstrapPPO:
    """Make rsl_rl's PPO, for comparison with the PPO of this package."""
    assert ppo.init_std is not None, "prepare() completes the options with the task's defaults"
    core = unwrap(env.env)
    std = _initial_std(core, env.num_actions, ppo.init_std, upper_body_noise)
    cfg = _rsl_rl_cfg(ppo, core, std)
    with contextlib.redirect_stdout(None):  # rsl_rl prints the networks
        return BootstrapPPO.construct_algorithm(env.get_observations(), env, cfg, str(env.device))


def _rsl_rl_cfg(ppo: PPOCfg, core: CoreVectorEnv, init_std: torch.Tensor) -> dict[str, Any]:
    """Return the configuration from which rsl_rl makes PPO and its networks."""
    assert ppo.hidden is not None, "prepare() completes the options with the task's defaults"
    model = {
        "class_name": "rsl_rl.models:MLPModel",
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
    # Actions are in the order of the action terms, not in the order of the robot's joints.
    std[~torch.tensor(moves_leg)] *= upper_body_noise
    return std
