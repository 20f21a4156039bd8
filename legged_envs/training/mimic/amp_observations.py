"""Observation group by which an adversarial motion prior compares robots and motions."""

from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import observations


def amp_observations() -> ObservationGroupCfg:
    """Make the observation group, with the noise of a policy's observations."""
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
