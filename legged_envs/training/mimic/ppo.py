"""Motion-mimic PPO: an actor that reads reference frames, and the parts that options switch on."""

from collections.abc import Sequence

from tensordict import TensorDict

from legged_envs.tasks.mimic import ACTOR_GROUPS, CRITIC_GROUPS
from legged_envs.training.learner.dagger import Dagger
from legged_envs.training.learner.inputs import Inputs
from legged_envs.training.learner.part import Part, Teacher
from legged_envs.training.learner.parts import make_bonuses, make_cost_part
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.learner.settings import settings_of
from legged_envs.training.learner.style_prior import Expert
from legged_envs.training.mimic.networks import MimicNetwork, MimicPolicy
from legged_envs.training.mimic_options import MimicPPOCfg

Groups = tuple[str, str, str]
"""Names of the observation groups that a network reads: observation, reference window and mask."""


def make_mimic_ppo(
    observation: TensorDict,
    num_actions: int,
    frames: int,
    cfg: MimicPPOCfg,
    *,
    cost_names: Sequence[str] = (),
    cost_limits: Sequence[float] = (),
    teacher: Teacher | None = None,
    expert: Expert | None = None,
) -> PPO:
    """Make motion-mimic PPO.

    Options add constraints on costs (``cfg.constraint``, ``cfg.lagrange``), imitation of a teacher
    (``cfg.dagger``) and reward bonuses (``cfg.amp``, ``cfg.rnd``). With bonuses the reward is
    task_reward_weight · r + amp_reward_weight · style + novelty, and novelty includes the weight of
    ``cfg.rnd``.

    Args:
        observation: Example observation of all environments, on the device to learn on. Its groups
            are described in :mod:`legged_envs.training.mimic`.
        num_actions: Number of actions of a robot.
        frames: Number of future frames in a reference window.
        cfg: Options of the algorithm.
        cost_names: Names of the cost terms. Required for constraints on costs.
        cost_limits: Limit of each cost term: its largest mean per control step. Required for
            constraints on costs.
        teacher: Policy that labels visited states with actions. Required for ``cfg.dagger``.
        expert: Function that draws transitions from the clips. Required for ``cfg.amp``.

    Raises:
        ValueError: If a required argument is missing or does not suit the others.
    """
    actor_groups = CRITIC_GROUPS if cfg.privileged_actor else ACTOR_GROUPS
    actor_inputs = mimic_inputs(observation, actor_groups, frames)
    critic_inputs = mimic_inputs(observation, CRITIC_GROUPS, frames)
    # The order of the networks must not change: their random weights depend on it.
    actor = MimicPolicy(_sizes(actor_inputs), frames, num_actions, cfg)
    critic = MimicNetwork(_sizes(critic_inputs), frames, 1, cfg)
    constraints = make_cost_part(
        cfg,
        cost_names,
        cost_limits,
        discount=cfg.gamma * cfg.gae_lambda,
        num_envs=observation.batch_size[0],
        device=observation[ACTOR_GROUPS[0]].device,
        with_reference=True,
    )
    cost_critic = None
    if constraints is not None and constraints.num_costs:
        cost_critic = MimicNetwork(_sizes(critic_inputs), frames, constraints.num_costs, cfg)
    parts: list[Part] = []
    if cfg.dagger.coefficient:
        if teacher is None:
            raise ValueError(
                f"dagger.coefficient = {cfg.dagger.coefficient} needs a teacher, got None"
            )
        decay = cfg.dagger.decay_iterations
        parts.append(Dagger(teacher, critic_inputs, cfg.dagger.coefficient, decay))
    parts += make_bonuses(observation, cfg.steps_per_env, cfg.activation, cfg.amp, cfg.rnd, expert)
    return PPO(
        observation,
        actor,
        critic,
        actor_inputs,
        critic_inputs,
        settings_of(cfg, cfg.gamma, cfg.entropy, clip_value=False),
        parts=parts,
        constraints=constraints,
        cost_critic=cost_critic,
    )


def mimic_inputs(observation: TensorDict, groups: Groups, frames: int) -> Inputs:
    """Return the names and sizes of the inputs of a network that imitates motions.

    Args:
        observation: An observation of the environments. Only its sizes are used.
        groups: Names of the observation groups with the observation of the robot, the window of
            reference frames and the mask, in this order.
        frames: Number of frames in a window.

    Raises:
        ValueError: If a group is missing, or the size of the window is not a multiple of
            ``frames``.
    """
    name, window, mask = groups
    found = Inputs.of(observation, (name,), (window, mask))
    if frames < 1 or found.reference_size % frames:
        raise ValueError(
            f"frames must divide the {found.reference_size} numbers of {window!r} evenly, "
            f"got {frames}"
        )
    return found


def _sizes(inputs: Inputs) -> tuple[int, int]:
    """Return the sizes of observation and reference window."""
    return sum(inputs.sizes), inputs.reference_size
