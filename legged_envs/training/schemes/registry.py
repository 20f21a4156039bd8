"""Class of each training scheme, by the class of its options."""

from legged_envs.training.scheme_options import (
    CTSCfg,
    DreamWaQCfg,
    EECfg,
    HIMCfg,
    SchemeCfg,
    TSCfg,
)
from legged_envs.training.schemes.cts import ConcurrentTeacherStudent
from legged_envs.training.schemes.dreamwaq import DreamWaQ
from legged_envs.training.schemes.ee import ExplicitEstimator
from legged_envs.training.schemes.him import HybridInternalModel
from legged_envs.training.schemes.scheme import Scheme
from legged_envs.training.schemes.ts import TeacherStudent

SCHEMES: dict[type[SchemeCfg], type[Scheme]] = {
    TSCfg: TeacherStudent,
    CTSCfg: ConcurrentTeacherStudent,
    EECfg: ExplicitEstimator,
    DreamWaQCfg: DreamWaQ,
    HIMCfg: HybridInternalModel,
}
"""Class of a scheme, by the class of its options."""
