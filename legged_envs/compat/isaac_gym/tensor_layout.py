"""Rows and columns of the tensors that a simulation gives."""

TENSOR_COLUMNS = {
    "actor_root_state": 13,
    "dof_state": 2,
    "net_contact_force": 3,
    "rigid_body_state": 13,
    "dof_force": 1,
    "force_sensor": 6,
}
"""Number of columns of each tensor."""

TENSOR_ROWS = {
    "actor_root_state": "actors",
    "dof_state": "dofs",
    "net_contact_force": "bodies",
    "rigid_body_state": "bodies",
    "dof_force": "dofs",
    "force_sensor": "force_sensors",
}
"""Owners of the rows of each tensor."""
