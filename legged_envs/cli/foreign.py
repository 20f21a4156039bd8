"""Options of the verbs that take policies of other frameworks."""

from pathlib import Path

from legged_envs.policy.foreign import FOREIGN_ENDINGS


def is_foreign(policy: Path | None, contract: Path | None) -> bool:
    """Return True if the options name a policy of another framework.

    Args:
        policy: Value of `--policy`.
        contract: Value of `--contract`.
    """
    if contract is not None:
        return True
    return policy is not None and policy.suffix in FOREIGN_ENDINGS
