"""Methods that keep the mean costs of a policy under their limits, one file for each."""

from legged_envs.training.learner.constraint_methods.cat import CaT
from legged_envs.training.learner.constraint_methods.crpo import CRPO
from legged_envs.training.learner.constraint_methods.fixed_penalty import FixedPenalty
from legged_envs.training.learner.constraint_methods.focops import FOCOPS
from legged_envs.training.learner.constraint_methods.ipo import IPO
from legged_envs.training.learner.constraint_methods.method import ConstraintMethod
from legged_envs.training.learner.constraint_methods.np3o import NP3O
from legged_envs.training.learner.constraint_methods.p3o import P3O

METHODS: dict[str, type[ConstraintMethod]] = {
    "fixed": FixedPenalty,
    "p3o": P3O,
    "np3o": NP3O,
    "ipo": IPO,
    "crpo": CRPO,
    "focops": FOCOPS,
    "cat": CaT,
}
"""Class of each method by its name in ``--constraint.method``.

``lagrange`` is not among them: it is
:class:`~legged_envs.training.learner.constraints.Constraints`."""
