"""Reference motions: clips, a library that samples those of a robot, where episodes start, clip and time of each."""

from legged_envs.motions.files import MotionFiles, load_beyondmimic_npz, load_motion, save_motion
from legged_envs.motions.kinematics import motion_from_coordinates
from legged_envs.motions.library import (
    BodySample,
    MotionLibrary,
    MotionPlayer,
    MotionSample,
    resample,
)
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.motions.report import MotionReport, foot_contacts, inspect_motion
from legged_envs.motions.shipped import shipped_motions
from legged_envs.motions.starts import StartCfg, StartSampler
from legged_envs.motions.text import (
    G1_LEVEL_BY_LEVEL,
    G1_LIMB_BY_LIMB,
    load_amp_json,
    load_lafan1_csv,
)

__all__ = [
    "Motion",
    "MotionError",
    "MotionFiles",
    "MotionLibrary",
    "MotionPlayer",
    "MotionReport",
    "MotionSample",
]
__all__ += [
    "BodySample",
    "StartCfg",
    "StartSampler",
    "foot_contacts",
    "inspect_motion",
    "motion_from_coordinates",
]
__all__ += [
    "load_amp_json",
    "load_beyondmimic_npz",
    "load_lafan1_csv",
    "load_motion",
    "save_motion",
    "shipped_motions",
]
__all__ += ["G1_LEVEL_BY_LEVEL", "G1_LIMB_BY_LIMB", "resample"]
