"""Joint orders of G1 with 29 joints in other projects' motion files."""

from __future__ import annotations

from legged_envs.robots import G1_29

G1_LIMB_BY_LIMB = G1_29.joint_names
"""Depth first, as in MJCF and URDF: Unitree's SDK, its LAFAN1 retargeting, mjlab and this package."""

_OUTWARDS = (
    *("*_hip_pitch", "waist_yaw", "*_hip_roll", "waist_roll", "*_hip_yaw", "waist_pitch"),
    *("*_knee", "*_shoulder_pitch", "*_ankle_pitch", "*_shoulder_roll", "*_ankle_roll"),
    *("*_shoulder_yaw", "*_elbow", "*_wrist_roll", "*_wrist_pitch", "*_wrist_yaw"),
)
"""The joints from the base outwards; ``*`` is left, then right."""

G1_LEVEL_BY_LEVEL = tuple(
    f"{joint}_joint".replace("*", side)
    for joint in _OUTWARDS
    for side in (("left", "right") if "*" in joint else ("",))
)
"""Breadth first, as PhysX numbers them: Isaac Lab and the BeyondMimic files made with it."""
