"""Reference motions for imitation tasks.

Clips are loaded from files, sampled at any time by a library, and played by each environment. A
sampler draws where episodes start in them.
"""

from legged_envs.motions.files import MotionFiles, load_beyondmimic_npz, load_motion, save_motion
from legged_envs.motions.kinematics import motion_from_coordinates
from legged_envs.motions.library import BodySample, MotionLibrary, MotionSample
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.motions.player import MotionPlayer
from legged_envs.motions.report import MotionReport, foot_contacts, inspect_motion
from legged_envs.motions.resampling import resample
from legged_envs.motions.shipped import shipped_motions
from legged_envs.motions.starts import StartCfg, StartSampler
from legged_envs.motions.text import (
    G1_LEVEL_BY_LEVEL,
    G1_LIMB_BY_LIMB,
    load_amp_json,
    load_lafan1_csv,
)

__all__ = [
    "G1_LEVEL_BY_LEVEL",
    "G1_LIMB_BY_LIMB",
    "BodySample",
    "Motion",
    "MotionError",
    "MotionFiles",
    "MotionLibrary",
    "MotionPlayer",
    "MotionReport",
    "MotionSample",
    "StartCfg",
    "StartSampler",
    "foot_contacts",
    "inspect_motion",
    "load_amp_json",
    "load_beyondmimic_npz",
    "load_lafan1_csv",
    "load_motion",
    "motion_from_coordinates",
    "resample",
    "save_motion",
    "shipped_motions",
]
