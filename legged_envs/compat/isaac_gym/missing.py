"""The error for names of Isaac Gym that this package does not have."""


def make_missing_name_error(name: str) -> AttributeError:
    """Return the error for a name of Isaac Gym that is not here.

    It is an AttributeError, which tools expect that look for a name in all modules. A statement
    `from … import …` turns it into an ImportError of Python with the name.

    Args:
        name: The name with its module, such as ``gymapi.VhacdParams``.
    """
    return AttributeError(
        f"{name} of Isaac Gym is not in legged_envs.compat.isaac_gym; "
        "docs/isaacgym.md lists what is: ask for more in an issue of legged-envs"
    )
