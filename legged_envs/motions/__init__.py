"""Reference motions for imitation tasks.

Clips are loaded from files, sampled at any time by a library, and played by each environment. A
sampler draws where episodes start in them. The motion of a human or of another robot is carried
over to a robot's joints.
"""

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.describe import describe_motion
from legged_envs.motions.files import (
    MotionFiles,
    load_amp_json,
    load_beyondmimic_npz,
    load_file,
    load_lafan1_csv,
    load_motions,
)
from legged_envs.motions.formats.own import load_motion, save_motion
from legged_envs.motions.humans import load_human
from legged_envs.motions.key_points import KeyPoints, key_points_of
from legged_envs.motions.kinematics import motion_from_coordinates
from legged_envs.motions.library import BodySample, MotionLibrary, MotionSample
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.motions.orders import G1_LEVEL_BY_LEVEL, G1_LIMB_BY_LIMB, known_orders
from legged_envs.motions.player import MotionPlayer
from legged_envs.motions.report import (
    MotionReport,
    foot_contacts,
    inspect_motion,
)
from legged_envs.motions.resampling import resample
from legged_envs.motions.retargeting import retarget
from legged_envs.motions.shipped import shipped_motions
from legged_envs.motions.starts import StartCfg, StartSampler
from legged_envs.motions.suspicions import MotionWarning, suspicions

__all__ = [
    "G1_LEVEL_BY_LEVEL",
    "G1_LIMB_BY_LIMB",
    "BodySample",
    "KeyPoints",
    "Motion",
    "MotionError",
    "MotionFiles",
    "MotionLibrary",
    "MotionPlayer",
    "MotionReading",
    "MotionReport",
    "MotionSample",
    "MotionWarning",
    "StartCfg",
    "StartSampler",
    "describe_motion",
    "foot_contacts",
    "inspect_motion",
    "key_points_of",
    "known_orders",
    "load_amp_json",
    "load_beyondmimic_npz",
    "load_file",
    "load_human",
    "load_lafan1_csv",
    "load_motion",
    "load_motions",
    "motion_from_coordinates",
    "resample",
    "retarget",
    "save_motion",
    "shipped_motions",
    "suspicions",
]
