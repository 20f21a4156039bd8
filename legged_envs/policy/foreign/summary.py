"""Words about how a policy of another framework was read."""

from legged_envs.policy.policy import Policy


def print_foreign(policy: Policy) -> None:
    """Print how a policy of another framework was read: each term, and what was assumed.

    Nothing is printed for a policy of this package.
    """
    facts = policy.contract.get("foreign")
    if facts is None:
        return
    pairs = [f"{name} is {quantity}" for name, quantity in facts["terms"]]
    print(f"read {facts['file']} as {facts['framework']}: {', '.join(pairs)}")
    for sentence in facts["assumed"]:
        print(f"assumed: {sentence}")
