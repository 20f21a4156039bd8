"""The command ``legged-envs check``: drafts that become modules, and what it refuses."""

import ast
import html
import importlib
import re
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from robot_models import write_models

import legged_envs
from legged_envs import cli
from legged_envs.robots import GO2, RobotCfg
from legged_envs.sim.gains import settle
from legged_envs.tasks import TASKS
from legged_envs.tasks.velocity import velocity_task


def check(words: str, capsys: pytest.CaptureFixture[str], status: int) -> str:
    """Return the output of the command, which must exit with ``status``; an error without its first words."""
    try:
        cli.main(["check", *words.split()])
        ended = 0
    except SystemExit as stop:
        ended = stop.code
    printed = capsys.readouterr()
    assert ended == status, printed
    return printed.out if status < 2 else printed.err.removeprefix("legged-envs: error: ")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the models, which is the working directory and where modules are imported from."""
    write_models(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "status", "guess"),
    [("dog.urdf", 0, None), ("man.urdf", 1, "velocity_limits"), ("spot.xml", 1, "velocity_limits")],
)
def test_a_model_becomes_a_module_whose_robot_stands(
    file: str, status: int, guess: str | None, here: Path, capsys
) -> None:
    name = file.partition(".")[0]
    text = check(f"{file} --write robots_{name}/{name}.py", capsys, status)
    assert ("\nnone\n" in text) == (status == 0) and (
        guess is None or f"{guess}: {file} has none of" in text
    )
    module = importlib.import_module(f"robots_{name}.{name}")
    robot: RobotCfg = getattr(module, name.upper())
    source = Path(module.__file__).read_text()
    assert source.count("# TODO: ") == (guess is not None) and (
        guess is None or f"\n    {guess}=" in source
    )
    assert settle(robot)[0] < 0.03 * robot.base_height
    assert check(f"robots_{name}.{name}:{name.upper()}", capsys, 0)

    def task():
        cfg = velocity_task(robot)
        cfg.events = {}
        return cfg

    legged_envs.register(f"Drafts/{name}-v0", task)
    try:
        envs = gym.make_vec(f"Drafts/{name}-v0", num_envs=2)
        envs.reset(seed=0)
        ended = [
            envs.step(np.zeros((2, robot.num_joints), np.float32))[2].any() for _ in range(100)
        ]
        assert (
            not any(ended)
            and (envs.unwrapped.sim.root_pos_w[:, 2] > 0.85 * robot.base_height).all()
        )
        envs.close()
    finally:
        TASKS.pop(f"Drafts/{name}-v0"), gym.registry.pop(f"Drafts/{name}-v0")


def test_a_mesh_that_is_missing_is_named_when_an_environment_is_made(tmp_path: Path) -> None:
    text = GO2.path.read_text().replace(
        "<worldbody>", '<asset><mesh file="shell.stl"/></asset><worldbody>'
    )
    (tmp_path / "go2.xml").write_text(text)
    with pytest.raises(
        ValueError,
        match=r"'go2'.*go2\.xml'.*shell\.stl",
    ):
        robot = replace(GO2, xml=str(tmp_path / "go2.xml"))
        gym.make_vec("Legged/Go2-Flat-v0", num_envs=1, cfg={"robot": robot})


_KNEE = '<child link="FL_calf"/>'
_IMU = 'name="imu_fixed" type="fixed"'
_CLOSED = '<connect body1="fl_lleg" body2="fr_lleg" anchor="0 0 0"/>'
_BOX = '<box size="0.4 0.2 0.1"/>'
_TENDON = '<tendon><fixed name="t"><joint joint="fl_kn" coef="1"/></fixed></tendon>'


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("dog.urdf", "</robot>", "", "no element found"),
        ("dog.urdf", _KNEE, _KNEE + '<mimic joint="FR_calf_joint"/>', "'FL_calf_joint' mimics 'FR_calf_joint'"),
        ("dog.urdf", _IMU, _IMU.replace("fixed", "floating"), "'imu_floating'.*floating"),
        ("dog.urdf", _IMU, _IMU.replace("fixed", "planar"), "'imu_planar'.*planar"),
        ("dog.urdf", '<child link="FL_foot"/>', '<child link="FR_foot"/>', "'FR_foot_fixed'.*loop.*'FR_foot'"),
        ("dog.urdf", _KNEE, '<child link="knee"/>', "'FL_calf_joint'.*'knee'"),
        ("dog.urdf", "</robot>", '<link name="trunk"/></robot>', "links.*'trunk'"),
        ("dog.urdf", 'velocity="', 'velocity="fast', "limit.*'FL_.*'fast"),
        ("spot.xml", "<actuator>", _TENDON + "<actuator>", r"tendons \['t'\]"),
        ("dog.urdf", _BOX, '<mesh filename="trunk.stl"/>', "collision.*'trunk'.*'trunk.stl'"),
        ("dog.urdf", _BOX, '<mesh filename="package://d/t.dae"/>', "'package://d/t.dae'"),
        ("dog.urdf", '<mass value="0.5"/>', '<mass value="0"/>', "mjMINVAL .*'FL_hip'.*<inertial>"),
        ("dog.urdf", "<gazebo", '<x:if xmlns:x="http://ros.org/wiki/xacro"/><gazebo', "xacro"),
        ("spot.xml", 'name="fl_kn" axis="0 1 0" range="-150 -10"', 'name="fl_kn" type="ball"', "'fl_kn' of body 'fl_"),
        ("spot.xml", '<freejoint name="floating"/>', '<joint name="rail" type="slide"/>', "'rail'.*slide"),
        ("spot.xml", "<actuator>", f"<equality>{_CLOSED}</equality><actuator>", "'fl_lleg'.*'fr_lleg'"),
        ("spot.xml", "</worldbody>", '<body name="ball"/></worldbody>', r"\['trunk', 'ball'\]"),
        ("spot.xml", 'geom type="capsule"', 'geom type="capsule" contype="0" conaffinity="0"', "feet"),
        ("spot.xml", 'type="box"', 'type="mesh" mesh="m"', "MuJoCo|mesh"),
        ("spot.xml", "<mujoco", "<sdf", "mismatched|sdf"),
    ],
)  # fmt: skip
def test_what_the_package_does_not_take_is_one_line_with_its_place(
    file: str, old: str, new: str, message: str, here: Path, capsys
) -> None:
    text = (here / file).read_text()
    assert old in text
    (here / file).write_text(
        re.sub("<keyframe>.*</keyframe>", "", text.replace(old, new), flags=re.DOTALL)
    )
    told = check(f"{file} --write new/it.py", capsys, 2)
    assert (
        re.search(message, told)
        and told.startswith(f"cannot read '{file}': ")
        and told.count("\n") == 1
    )
    assert not (here / "new").exists()


@pytest.mark.parametrize("there", ["dog.py", "dog.xml"])
def test_nothing_is_overwritten(there: str, here: Path, capsys) -> None:
    (here / there).write_text("mine")
    assert f"'{there}'" in check("dog.urdf --write dog.py", capsys, 2)
    assert (here / there).read_text() == "mine"


def test_a_robot_of_a_module_that_does_not_fit_its_model_is_refused(here: Path, capsys) -> None:
    code = "from dataclasses import replace\nfrom legged_envs.robots import GO2\n"
    (here / "mine.py").write_text(
        f"{code}BAD = replace(GO2, default_joint_pos=(2.0,) + GO2.default_joint_pos[1:])\n"
    )
    assert re.search(
        "'FR_hip_joint'.* 2.0.*go2.xml.* -1.0472.* 1.0472", check("mine:BAD", capsys, 2)
    )
    sys.modules.pop("mine")


def test_a_robot_on_a_fixed_base_and_names_that_are_none_are_one_line(here: Path, capsys) -> None:
    code = "from dataclasses import replace\nfrom legged_envs.robots import GO2\n"
    (here / "fixed.xml").write_text(GO2.path.read_text().replace('<freejoint name="root"/>', ""))
    (here / "mine.py").write_text(f"{code}FIXED = replace(GO2, xml={str(here / 'fixed.xml')!r})\n")
    assert '<freejoint name="root"/>' in check("mine:FIXED", capsys, 2)
    sys.modules.pop("mine")
    for name in (".mine:FIXED", ":FIXED", "my-robots:FIXED"):
        assert f"got {name!r}" in check(name, capsys, 2)
    for name in ("class.py", "3dog.py", "my-robot.py"):
        assert f"got {name!r}" in check(f"dog.urdf --write {name}", capsys, 2)
    with pytest.raises(ValueError, match="foot_names"):
        replace(GO2, foot_names=())


@pytest.mark.parametrize(
    "name",
    [
        "hip&#10;*[open('RAN', 'w')],&#10;#",
        "hip&#13;*[open('RAN', 'w')],#",
        "hip&#x2028;x&#x2029;*[open('RAN', 'w')]",
        "hip&quot;&quot;&quot;&#10;'''; open('RAN', 'w')&#10;#",
        "hip\\&#10;)&#10;open('RAN', 'w')&#10;(",
    ],
)
def test_names_of_a_file_are_text_in_the_module(name: str, here: Path, capsys) -> None:
    robot = (here / "dog.urdf").read_text()
    # A joint without a velocity limit: a comment of the module has its name.
    robot = robot.replace("FL_hip_joint", f"FL_{name}").replace(' velocity="18"', "", 1)
    # The same in a link, whose name stands in lists of bodies.
    robot = robot.replace("RR_calf", f"RR_{name}")
    (here / "named.urdf").write_text(robot, encoding="utf-8")
    check("named.urdf --write named.py", capsys, 1)
    tree = ast.parse((here / "named.py").read_text(encoding="utf-8"))
    docstring, _, _, assignment = tree.body
    assert isinstance(docstring, ast.Expr)
    assert isinstance(assignment, ast.Assign)
    values = {field.arg: field.value for field in assignment.value.keywords}
    values.pop("xml")
    # All other fields are literals: nothing is called, and no names are looked up.
    fields = {field: ast.literal_eval(value) for field, value in values.items()}
    # MuJoCo's reader makes one line break of the two kinds.
    written = html.unescape(name).replace("\r", "\n")
    assert f"FL_{written}" in fields["joint_names"]
    assert f"RR_{written}" in fields["penalized_bodies"]


_LINK = (
    '<link name="{0}"><inertial><mass value="{1}"/><inertia ixx="{2}" iyy="{2}" izz="{2}" ixy="0" '
    'ixz="0" iyz="0"/></inertial><collision><origin xyz="{3}"/><geometry>{4}</geometry></collision></link>'
)


def _flat_dog() -> str:
    """A robot whose legs are level with its body where all joints are 0."""
    parts = [_LINK.format("body", 6.0, 0.05, "0 0 0", '<box size="0.4 0.2 0.06"/>')]
    for leg, x, y in (("FL", 0.2, 0.1), ("FR", 0.2, -0.1), ("RL", -0.2, 0.1), ("RR", -0.2, -0.1)):
        side = 1.0 if y > 0.0 else -1.0
        out = f"0 {side * 0.1} 0"
        parts.append(_LINK.format(f"{leg}_thigh", 0.5, 0.002, out, '<box size="0.04 0.2 0.04"/>'))
        parts.append(_LINK.format(f"{leg}_foot", 0.2, 0.001, out, '<sphere radius="0.03"/>'))
        for joint, parent, child, place in (
            ("hip", "body", "thigh", f"{x} {y} 0"),
            ("knee", f"{leg}_thigh", "foot", f"0 {side * 0.2} 0"),
        ):
            parts.append(
                f'<joint name="{leg}_{joint}" type="revolute"><origin xyz="{place}"/>'
                f'<parent link="{parent}"/><child link="{leg}_{child}"/><axis xyz="1 0 0"/>'
                '<limit lower="-2" upper="2" effort="40" velocity="20"/></joint>'
            )
    return f"<robot name='flat'>{''.join(parts)}</robot>"


def test_a_robot_that_lies_where_its_joints_are_0_is_told_so_in_one_line(
    here: Path, capsys
) -> None:
    (here / "flat.urdf").write_text(_flat_dog())
    told = check("flat.urdf", capsys, 1)
    (line,) = [line for line in told.splitlines() if "does not stand but lies" in line]
    assert "'body'" in line and "base_height 0.030" in line and "default_joint_pos" in line
    assert "lies on 'body'" in told, "what happens when it is dropped"
    assert "lies" not in check("dog.urdf", capsys, 0)
