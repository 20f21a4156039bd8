"""Reference motions: load, sample and play them.

:class:`Motion` is one clip in memory. :class:`MotionLibrary` puts clips of one robot on a device and samples them at
arbitrary times; :class:`StartSampler` draws where episodes start, :class:`MotionPlayer` keeps clip and time per
environment. :func:`shipped_motions` are the clips that come with the package.
"""

from legged_envs.motions.files import MotionFiles as MotionFiles
from legged_envs.motions.files import load_beyondmimic_npz as load_beyondmimic_npz
from legged_envs.motions.files import load_motion as load_motion
from legged_envs.motions.files import save_motion as save_motion
from legged_envs.motions.kinematics import motion_from_coordinates as motion_from_coordinates
from legged_envs.motions.library import BodySample as BodySample
from legged_envs.motions.library import MotionLibrary as MotionLibrary
from legged_envs.motions.library import MotionPlayer as MotionPlayer
from legged_envs.motions.library import MotionSample as MotionSample
from legged_envs.motions.library import resample as resample
from legged_envs.motions.motion import Motion as Motion
from legged_envs.motions.motion import MotionError as MotionError
from legged_envs.motions.report import MotionReport as MotionReport
from legged_envs.motions.report import foot_contacts as foot_contacts
from legged_envs.motions.report import inspect_motion as inspect_motion
from legged_envs.motions.shipped import shipped_motions as shipped_motions
from legged_envs.motions.starts import StartCfg as StartCfg
from legged_envs.motions.starts import StartSampler as StartSampler
from legged_envs.motions.text import G1_LEVEL_BY_LEVEL as G1_LEVEL_BY_LEVEL
from legged_envs.motions.text import G1_LIMB_BY_LIMB as G1_LIMB_BY_LIMB
from legged_envs.motions.text import load_amp_json as load_amp_json
from legged_envs.motions.text import load_lafan1_csv as load_lafan1_csv
