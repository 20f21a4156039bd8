"""Joint orders of G1 with 29 joints in other projects' motion files."""

from __future__ import annotations

from legged_envs.robots import G1_29

_SIDES = ("left", "right")

G1_LIMB_BY_LIMB = G1_29.joint_names
"""Depth first, as in MJCF and URDF: Unitree's SDK, its LAFAN1 retargeting, mjlab and this package."""

G1_LEVEL_BY_LEVEL = tuple(
    f"{joint}_joint"
    for joint in (
        *("left_hip_pitch", "right_hip_pitch", "waist_yaw"),
        *("left_hip_roll", "right_hip_roll", "waist_roll"),
        *("left_hip_yaw", "right_hip_yaw", "waist_pitch"),
        *(f"{side}_knee" for side in _SIDES),
        *(f"{side}_shoulder_pitch" for side in _SIDES),
        *(f"{side}_ankle_pitch" for side in _SIDES),
        *(f"{side}_shoulder_roll" for side in _SIDES),
        *(f"{side}_ankle_roll" for side in _SIDES),
        *(
            f"{side}_{joint}"
            for joint in ("shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
            for side in _SIDES
        ),
    )
)
"""Breadth first, as PhysX numbers them: Isaac Lab and the BeyondMimic files made with it."""
