"""The motions of G1 that the package makes: those of the legs.

Waving needs arms. A robot description with shoulder and elbow joints makes it with a choreography like
:class:`Planted` whose plan moves ``joint_pos`` of those joints: :class:`FootIK` leaves every joint that moves no foot
as the plan has it.
"""

from __future__ import annotations

from legged_envs.motions.choreography import Clip, default_stance
from legged_envs.motions.gait import Gait, Walk
from legged_envs.motions.planted import Key, Planted
from legged_envs.robots import G1

MARCH = Gait(
    period=1.0,
    duty=0.6,
    touchdown=(0.0, 0.5),
    swing_height=0.1,
    base_height=0.76,
    sway=True,
)


def g1_clips() -> list[Clip]:
    """Stand, march in place and squat."""
    stance = default_stance(G1)
    height = stance.base_height
    stand = Planted((Key(0.0, height),), stance)
    squat = Planted(
        (Key(0.25, height), Key(1.25, 0.55, pitch=0.35), Key(1.75, 0.55, pitch=0.35), Key(2.75, height)), stance
    )
    return [
        Clip("stand", G1, 2.0, stand, loop=True, massive_axes=2),
        Clip("march", G1, 2 * MARCH.period, Walk(MARCH, stance), loop=True, massive_axes=3),
        Clip("squat", G1, 3.0, squat, loop=True, massive_axes=2),
    ]
