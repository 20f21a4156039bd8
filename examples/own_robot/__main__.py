"""Make your own project from this one, under a new name: ``python examples/own_robot my_robot [FOLDER]``. Package,
robot, tasks and tests are called after it; nothing is installed or downloaded."""

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from unicodedata import normalize

HERE = Path(__file__).resolve().parent
NAME = HERE.name


def is_name(name: str) -> bool:
    """Whether a Python package and its project can have this name."""
    return bool(re.fullmatch("[a-z]([a-z0-9_]*[a-z0-9])?", name)) and not keyword.iskeyword(name)


def copy_project(name: str, folder: Path) -> None:
    """Write the project ``name`` to ``folder``, which must be empty if it exists; SystemExit, with one line, if the
    name is not valid for a package or the folder is taken."""
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != HERE]  # else this package is found
    if not is_name(name):
        plain = normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
        better = re.sub("[^a-z0-9]+", "_", plain).strip("_").lstrip("_0123456789")
        meant = f"; did you mean {better!r}?" if is_name(better) else ""
        sys.exit(f"{NAME}: a project's name must be an identifier, a to z, 0 to 9 and _, got {name!r}{meant}")
    if find_spec(name):
        sys.exit(
            f"{NAME}: there is a Python package {name!r} already, which this project would hide: take another name"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        sys.exit(f"{NAME}: {str(folder)!r} exists and is not empty: nothing is overwritten, name another folder")
    words = {NAME: name, NAME.upper(): name.upper(), NAME.replace("_", "-"): name.replace("_", "-")}

    def renamed(text: str) -> str:
        return re.sub("|".join(words), lambda word: words[word[0]], text)

    for pattern in ("*.md", "*.toml", "*.urdf", f"src/{NAME}/*.py", f"src/{NAME}/*.xml", "tests/*.py"):
        for source in HERE.glob(pattern):
            target = folder / renamed(str(source.relative_to(HERE)))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(renamed(source.read_text()))
    print(f"{folder}/ is the project {name}; its README.md shows the next steps")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(f"usage: python {sys.argv[0]} NAME [FOLDER]")
    try:
        copy_project(sys.argv[1], Path(sys.argv[-1]))
    except OSError as error:
        sys.exit(f"{NAME}: cannot write to {sys.argv[-1]!r}: {error}")
