"""One cell of the evaluation, in a separate process: a terrain at one friction and payload.

    python -m tools.robogauge.cell CHECKOUT POLICY.onnx RESULT.yaml --terrain flat …

`tools.robogauge` starts it. The process runs RoboGauge's stress pipeline with the policy as one
more robot, and writes the pipeline's summary.
"""

import argparse
import functools
import importlib
import os
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools.robogauge.driver import Driver
from tools.robogauge.robot import JOINT_ORDER, ContractRobot, simulator_order

ROBOT = "contract"
"""Name of the robot in RoboGauge's register of tasks."""

THEIR_ROBOT = "go2"
"""RoboGauge's robot that provides the model, worlds and commands."""

TIME_ENTRY = "cpu_time_s"
"""Entry that is added to RoboGauge's summary: CPU time of the cell, s."""


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("policy", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--terrain", required=True)
    parser.add_argument("--friction", type=float, required=True)
    parser.add_argument("--payload", type=float, required=True, help="kg")
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--search-seeds", type=int, nargs="+", required=True)
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--raw-commands", action="store_true")
    return parser.parse_args()


def register_robot(options: argparse.Namespace) -> None:
    """Import RoboGauge, and register the policy as a robot of each of its terrains.

    Args:
        options: Options of the command line.
    """
    sys.path.insert(0, str(options.checkout))
    robogauge: Any = importlib.import_module("robogauge")
    # Read by its logger when that is imported: the checkout stays as it is.
    robogauge.ROBOGAUGE_LOGS_DIR = str(options.logs)
    importlib.import_module("robogauge.tasks")
    base_pipeline: Any = importlib.import_module("robogauge.tasks.pipeline.base_pipeline")
    register = importlib.import_module("robogauge.utils.task_register").task_register
    helpers = importlib.import_module("robogauge.utils.helpers")
    flat = register.robot_cfgs[f"{THEIR_ROBOT}.flat"]()
    check_joint_order(Path(helpers.parse_path(flat.assets.robot_xml)))
    # A pipeline looks up the class of its robot, by name, in the module of the pipeline.
    base_pipeline.ContractRobot = ContractRobot
    contract = Driver(options.policy).contract
    for name in list(register.robot_cfgs):
        robot, _, terrain = name.partition(".")
        if robot != THEIR_ROBOT:
            continue
        cfg = functools.partial(
            make_robot_cfg, register.robot_cfgs[name], contract, options.raw_commands
        )
        register.register(
            f"{ROBOT}.{terrain}",
            functools.partial(make_pipeline, base_pipeline.BasePipeline),
            register.sim_cfgs[name],
            register.gauger_cfgs[name],
            cfg,
        )


def check_joint_order(robot: Path) -> None:
    """Check that RoboGauge's robot has its joints in the order in which targets are sent.

    Args:
        robot: MJCF file of the robot.
    """
    sensors = ElementTree.parse(robot).iter("jointpos")
    joints = [str(sensor.get("joint")) for sensor in sensors]
    if joints != list(JOINT_ORDER):
        sys.exit(
            f"{str(robot)!r} has the joints {', '.join(joints)}, and tools.robogauge knows "
            f"{', '.join(JOINT_ORDER)}: check out RoboGauge's commit 2aaa7ad"
        )


def make_robot_cfg(theirs: type, contract: dict[str, Any], raw_commands: bool) -> Any:
    """Return RoboGauge's configuration of its robot with the control of a policy.

    Args:
        theirs: RoboGauge's configuration class. Its robot's model and commands are kept.
        contract: Contract of the policy.
        raw_commands: True to pass commands on that are beyond those of the training.

    Returns:
        The configuration.
    """
    cfg: Any = theirs()
    cfg.robot_name = contract["task_id"]
    cfg.robot_class = ContractRobot.__name__
    control = cfg.control
    control.control_dt = contract["control_dt"]
    control.raw_commands = raw_commands
    order = simulator_order(contract)
    control.default_dof_pos = [contract["default_joint_pos"][i] for i in order]
    control.p_gains = [contract["kp"][i] for i in order]
    control.d_gains = [contract["kd"][i] for i in order]
    return cfg


def make_pipeline(base: Any, *parts: Any) -> Any:
    """Return a pipeline of RoboGauge that gives its robot access to the simulator.

    Args:
        base: RoboGauge's class of pipelines.
        *parts: Its arguments.
    """
    pipeline = base(*parts)
    pipeline.robot.see(pipeline.sim)
    return pipeline


def words_of(options: argparse.Namespace) -> list[str]:
    """Return the command-line arguments of RoboGauge's stress pipeline.

    They are for one combination of terrain, friction and payload.
    """
    words = ["--task-name", ROBOT, "--stress-benchmark", "--headless", "--num-processes", "1"]
    words += ["--stress-terrain-names", options.terrain]
    words += ["--frictions", str(options.friction), "--base-masses", str(options.payload)]
    words += ["--seeds", *map(str, options.seeds)]
    words += ["--search-seeds", *map(str, options.search_seeds)]
    words += ["--model-path", str(options.policy)]
    return words


def main(options: argparse.Namespace) -> None:
    """Run the cell, and write RoboGauge's summary.

    Args:
        options: Options of the command line.
    """
    import yaml

    helpers = importlib.import_module("robogauge.utils.helpers")
    pipelines = importlib.import_module("robogauge.tasks.pipeline")
    summary = pipelines.StressPipeline(helpers.parse_args(words_of(options))).run()
    if summary is None:
        sys.exit(f"RoboGauge has no result: its log in {str(options.logs)!r} says why")
    # Of this process and of those that RoboGauge started.
    summary[TIME_ENTRY] = round(sum(os.times()[:4]), 1)
    # Whole or not at all: a cell that is there is not run again.
    part = options.result.with_suffix(".part")
    text = yaml.safe_dump(summary, sort_keys=False, allow_unicode=True)
    part.write_text(text, encoding="utf-8")
    part.replace(options.result)


# RoboGauge starts further processes. Where these import this file anew, they need the robot too.
if __name__ in ("__main__", "__mp_main__"):
    OPTIONS = read_options()
    register_robot(OPTIONS)
    if __name__ == "__main__":
        main(OPTIONS)
