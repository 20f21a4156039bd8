"""The adapter for OmniSafe, imported from here: see ``adapters/omnisafe.py``."""

from legged_envs.wrappers.adapters.omnisafe import (
    LeggedCMDP as LeggedCMDP,
)
from legged_envs.wrappers.adapters.omnisafe import (
    episode_cost_limit as episode_cost_limit,
)
from legged_envs.wrappers.adapters.omnisafe import (
    make as make,
)
from legged_envs.wrappers.adapters.omnisafe import (
    register as register,
)
