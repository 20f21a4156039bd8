"""Which cells an evaluation has, and with which seeds."""

from dataclasses import dataclass

TERRAINS = ("flat", "slope_fd", "slope_bd", "wave", "stairs_fd", "stairs_bd", "obstacle")
"""RoboGauge's terrains: `fd` is forwards, `bd` backwards. All but `flat` have levels 1 to 10."""


@dataclass(frozen=True)
class Protocol:
    """Conditions of an evaluation. A cell is one terrain at one friction and payload."""

    name: str
    """Name of the option that chooses it."""
    frictions: tuple[float, ...]
    """Coefficients of friction."""
    payloads: tuple[float, ...]
    """Masses that are added to the base, kg."""
    seeds: tuple[int, ...]
    """Seeds of the runs that are scored, at the highest level that was reached."""
    search_seeds: tuple[int, ...]
    """Seeds of the runs that reach a level. At least 80 % of them must arrive at the target."""


SUBSET = Protocol(
    name="subset",
    frictions=(0.6,),
    payloads=(0.0,),
    seeds=(0, 1),
    search_seeds=(0, 1, 2),
)
"""7 cells. Its score differs from one choice of seeds to the next by about 0.05."""

WHOLE = Protocol(
    name="whole",
    frictions=(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    payloads=(0.0,),
    seeds=(0, 1, 2),
    search_seeds=(0, 1, 2, 3, 4),
)
"""63 cells: the stress benchmark of RoboGauge's documentation, from which published scores are."""


@dataclass(frozen=True)
class Cell:
    """A terrain at one friction and payload."""

    terrain: str
    """Name of the terrain."""
    friction: float
    """Coefficient of friction of all geoms."""
    payload: float
    """Mass that is added to the base, kg."""

    @property
    def name(self) -> str:
        """Name of the cell in messages and files."""
        return f"{self.terrain}_friction{self.friction:g}_payload{self.payload:g}"


def cells_of(protocol: Protocol, terrains: tuple[str, ...]) -> list[Cell]:
    """Return the cells of a protocol.

    Args:
        protocol: The conditions.
        terrains: Names of terrains.

    Returns:
        The cells, grouped by terrain.
    """
    cells = []
    for terrain in terrains:
        for friction in protocol.frictions:
            for payload in protocol.payloads:
                cells.append(Cell(terrain, friction, payload))
    return cells
