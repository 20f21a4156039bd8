"""Boxes, balls and capsules that a script makes without a file."""

from collections.abc import Sequence
from pathlib import Path

import mujoco

from legged_envs.compat.isaac_gym.assets import Asset, check_options
from legged_envs.compat.isaac_gym.records import AssetOptions

ALONG_X = (0.5**0.5, 0.0, 0.5**0.5, 0.0)
"""Orientation, (w, x, y, z), that lays MuJoCo's capsule along x. By itself it is along z."""


class ShapeAsset(Asset):
    """One body of one shape, with the mass of its volume.

    Args:
        name: Name of the body.
        kind: Kind of the shape.
        sizes: Its sizes in MuJoCo's convention, m.
        options: Options, of which ``density`` gives the mass.
        quat: Orientation of the shape in the body, (w, x, y, z).

    Raises:
        ValueError: If a size or the density is not positive, or an option does not fit.
    """

    def __init__(
        self,
        name: str,
        kind: mujoco.mjtGeom,
        sizes: Sequence[float],
        options: AssetOptions,
        quat: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
    ):
        self._name = name
        self._kind = kind
        self._sizes = sizes
        self._quat = quat
        super().__init__(Path(name), options)

    def _check_source(self) -> None:
        check_options(self.options)
        for value in (*self._sizes, self.options.density):
            if not value > 0:
                raise ValueError(
                    f"create_{self._name}: sizes and options.density must be above 0, got {value:g}"
                )

    def _read_file(self, visuals: bool) -> tuple[mujoco.MjSpec, list[str]]:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name=self._name)
        shape = body.add_geom(type=self._kind, density=self.options.density)
        shape.size[: len(self._sizes)] = self._sizes
        shape.quat = self._quat
        return spec, []
