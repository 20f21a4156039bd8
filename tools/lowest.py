"""The lowest versions of dependencies that pyproject.toml allows, as arguments of pip.

Usage: ``python -m tools.lowest [NAME …]``; the named dependencies are left out.
"""

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest_versions(requirements: list[str], omitted: list[str]) -> list[str]:
    """Return the lowest version of each requirement, as ``name==version``.

    Args:
        requirements: Requirements with a lowest version, such as ``"numpy>=1.26"``.
        omitted: Names of requirements that are left out.

    Raises:
        ValueError: If a requirement has no lowest version.
    """
    pinned = []
    for text in requirements:
        requirement = Requirement(text)
        lowest = [part.version for part in requirement.specifier if part.operator in (">=", "==")]
        if not lowest:
            raise ValueError(
                f"the dependency {text!r} in pyproject.toml has no lowest version: "
                f"write one, such as '{requirement.name}>=1.0'"
            )
        if requirement.name not in omitted:
            pinned.append(f"{requirement.name}=={lowest[0]}")
    return pinned


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    print(*lowest_versions(project["dependencies"], omitted=sys.argv[1:]))
