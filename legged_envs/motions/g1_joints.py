"""Joint orders of G1 with 29 joints in other projects' motion files."""

from __future__ import annotations

_LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_WAIST = ("waist_yaw", "waist_roll", "waist_pitch")
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
_SIDES = ("left", "right")

G1_LIMB_BY_LIMB = (
    *(f"{side}_{joint}_joint" for side in _SIDES for joint in _LEG),
    *(f"{joint}_joint" for joint in _WAIST),
    *(f"{side}_{joint}_joint" for side in _SIDES for joint in _ARM),
)
"""Depth first, as in MJCF and URDF: Unitree's LAFAN1 retargeting and mjlab."""

G1_LEVEL_BY_LEVEL = (
    *(
        name
        for leg, waist in zip(_LEG[:3], _WAIST, strict=True)
        for name in (f"left_{leg}_joint", f"right_{leg}_joint", f"{waist}_joint")
    ),
    *(f"{side}_knee_joint" for side in _SIDES),
    *(f"{side}_shoulder_pitch_joint" for side in _SIDES),
    *(f"{side}_ankle_pitch_joint" for side in _SIDES),
    *(f"{side}_shoulder_roll_joint" for side in _SIDES),
    *(f"{side}_ankle_roll_joint" for side in _SIDES),
    *(f"{side}_{joint}_joint" for joint in _ARM[2:] for side in _SIDES),
)
"""Breadth first, as PhysX numbers them: Isaac Lab and the BeyondMimic files made with it."""
