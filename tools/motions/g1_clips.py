"""The motions of G1 with 29 joints that the package makes."""

from __future__ import annotations

from legged_envs.robots import G1_29
from tools.motions.choreography import Clip, Stance, default_stance
from tools.motions.gait import Gait, Walk
from tools.motions.gestures import Gesturing, Reach, Swing
from tools.motions.planted import Key, Planted

MARCH = Gait(
    period=1.0,
    duty=0.6,
    touchdown=(0.0, 0.5),
    swing_height=0.1,
    base_height=0.76,
    sway=True,
)
KNEE_UP = {"left": 0.8, "right": 0.3}
"""Phase of :data:`MARCH` at which a knee is highest."""


def g1_clips() -> list[Clip]:
    """Stand, march in place, squat and wave."""
    stance = default_stance(G1_29)
    stand = Planted((Key(0.0, stance.base_height),), stance)
    return [
        Clip("stand", G1_29, 2.0, stand, loop=True, massive_axes=2),
        Clip("march", G1_29, 2 * MARCH.period, _march(stance), loop=True, massive_axes=3),
        Clip("squat", G1_29, 3.0, _squat(stance), loop=True, massive_axes=2),
        Clip("wave", G1_29, 4.5, _wave(stance), loop=True, massive_axes=2),
    ]


def _march(stance: Stance) -> Gesturing:
    """Each arm swings forward, elbow bending, with the other side's knee; the chest turns a little with the arms."""
    period = MARCH.period
    # Forward and bent are negative angles, and a sine is lowest a quarter of a period before its phase.
    left, right = KNEE_UP["right"] + 0.25, KNEE_UP["left"] + 0.25
    return Gesturing(
        Walk(MARCH, stance),
        G1_29,
        (
            Swing(
                {
                    "left_shoulder_pitch_joint": 0.4,
                    "left_elbow_joint": 0.25,
                    "waist_yaw_joint": 0.08,
                },
                period,
                left,
            ),
            Swing({"right_shoulder_pitch_joint": 0.4, "right_elbow_joint": 0.25}, period, right),
        ),
    )


def _squat(stance: Stance) -> Gesturing:
    """Down and up again, arms stretched forward as a counterweight."""
    height = stance.base_height
    keys = (
        Key(0.25, height),
        Key(1.25, 0.55, pitch=0.35),
        Key(1.75, 0.55, pitch=0.35),
        Key(2.75, height),
    )
    stretch = {"shoulder_pitch": -2.0, "elbow": 0.4}
    arms = {
        f"{side}_{joint}_joint": way for side in ("left", "right") for joint, way in stretch.items()
    }
    return Gesturing(Planted(keys, stance), G1_29, (Reach(arms, *(key.time for key in keys)),))


def _wave(stance: Stance) -> Gesturing:
    """The right arm goes up and its forearm to and fro; the weight moves a little to the left."""
    height = stance.base_height
    keys = (
        Key(0.2, height),
        Key(1.2, height, left=0.015),
        Key(3.3, height, left=0.015),
        Key(4.3, height),
    )
    upper_arm = {
        "right_shoulder_pitch_joint": -0.4,
        "right_shoulder_roll_joint": -1.1,
        "waist_roll_joint": -0.05,
    }
    forearm = {
        "right_shoulder_yaw_joint": -1.45,
        "right_elbow_joint": -1.05,
        "right_wrist_roll_joint": 0.15,
    }
    to_and_fro = {
        "right_elbow_joint": 0.4,
        "right_shoulder_roll_joint": 0.06,
        "right_wrist_yaw_joint": 0.15,
    }
    return Gesturing(
        Planted(keys, stance),
        G1_29,
        (
            Reach(upper_arm, 0.4, 1.2, 3.3, 4.1),
            Reach(forearm, 0.2, 0.9, 3.6, 4.3),
            Swing(to_and_fro, 0.7, during=(0.9, 3.6)),
        ),
    )
