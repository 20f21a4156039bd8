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
"""A march on the spot. Feet are in the order left, right."""

KNEE_UP = {"left": 0.8, "right": 0.3}
"""Phase of :data:`MARCH` at which a knee is highest."""


def g1_clips() -> list[Clip]:
    """Return the clips: stand, march in place, squat and wave."""
    stance = default_stance(G1_29)
    stand = Planted((Key(0.0, stance.base_height),), stance)
    return [
        Clip("stand", G1_29, 2.0, stand, loop=True, massive_axes=2),
        Clip(
            "march",
            G1_29,
            2 * MARCH.period,
            with_swinging_arms(Walk(MARCH, stance)),
            loop=True,
            massive_axes=3,
        ),
        Clip("squat", G1_29, 3.0, _squat(stance), loop=True, massive_axes=2),
        Clip("wave", G1_29, 4.5, _wave(stance), loop=True, massive_axes=2),
    ]


def with_swinging_arms(walk: Walk) -> Gesturing:
    """Return a walk in which each arm swings forward with the other side's knee.

    The elbow bends as the arm swings, and the chest turns a little with the arms.
    """
    # Forward and bent are negative angles, and a sine is lowest a quarter of a period before its
    # phase.
    left_arm = Swing(
        {"left_shoulder_pitch_joint": 0.4, "left_elbow_joint": 0.25, "waist_yaw_joint": 0.08},
        period=walk.gait.period,
        phase=KNEE_UP["right"] + 0.25,
    )
    right_arm = Swing(
        {"right_shoulder_pitch_joint": 0.4, "right_elbow_joint": 0.25},
        period=walk.gait.period,
        phase=KNEE_UP["left"] + 0.25,
    )
    return Gesturing(walk, G1_29, (left_arm, right_arm))


def _squat(stance: Stance) -> Gesturing:
    """Return a squat, with the arms stretched forward as a counterweight."""
    height = stance.base_height
    keys = (
        Key(0.25, height),
        Key(1.25, 0.55, pitch=0.35),
        Key(1.75, 0.55, pitch=0.35),
        Key(2.75, height),
    )
    arms = {
        "left_shoulder_pitch_joint": -2.0,
        "left_elbow_joint": 0.4,
        "right_shoulder_pitch_joint": -2.0,
        "right_elbow_joint": 0.4,
    }
    stretch = Reach(arms, start=0.25, arrive=1.25, leave=1.75, end=2.75)  # as the base moves
    return Gesturing(Planted(keys, stance), G1_29, (stretch,))


def _wave(stance: Stance) -> Gesturing:
    """Return a wave of the right forearm; the weight moves a little to the left."""
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
    gestures = (
        Reach(upper_arm, start=0.4, arrive=1.2, leave=3.3, end=4.1),
        Reach(forearm, start=0.2, arrive=0.9, leave=3.6, end=4.3),
        Swing(to_and_fro, period=0.7, during=(0.9, 3.6)),
    )
    return Gesturing(Planted(keys, stance), G1_29, gestures)
