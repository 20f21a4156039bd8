"""Observation group that the discriminator of an adversarial motion prior sees."""

from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import observations


def amp_observations() -> ObservationGroupCfg:
    """Make the group of states that an adversarial motion prior compares: robots with clips.

    It has gravity direction, angular velocity, joint positions and joint velocities, with the same
    noise as the observations of a policy.
    """
    # With noise on robots and clips, the discriminator cannot rely on tiny differences.
    terms = {
        "gravity": ObservationTermCfg(observations.projected_gravity, noise=0.05, mirror="vector"),
        "ang_vel": ObservationTermCfg(
            observations.base_ang_vel, noise=0.2, scale=0.25, mirror="pseudovector"
        ),
        "joint_pos": ObservationTermCfg(observations.joint_pos, noise=0.01, mirror="joint"),
        "joint_vel": ObservationTermCfg(
            observations.joint_vel, noise=0.5, scale=0.05, mirror="joint"
        ),
    }
    return ObservationGroupCfg(terms, noisy=True)
