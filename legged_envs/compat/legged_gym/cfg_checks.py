"""Checks of the fields of a :class:`~legged_envs.compat.legged_gym.LeggedRobotCfg`."""

import warnings
from types import SimpleNamespace

from legged_envs.checks import check_spelling
from legged_envs.compat.legged_gym.cfg import LeggedRobotCfg

FIXED_VALUES: dict[str, object] = {
    "domain_rand.push_links": False,
    "domain_rand.randomize_restitution": False,
    "asset.fix_base_link": False,
    "asset.disable_gravity": False,
    "init_state.roll_random_scale": 0.0,
    "init_state.pitch_random_scale": 0.0,
    "init_state.rot": [0.0, 0.0, 0.0, 1.0],
    "init_state.lin_vel": [0.0, 0.0, 0.0],
    "init_state.ang_vel": [0.0, 0.0, 0.0],
    "sensor.add_depth": False,
    "terrain.selected": False,
    "terrain.static_friction": 1.0,
    "terrain.dynamic_friction": 1.0,
    "terrain.restitution": 0.0,
    "sim.gravity": [0.0, 0.0, -9.81],
    "sim.substeps": 1,
}
"""Fields of LeggedGym-Ex that have one supported value, mapped to it."""
IGNORED_FIELDS: dict[str, str] = {
    "asset.file": "the model is that of cfg.asset.robot or cfg.asset.name",
    "asset.foot_name": "the feet are those of the robot: RobotCfg.foot_names",
    "asset.dof_armature": "armatures are those of the model",
    "asset.armature": "armatures are those of the model",
    "asset.linear_damping": "nothing slows the bodies down but contacts and joints",
    "asset.angular_damping": "nothing slows the bodies down but contacts and joints",
    "asset.self_collisions": "the model decides which bodies collide",
    "asset.dof_vel_limits": "limits are those of the robot: RobotCfg.velocity_limits",
}
"""Fields of LeggedGym-Ex that tasks may keep, without effect, mapped to what acts instead."""
OWN_NAMES = (".rewards.", ".costs.")
"""Sections with subsections, such as ``rewards.scales``, that are not checked for misspelt names.

Users choose the names of rewards and costs.
"""
LONG_NAME = 8
"""Length from which a name may differ less from a known one without being a misspelling."""


def check_fields(cfg: object) -> None:
    """Check the fields of a configuration.

    A field of an unknown name is the task's own, unless the name resembles that of a known field.

    A warning names fields that have no effect, :data:`IGNORED_FIELDS`.

    Args:
        cfg: An instance of a subclass of :class:`LeggedRobotCfg`.

    Raises:
        TypeError: If ``cfg`` or one of its sections is of another type.
        ValueError: If a name is nearly the name of a field, or a field has a value that is not
            supported.
    """
    if not isinstance(cfg, LeggedRobotCfg):
        raise _wrong_type(path="", given=cfg)
    _check_section(cfg, LeggedRobotCfg(), path="")
    for name, instead in IGNORED_FIELDS.items():
        section, field = name.split(".")
        if hasattr(getattr(cfg, section), field):
            warnings.warn(f"cfg.{name} has no effect: {instead}", stacklevel=2)


def _wrong_type(path: str, given: object) -> TypeError:
    return TypeError(
        f"cfg{path} must be an instance of a subclass of LeggedRobotCfg, or a nested class of one, "
        f"got {given!r}"
    )


def _check_section(section: object, base: object, path: str) -> None:
    """Check the fields of a section with the default ``base``; ``path`` starts with a dot."""
    known = vars(base)
    for name, value in vars(section).items():
        field_path = f"{path}.{name}"
        default = known.get(name)
        if isinstance(default, SimpleNamespace):
            if not isinstance(value, SimpleNamespace):
                raise _wrong_type(field_path, value)
            _check_section(value, default, field_path)
        elif not path.startswith(OWN_NAMES):
            # Two short names are alike even if both are meant.
            cutoff = 0.9 if len(name) >= LONG_NAME else 0.8
            check_spelling(f"cfg{path}", [name], known, cutoff)
        if field_path[1:] not in FIXED_VALUES:
            continue
        supported = FIXED_VALUES[field_path[1:]]
        given = list(value) if isinstance(value, tuple) else value
        if given != supported:
            raise ValueError(
                f"cfg{field_path} = {value!r} is not supported yet. It must be {supported!r}."
            )
