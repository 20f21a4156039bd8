"""A policy as RoboGauge asks a robot for its targets."""

from pathlib import Path
from typing import Any

import numpy as np

from tools.robogauge.driver import Driver, Senses
from tools.robogauge.ground import Ground, scan

JOINT_ORDER = (
    "FL_hip_joint",
    "FL_thigh_joint",
    "FL_calf_joint",
    "FR_hip_joint",
    "FR_thigh_joint",
    "FR_calf_joint",
    "RL_hip_joint",
    "RL_thigh_joint",
    "RL_calf_joint",
    "RR_hip_joint",
    "RR_thigh_joint",
    "RR_calf_joint",
)
"""Joints of RoboGauge's Go2, in the order of its simulator."""

COMMANDS = ("lin_vel_x", "lin_vel_y", "ang_vel_z")
"""Ranges of `training.commands` in a contract, in the order of a command."""


def check_joints(contract: dict[str, Any]) -> None:
    """Check that a policy moves the joints of the Go2.

    Args:
        contract: Contract of the policy.

    Raises:
        ValueError: If it has other joints.
    """
    names = contract["joint_names"]
    if sorted(names) != sorted(JOINT_ORDER):
        raise ValueError(
            f"the policy of {contract['task_id']!r} moves {len(names)} joints, {names[0]} and so "
            "on, and RoboGauge has the Go2 alone: use a policy of the Go2"
        )


def simulator_order(contract: dict[str, Any]) -> list[int]:
    """Return where the simulator's joints are in a contract, in the order of the simulator."""
    return [contract["joint_names"].index(name) for name in JOINT_ORDER]


def command_limits(contract: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper limit of each component of a command.

    The limits are those of `examples/deploy.py`.

    Args:
        contract: Contract of the policy. A component without a range has no limit.
    """
    trained = (contract.get("training") or {}).get("commands") or {}
    ranges = [trained.get(name) or (None, None) for name in COMMANDS]
    low, high = np.array(ranges, dtype=np.float64).T
    low = np.where(np.isnan(low), -np.inf, low)
    high = np.where(np.isnan(high), np.inf, high)
    # The command 0 is always possible.
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


class ContractRobot:
    """The interface of RoboGauge's robots: `build_observation`, `get_action` and `reset`.

    Args:
        cfg: RoboGauge's configuration of the robot. `control.model_path` is the ONNX file;
            `control.raw_commands` says whether commands may be beyond those of the training.

    Raises:
        ValueError: If the contract asks for what RoboGauge does not have.
    """

    def __init__(self, cfg: Any):
        self.driver = Driver(Path(cfg.control.model_path))
        contract = self.driver.contract
        self._kp = np.array(contract["kp"])
        self._kd = np.array(contract["kd"])
        self._scan: dict[str, Any] = contract.get("scan", {})
        check_joints(contract)
        self._least, self._most = command_limits({} if cfg.control.raw_commands else contract)
        names = contract["joint_names"]
        self._to_contract = [JOINT_ORDER.index(name) for name in names]
        self._to_simulator = simulator_order(contract)

    def see(self, simulator: Any) -> None:
        """Store the simulator, from which the height scan of the robot is computed.

        Args:
            simulator: RoboGauge's simulator. It loads its world after this call.
        """
        self._simulator = simulator
        self._ground: Ground | None = None

    def build_observation(self, sim_data: Any, goal_data: Any) -> Senses:
        """Return what the robot senses.

        Args:
            sim_data: State of the robot with RoboGauge's noise.
            goal_data: The command.

        Returns:
            The input of `get_action`.
        """
        body = sim_data.proprio
        goal = goal_data.velocity_goal
        command = np.array([goal.lin_vel_x, goal.lin_vel_y, goal.ang_vel_yaw])
        senses = Senses(
            command=np.clip(command, self._least, self._most),
            quat=body.imu.quat,
            ang_vel=body.imu.ang_vel,
            joint_pos=body.joint.pos[self._to_contract],
            joint_vel=body.joint.vel[self._to_contract],
        )
        if self._scan:
            senses.height_scan = self._look(body.base.pos, body.imu.quat)
        return senses

    def get_action(self, senses: Senses) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
        """Make one control step.

        Args:
            senses: What `build_observation` returned.

        Returns:
            Targets, kp and kd in the order of the simulator's joints, and `P`, for positions.
        """
        target = self.driver.act(senses)
        order = self._to_simulator
        return target[order], self._kp[order], self._kd[order], "P"

    def reset(self) -> None:
        """Begin an episode."""
        self.driver.reset()

    def _look(self, position: np.ndarray, quat: np.ndarray) -> np.ndarray:
        if self._ground is None:
            model = self._simulator.mj_model
            # A plane has no cells: any grid has its heights.
            cell = self._scan["cell"] or 0.1
            self._ground = Ground(model, self._simulator.mj_data, cell)
        return scan(self._ground, self._scan, position, quat)
