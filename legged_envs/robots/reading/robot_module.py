"""Writes the Python module that defines the configuration of a robot from a URDF or MJCF file.

Names in such a file are data of a stranger. They stand in the module as string literals, or in a
comment that they cannot end.
"""

from collections.abc import Mapping
from pprint import pformat
from textwrap import indent

from legged_envs.robots.robot import RobotCfg
from legged_envs.tables import printable


def format_module(robot: RobotCfg, gaps: Mapping[str, str]) -> str:
    """Return the source code of a Python module that defines a robot's configuration.

    Args:
        robot: Configuration. The module expects its model in the file ``<name>.xml`` next to it.
        gaps: Fields that are guesses, each with a text (``draft_robot``). The text is written above
            the field as a comment with ``TODO``.
    """
    lines = []
    for field, value in vars(robot).items():
        if field in gaps:
            # A line break in the name of a joint would end the comment, and the rest would be code.
            lines.append(f"# TODO: {printable(gaps[field])}")
        text = pformat(value, width=100, compact=True)
        if field == "xml":
            text = f"str(Path(__file__).with_name({robot.name + '.xml'!r}))"
        lines.append(f"{field}={text},")
    fields = indent("\n".join(lines), " " * 4)
    return (
        f'"""{robot.name}: {robot.num_joints} joints; a first description by legged-envs check."""'
        "\n\n"
        "from pathlib import Path\n\n"
        "from legged_envs.robots import RobotCfg\n\n"
        f"{robot.name.upper()} = RobotCfg(\n{fields}\n)\n"
    )
