"""Models of robots that are not in the package, as other people write them."""

from pathlib import Path


def link(
    name: str, mass: float, *shapes: str, middle: str = "0 0 -0.1", spread: float = 0.005
) -> str:
    """A link whose moments of inertia are ``spread`` times its mass."""
    inertia = 'ixx="{0}" iyy="{0}" izz="{0}" ixy="0" ixz="0" iyz="0"'.format(spread * mass)
    own = (
        f'<inertial><origin xyz="{middle}"/><mass value="{mass}"/><inertia {inertia}/></inertial>'
        if mass
        else ""
    )
    return f'<link name="{name}">{own}{"".join(f"<collision>{shape}</collision>" for shape in shapes)}</link>'


def shape(kind: str, place: str = "0 0 0") -> str:
    return f'<origin xyz="{place}"/><geometry><{kind}/></geometry>'


def joint(name: str, parent: str, child: str, place: str, axis: str = "", limit: str = "") -> str:
    kind = "revolute" if axis else "fixed"
    moves = f'<axis xyz="{axis}"/><limit {limit}/>' if axis else ""
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{place}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{moves}</joint>\n'


def quadruped() -> str:
    """14 kg on legs of 0.2 and 0.2 m, whose knees cannot be straight, with parts that MuJoCo ignores."""
    text = link("trunk", 8.0, shape('box size="0.4 0.2 0.1"'), middle="0 0 0") + link(
        "imu_link", 0.0
    )
    text += joint("imu_fixed", "trunk", "imu_link", "0 0 0.02")
    shank = shape('cylinder radius="0.015" length="0.16"', "0 0 -0.1")
    for leg, x, y in (("FL", 1, 1), ("FR", 1, -1), ("RL", -1, 1), ("RR", -1, -1)):
        text += (
            link(f"{leg}_hip", 0.5)
            + link(f"{leg}_thigh", 0.5, shank)
            + link(f"{leg}_calf", 0.5, shank, spread=0.02)
        )
        text += link(f"{leg}_foot", 0.0, shape('sphere radius="0.02"'))
        drive = 'effort="30" velocity="18"'
        hip, thigh = f"{0.2 * x} {0.08 * y} 0", f"0 {0.06 * y} 0"
        text += joint(
            f"{leg}_hip_joint",
            "trunk",
            f"{leg}_hip",
            hip,
            "1 0 0",
            f'lower="-0.8" upper="0.8" {drive}',
        )
        text += joint(
            f"{leg}_thigh_joint",
            f"{leg}_hip",
            f"{leg}_thigh",
            thigh,
            "0 1 0",
            f'lower="-1" upper="3" {drive}',
        )
        knee = f'lower="-2.6" upper="-0.4" {drive}'
        text += joint(f"{leg}_calf_joint", f"{leg}_thigh", f"{leg}_calf", "0 0 -0.2", "0 1 0", knee)
        text += joint(f"{leg}_foot_fixed", f"{leg}_calf", f"{leg}_foot", "0 0 -0.2")
    ignored = (
        '<transmission name="motor"><type>simple</type></transmission><gazebo reference="trunk"/>'
    )
    return f'<robot name="dog">{text}{ignored}</robot>'


def biped() -> str:
    """21.6 kg; the axes of hips and knees point outwards, and one motor has no speed."""
    text = link("pelvis", 10.0, shape('box size="0.15 0.2 0.3"', "0 0 0.1"), middle="0 0 0.1")
    bone = shape('cylinder radius="0.03" length="0.2"', "0 0 -0.15")
    drive = 'lower="-1" upper="1" effort="80" velocity="12"'
    for side, y in (("left", 1), ("right", -1)):
        parts = {"hip": 1.0, "thigh": 2.0, "shin": 1.5, "ankle": 0.5, "arm": 0.8}
        sole = shape('box size="0.2 0.08 0.03"', "0.03 0 -0.04")
        shapes = {"thigh": bone, "shin": bone, "arm": bone, "ankle": sole}
        for part, mass in parts.items():
            text += link(f"{side}_{part}_link", mass, *([shapes[part]] if part in shapes else []))
        hip, knee, arm = f"0 {0.1 * y} -0.05", "0 0 -0.3", f"0 {0.18 * y} 0.25"
        text += joint(f"{side}_hip_roll", "pelvis", f"{side}_hip_link", hip, f"{y} 0 0", drive)
        text += joint(
            f"{side}_hip_pitch", f"{side}_hip_link", f"{side}_thigh_link", "0 0 0", "0 1 0", drive
        )
        text += joint(
            f"{side}_knee", f"{side}_thigh_link", f"{side}_shin_link", knee, f"0 {y} 0", drive
        )
        text += joint(
            f"{side}_ankle", f"{side}_shin_link", f"{side}_ankle_link", knee, "0 1 0", drive
        )
        limit = 'lower="-2" upper="2" effort="15"'
        text += joint(f"{side}_shoulder", "pelvis", f"{side}_arm_link", arm, "0 0 1", limit)
    return f'<robot name="man">{text}</robot>'


def scene() -> str:
    """An MJCF as others write it: ground, light, motors, a sensor, a keyframe, and shanks whose lower ends are feet."""
    legs = ""
    for leg, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("hl", -0.2, 0.1), ("hr", -0.2, -0.1)):
        bone = '<geom type="capsule" size=".015" fromto="0 0 0 0 0 -.2"/>'
        shin = f'<joint name="{leg}_kn" axis="0 1 0" range="-150 -10"/>{bone}'
        thigh = f'<joint name="{leg}_hy" axis="0 1 0" range="-90 90"/>{bone}'
        legs += f"""<body name="{leg}_hip" pos="{x} {y} 0"><joint name="{leg}_hx" axis="1 0 0" range="-45 45"/>
          <geom type="capsule" size=".03" fromto="0 0 0 0 {y / 2} 0"/>
          <body name="{leg}_uleg" pos="0 {y / 2} 0">{thigh}
            <body name="{leg}_lleg" pos="0 0 -.2">{shin}</body></body></body>"""
    motors = "".join(
        f'<position joint="{leg}_{part}" kp="60" forcerange="-40 40"/>'
        for leg in ("fl", "fr", "hl", "hr")
        for part in ("hx", "hy", "kn")
    )
    return f"""<mujoco model="spot"><worldbody><light pos="0 0 3"/><geom name="floor" type="plane" size="0 0 1"/>
      <body name="trunk" pos="0 0 .5"><freejoint name="floating"/><site name="imu_site"/>
        <geom type="box" size=".25 .1 .05" mass="10"/>
        <geom type="sphere" size=".06" pos=".3 0 0" contype="0" conaffinity="0" mass="0"/>{legs}</body></worldbody>
      <actuator>{motors}</actuator><sensor><framequat objtype="site" objname="imu_site"/></sensor>
      <keyframe><key name="down" qpos="0 0 .1 1 0 0 0 {"0 1.2 -2.4 " * 4}"/>
      <key name="home" qpos="0 0 .4 1 0 0 0 {"0 .6 -1.2 " * 4}"/></keyframe></mujoco>"""


MODELS = {"dog.urdf": quadruped, "man.urdf": biped, "spot.xml": scene}


def write_models(folder: Path) -> None:
    """Write all of them to a folder."""
    for name, model in MODELS.items():
        (folder / name).write_text(model())
