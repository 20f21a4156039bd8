"""The motions of Go2 that the package makes."""

from __future__ import annotations

from dataclasses import replace

from legged_envs.robots import GO2
from tools.motions.choreography import Clip, Stance, default_stance
from tools.motions.gait import Gait, Walk
from tools.motions.planted import Key, Planted

# Feet in the order FR, FL, RR, RL.
TROT = Gait(
    period=0.5,
    duty=0.5,
    touchdown=(0.0, 0.5, 0.5, 0.0),
    swing_height=0.06,
    base_height=0.31,
    velocity=(0.6, 0.0),
)
"""Diagonal feet stand in turn."""

PACE = Gait(
    period=0.4,
    duty=0.5,
    touchdown=(0.0, 0.5, 0.0, 0.5),
    swing_height=0.06,
    base_height=0.31,
    velocity=(0.5, 0.0),
    sway=True,
)
"""Left and right feet stand in turn."""

# The weight of half a period, 15.2 kg · g · 0.15 s, on feet 0.19 m in front of the centre of mass
# turns the body, of 0.50 kg·m² about its pitch axis, by 8.6 rad/s in each stance; a swing of
# ±0.22 rad in 0.3 s does that.
BOUND = Gait(
    period=0.3,
    duty=0.4,
    touchdown=(0.0, 0.0, 0.5, 0.5),
    swing_height=0.06,
    base_height=0.31,
    velocity=(0.7, 0.0),
    pitch=0.22,
)
"""Front and rear feet stand in turn."""

PRONK = Gait(
    period=0.5,
    duty=0.6,
    touchdown=(0.0, 0.0, 0.0, 0.0),
    swing_height=0.06,
    base_height=0.32,
    velocity=(0.4, 0.0),
    contacts=1,
)
"""All feet stand at the same time."""

TURN = replace(TROT, velocity=(0.0, 0.0), turning_rate=0.8)
"""A trot on the spot that turns to the left."""

SECONDS = 2.0
"""Shortest clip of a gait, s. A clip has whole strides."""


def go2_clips() -> list[Clip]:
    """Return the clips: stand, six gaits and getting up from sitting."""
    stance = default_stance(GO2)
    gaits = {
        "trot": TROT,
        "pace": PACE,
        "bound": BOUND,
        "pronk": PRONK,
        "turn_left": TURN,
        "turn_right": replace(TURN, turning_rate=-TURN.turning_rate),
    }
    clips = [_strides(name, gait, stance) for name, gait in gaits.items()]
    height = stance.base_height
    stand = Planted((Key(0.0, height),), stance)
    sit_to_stand = Planted((Key(0.5, 0.24, pitch=-0.5), Key(2.0, height)), stance)
    return [
        Clip("stand", GO2, SECONDS, stand, loop=True, massive_axes=2),
        *clips,
        Clip("sit_to_stand", GO2, 2.5, sit_to_stand, massive_axes=2),
    ]


def _strides(name: str, gait: Gait, stance: Stance) -> Clip:
    """Return the clip of a gait."""
    num_strides = -(-SECONDS // gait.period)  # rounded up
    duration = num_strides * gait.period
    return Clip(name, GO2, duration, Walk(gait, stance), loop=True, massive_axes=3)
