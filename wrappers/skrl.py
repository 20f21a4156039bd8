"""The adapter for skrl, imported from here: see ``adapters/skrl.py``."""

from legged_envs.wrappers.adapters.skrl import (
    BootstrapIPPO as BootstrapIPPO,
)
from legged_envs.wrappers.adapters.skrl import (
    BootstrapMAPPO as BootstrapMAPPO,
)
from legged_envs.wrappers.adapters.skrl import (
    BootstrapPPO as BootstrapPPO,
)
from legged_envs.wrappers.adapters.skrl import (
    BootstrapRunner as BootstrapRunner,
)
from legged_envs.wrappers.adapters.skrl import (
    FinalObservations as FinalObservations,
)
from legged_envs.wrappers.adapters.skrl import (
    SkrlMultiAgentEnv as SkrlMultiAgentEnv,
)
from legged_envs.wrappers.adapters.skrl import (
    SkrlVecEnv as SkrlVecEnv,
)
