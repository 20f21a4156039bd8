"""One short phrase for each task, about the motion of the robot."""

from legged_envs.tasks import make_task_cfg

SUMMARIES = {
    "Legged/Go2-Flat-v0": "Go2 walks on flat ground",
    "Legged/G1-Flat-v0": "G1 walks on flat ground",
    "Legged/Go1-Flat-v0": "Go1 walks on flat ground",
    "Legged/A1-Flat-v0": "A1 walks on flat ground",
    "Legged/AnymalC-Flat-v0": "ANYmal on flat ground",
    "Legged/H1-Flat-v0": "H1 walks on flat ground",
    "Legged/K1-Flat-v0": "K1 walks on flat ground",
    "Legged/T1-Flat-v0": "T1 walks on flat ground",
    "Legged/Tron1-PF-Flat-v0": "TRON1 walks on point feet",
    "Legged/Tron1-SF-Flat-v0": "TRON1 walks on soles",
    "Legged/Tron1-WF-Flat-v0": "TRON1 drives on wheels",
    "Legged/Go2-Rough-v0": "Go2 sees stairs and slopes",
    "Legged/Go2-Blind-v0": "Go2 on rough ground, blind",
    "Legged/Go2-Robust-v0": "blind Go2 on harsh ground",
    "Legged/Go1-Rough-v0": "Go1 walks on rough ground",
    "Legged/A1-Rough-v0": "A1 walks on rough ground",
    "Legged/AnymalC-Rough-v0": "ANYmal on rough ground",
    "Legged/G1-Rough-v0": "G1 walks on rough ground",
    "Legged/K1-Rough-v0": "K1 walks on rough ground",
    "Legged/Tron1-PF-Rough-v0": "TRON1 on rough ground",
    "Legged/Go2-Gaits-v0": "Go2 trots, paces, bounds",
    "Legged/Go2-Nav-v0": "Go2 walks to a goal",
    "Legged/Go2-Pair-v0": "two Go2 carry a beam",
    "Legged/Go2-Mimic-v0": "Go2 imitates motion clips",
    "Legged/G1-Mimic-v0": "G1 imitates motion clips",
    "Legged/Go2-Legs-v0": "Go2 with an agent per leg",
}
"""Registered id → phrase of a task of this package.

A phrase has at most 26 characters, so that each task is one line of an 80-column terminal.
"""


def summarize_task(task_id: str) -> str:
    """Return a short phrase that describes what the robot of a task does.

    The configuration of a task of another package is made, which can raise any error.

    Args:
        task_id: Registered id.
    """
    summary = SUMMARIES.get(task_id)
    if summary is not None:
        return summary
    # Imported here: a list of this package's tasks needs no PyTorch, which takes seconds to import.
    from legged_envs.tasks.kind import kind_of

    cfg = make_task_cfg(task_id)
    kind = kind_of(cfg)
    if kind.imitates_motions:
        action = "imitates motions"
    elif kind.follows_velocity:
        action = "follows velocity commands"
    else:
        action = "acts"
    ground = "rough" if kind.has_terrain else "flat"
    return f"{cfg.robot.name} {action} on {ground} ground"
