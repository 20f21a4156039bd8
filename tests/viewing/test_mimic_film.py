"""Pictures of motion imitation: the reference as a ghost, films and plots of the tracking errors."""

from __future__ import annotations

from types import SimpleNamespace

import imageio_ffmpeg
import mujoco
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from legged_envs import make_task_cfg
from legged_envs.envs import CoreVectorEnv
from legged_envs.evaluation.plots import (
    JOINT_ERROR_BAR,
    LIN_VEL_ERROR_BAR,
    NUM_CLIP_PARTS,
    plot_tracking,
)
from legged_envs.mdp.motion_command import MotionCommand
from legged_envs.motions import MotionLibrary, MotionPlayer, shipped_motions
from legged_envs.robots import G1, GO2, RobotCfg
from legged_envs.sim import SimCfg, Simulation, make_simulation
from legged_envs.sim.cfg import Pose
from legged_envs.viewing.film import (
    FRAMES_PER_SECOND,
    LARGEST_DRIFT,
    REFERENCE_OFFSET,
    RENDER_SIZE,
    VIDEO_WIDTH,
    film,
)
from legged_envs.viewing.labels import LABEL_HEIGHT
from legged_envs.viewing.scenes import Scene, make_scenes

# --- ghosts -----------------------------------------------------------------------------------------------------------


def make(robot: RobotCfg = GO2, num_envs: int = 2) -> Simulation:
    return make_simulation("mujoco", robot, SimCfg(), num_envs, "cpu")


def make_pose(robot: RobotCfg = GO2, **fields: torch.Tensor) -> Pose:
    """A pose that differs from the simulated robot: tilted, next to the robot, with other joint positions."""
    quat = torch.nn.functional.normalize(torch.tensor([0.9, 0.1, -0.2, 0.3]), dim=0)
    joint_pos = torch.tensor(robot.default_joint_pos) + torch.linspace(-0.3, 0.4, robot.num_joints)
    pose = {
        "root_pos_w": torch.tensor([0.1, 0.6, 0.4]),
        "root_quat_w": quat,
        "joint_pos": joint_pos,
    }
    return Pose(**{**pose, **fields})


def throw(sim: Simulation) -> None:
    """Let the robots fall for some steps, each with another speed."""
    ids = torch.arange(sim.num_envs)
    lin_vel = torch.tensor([[0.5, -0.3, 0.2]]) * (ids[:, None] + 1.0)
    sim.write_root_state(
        ids, sim.root_pos_w.clone(), sim.root_quat_w.clone(), lin_vel, lin_vel.flip(1)
    )
    sim.step(7)


@pytest.mark.render
def test_drawing_a_ghost_changes_no_bit_of_the_simulation_nor_of_its_future(assert_same):
    watched, alone = make(), make()
    for sim in (watched, alone):
        throw(sim)
    before, picture = watched.get_state(), watched.render(1).copy()
    with_ghost = watched.render(1, ghost=make_pose()).copy()
    assert_same(watched.get_state(), before)
    assert not np.array_equal(with_ghost, picture)
    assert np.array_equal(watched.render(1), picture)
    for sim in (watched, alone):
        sim.step(20)
    assert_same(watched.get_state(), alone.get_state())


@pytest.mark.render
@pytest.mark.parametrize("robot", [GO2, G1], ids=lambda robot: robot.name)
def test_a_ghost_is_every_visible_shape_of_the_robot_where_plain_mujoco_puts_it(robot):
    sim, pose = make(robot), make_pose(robot)
    throw(sim)
    sim.render(1)
    scene = sim._renderer.renderer.scene
    shapes = [
        (geom.pos.copy(), geom.mat.copy(), geom.rgba.copy()) for geom in scene.geoms[: scene.ngeom]
    ]
    sim.render(1, ghost=pose)
    for geom, (pos, mat, rgba) in zip(scene.geoms[: len(shapes)], shapes, strict=True):
        assert np.array_equal(geom.pos, pos)
        assert np.array_equal(geom.mat, mat)
        assert np.array_equal(geom.rgba, rgba)

    model = mujoco.MjModel.from_xml_path(str(robot.path))
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([pose.root_pos_w, pose.root_quat_w, pose.joint_pos])
    mujoco.mj_forward(model, data)
    visible = np.flatnonzero(model.geom_group < 3)
    added = scene.geoms[len(shapes) : scene.ngeom]
    assert len(added) == len(visible)
    for geom, i in zip(added, visible, strict=True):
        assert geom.type == model.geom_type[i]
        assert np.array_equal(geom.pos, data.geom_xpos[i].astype(np.float32))
        assert np.array_equal(geom.mat.ravel(), data.geom_xmat[i].astype(np.float32))
        assert np.array_equal(geom.rgba, added[0].rgba)
        assert geom.rgba[3] == pytest.approx(0.35)


@pytest.mark.render
def test_a_ghost_has_no_shadow():
    sim = make()
    overhead = torch.tensor([0.0, 0.0, 1.6])  # between the light and the ground, above the picture
    assert np.array_equal(sim.render(0), sim.render(0, ghost=make_pose(root_pos_w=overhead)))


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("root_pos_w", torch.zeros(1, 3), r"root_pos_w.*\(3,\).*\(1, 3\)"),
        ("root_quat_w", torch.zeros(3), r"root_quat_w.*\(4,\).*\(3,\)"),
        ("joint_pos", torch.zeros(29), r"joint_pos.*'go2'.*\(12,\).*\(29,\)"),
        ("joint_pos", torch.full((12,), torch.nan), r"joint_pos.*finite"),
    ],
)
def test_a_ghost_that_is_no_pose_of_the_robot_is_refused_by_its_field(field, values, message):
    with pytest.raises(ValueError, match=message):
        make().render(0, ghost=make_pose(**{field: values}))


# --- films ------------------------------------------------------------------------------------------------------------


class HeldMotion(MotionCommand):
    """A command term that plays a given clip."""

    def __init__(self, num_envs: int):
        self.player = MotionPlayer(MotionLibrary(shipped_motions(GO2), GO2), num_envs)
        self.held: tuple[int, float] | None = None

    def pin(self, clips: torch.Tensor, times: torch.Tensor) -> None:
        self.held = int(clips), float(times)

    def release(self) -> None:
        self.held = None


class Imitation(CoreVectorEnv):
    """Go2 that starts in its reference's pose; actions are PD targets, rad. Falls after ``lifetime`` steps."""

    def __init__(self, lifetime: int = 10**6):
        self.num_envs, self.lifetime = 1, lifetime
        self.sim = make_simulation("mujoco", GO2, SimCfg(), 1, "cpu")
        self.device, self.step_dt = self.sim.device, self.sim.cfg.step_dt
        self.motion = HeldMotion(1)
        self.cfg = make_task_cfg("Legged/Go2-Mimic-v0")
        self.resets: list[dict] = []
        """Seed or options of each reset, and the clip that it started."""

    @property
    def commands(self):
        return SimpleNamespace(terms={"motion": self.motion})

    def reset(self, *, seed=None, options=None):
        ids, player = torch.arange(1), self.motion.player
        clip, time = self.motion.held
        self.resets.append({**(options or {"seed": seed}), "clip": player.library.names[clip]})
        player.start(ids, torch.tensor([clip]), torch.tensor([time]))
        start = player.sample()
        self.sim.reset(ids)
        self.sim.write_root_state(
            ids, start.root_pos_w, start.root_quat_w, start.root_lin_vel_w, start.root_ang_vel_b
        )
        self.sim.write_joint_state(ids, start.joint_pos, start.joint_vel)
        self.sim.forward(ids)
        self.age = 0
        return self.observe(), {}

    def step(self, actions):
        self.sim.set_joint_targets(actions)
        self.sim.step(self.sim.cfg.decimation)
        self.motion.player.advance(self.step_dt)
        self.age += 1
        fell, false = torch.tensor([self.age >= self.lifetime]), torch.zeros(1, dtype=torch.bool)
        return self.observe(), torch.zeros(1), fell, false, {}

    def observe(self):
        ahead = self.motion.player.sample(torch.tensor([self.step_dt]))
        return {
            "reference_mask": torch.ones(1, 1),
            "reference": ahead.joint_pos[:, 0],
            "policy": torch.zeros(1, 45),
        }


GROUPS = ("policy", "reference", "reference_mask")


def clips(*names: str, seconds: float) -> list[Scene]:
    return [Scene(seconds, clip=name) for name in names]


def follow(observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    assert observation.shape == (1, 45)
    assert mask.shape == (1, 1)
    return reference


@pytest.fixture
def envs():
    made = Imitation()
    yield made
    made.sim.close()


@pytest.fixture
def spied(envs, monkeypatch):
    """Contents of each frame instead of an image: name of the clip, reference, ghost and position of the robot."""
    frames = []

    def render(env_id, width, height, ghost):
        player = envs.motion.player
        frames.append(
            (
                player.library.names[int(player.clip[env_id])],
                player.sample()[env_id],
                ghost,
                envs.sim.root_pos_w[0].clone(),
            )
        )
        return np.zeros((height, width, 3), np.uint8)

    monkeypatch.setattr(envs.sim, "render", render)
    return frames


def read(path) -> np.ndarray:
    """The frames of a video. Shape: (T, height, width, 3)."""
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    return np.stack([np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader])


@pytest.mark.render
def test_a_film_is_as_long_as_asked_and_names_its_clips(envs, tmp_path):
    path = tmp_path / "films" / "mimic.mp4"
    film(envs, follow, GROUPS, clips("trot", "turn_left", seconds=0.4), path)
    frames = read(path)
    per_clip = round(0.4 * FRAMES_PER_SECOND)
    assert (frames.shape[0], frames.shape[2]) == (2 * per_clip, VIDEO_WIDTH)
    inked = (frames[:, : LABEL_HEIGHT * VIDEO_WIDTH // RENDER_SIZE[0]].min(-1) > 140).sum((1, 2))
    assert inked.min() > 70
    assert inked[per_clip:].min() > inked[:per_clip].max()  # the longer name


def test_each_frame_shows_the_reference_of_its_moment_beside_the_robot(envs, spied, tmp_path):
    film(envs, follow, GROUPS, clips("stand", "sit_to_stand", seconds=0.4), tmp_path / "mimic.mp4")
    assert [clip for clip, *_ in spied] == ["stand"] * 10 + ["sit_to_stand"] * 10
    for _, reference, ghost, _ in spied:
        torch.testing.assert_close(
            ghost.root_pos_w, reference.root_pos_w + torch.tensor(REFERENCE_OFFSET)
        )
        assert torch.equal(ghost.root_quat_w, reference.root_quat_w)
        assert torch.equal(ghost.joint_pos, reference.joint_pos)


def test_a_reference_that_the_robot_lost_stays_in_the_picture(envs, spied, tmp_path):
    hold = torch.tensor([GO2.default_joint_pos])
    film(envs, lambda *inputs: hold, GROUPS, clips("trot", seconds=2.0), tmp_path / "mimic.mp4")
    _, reference, ghost, robot_pos_w = spied[-1]
    assert reference.root_pos_w[0] > robot_pos_w[0] + LARGEST_DRIFT + 0.3
    beside = ghost.root_pos_w - torch.tensor(REFERENCE_OFFSET) - robot_pos_w
    assert beside[0].item() == pytest.approx(LARGEST_DRIFT, abs=1e-5)
    assert ghost.root_pos_w[2] == reference.root_pos_w[2]


def test_all_clips_are_filmed_where_none_is_named(envs, spied, tmp_path):
    cfg = make_task_cfg("Legged/Go2-Mimic-v0")
    film(envs, follow, GROUPS, make_scenes(cfg, seconds=0.04), tmp_path / "mimic.mp4")
    assert tuple(clip for clip, *_ in spied) == envs.motion.player.library.names


def test_a_robot_that_fell_starts_its_clip_again(envs, spied, tmp_path):
    envs.lifetime = 5
    film(envs, follow, GROUPS, clips("pace", seconds=12 * envs.step_dt), tmp_path / "mimic.mp4")
    again = {"reset_mask": torch.tensor([True]), "clip": "pace"}
    assert envs.resets == [{"seed": 0, "clip": "pace"}, again, again]
    assert envs.motion.held is None  # whoever goes on with the environments finds them as they were


@pytest.mark.render
def test_the_mimic_task_is_filmed(make_vec, tmp_path):
    task = make_vec(
        1, "Legged/Go2-Mimic-v0", array="torch", observations="dict", autoreset_mode="Disabled"
    )
    sizes = [
        task.single_observation_space[group].shape
        for group in ("policy", "reference", "reference_mask")
    ]

    def stand(*inputs):
        assert [values.shape[1:] for values in inputs] == sizes
        return torch.zeros(1, 12)

    film(task, stand, GROUPS, clips("stand", seconds=0.2), tmp_path / "mimic.mp4")
    assert len(read(tmp_path / "mimic.mp4")) == 5


def test_an_unknown_clip_and_a_film_of_no_length_are_refused_before_a_file_is_made(envs, tmp_path):
    cfg, path = make_task_cfg("Legged/Go2-Mimic-v0"), tmp_path / "mimic.mp4"
    with pytest.raises(ValueError, match=r"'moonwalk'.*trot"):
        film(envs, follow, GROUPS, make_scenes(cfg, clips=("trot", "moonwalk")), path)
    with pytest.raises(ValueError, match=r"seconds.*0\.02.*0\.0"):
        film(envs, follow, GROUPS, make_scenes(cfg, clips=("trot",), seconds=0.0), path)
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_rendered_the_film_says_what_to_install_and_leaves_no_file(
    envs, tmp_path, monkeypatch
):
    def no_display(*args, **kwargs):
        raise OSError("cannot open libEGL.so.1")

    monkeypatch.setattr(mujoco, "Renderer", no_display)
    with pytest.raises(RuntimeError, match=r"MUJOCO_GL.*libEGL.*install"):
        film(envs, follow, GROUPS, clips("trot", seconds=0.1), tmp_path / "mimic.mp4")
    assert list(tmp_path.iterdir()) == []


# --- plots ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def figures(monkeypatch):
    """The figures that are saved."""
    saved = []
    save = Figure.savefig

    def savefig(figure, *args, **kwargs):
        saved.append(figure)
        save(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return saved


def make_rows(
    *clips: str, num_steps: int = 100, num_envs: int = 21
) -> dict[str, dict[str, np.ndarray]]:
    """Errors that grow within the clip and differ between environments, which start in different places of it."""
    rng = np.random.default_rng(0)
    phase = (np.arange(num_steps)[:, None] / 50 + rng.uniform(size=num_envs)) % 1.0
    wave = 1.0 + 0.3 * np.sin(2.0 * np.pi * phase)
    return {
        clip: {
            "phase": phase.copy(),
            "joint_error": 0.09 * wave * rng.uniform(0.5, 1.5, num_envs),
            "lin_vel_error": 0.16 * wave * rng.uniform(0.4, 1.6, (num_steps, num_envs)),
        }
        for clip in clips
    }


def curves(axis) -> list:
    """Lines of a panel that are no bars."""
    return [line for line in axis.lines if line.get_linestyle() == "-"]


def test_tracking_plots_show_mean_spread_and_bar_in_each_part_of_each_clip(figures, tmp_path):
    rows = make_rows("trot", "pace", "bound")
    for values in rows["pace"].values():
        values[60:, 5] = np.nan  # one robot fell
    rows["bound"]["phase"][60:, 5] = np.nan
    plot_tracking(rows, tmp_path / "tracking.png")
    assert (tmp_path / "tracking.png").stat().st_size > 10_000
    axes = figures[0].axes
    assert [axis.get_title() for axis in axes] == list(rows)
    bars = {"joint_error": JOINT_ERROR_BAR, "lin_vel_error": LIN_VEL_ERROR_BAR}
    for axis, row in zip(axes, rows.values(), strict=True):
        dashed = {
            line.get_color(): list(line.get_ydata())
            for line in axis.lines
            if line.get_linestyle() == "--"
        }
        for field, line, band in zip(bars, curves(axis), axis.collections, strict=True):
            assert dashed[line.get_color()] == [bars[field]] * 2
            corners = band.get_paths()[0].vertices
            for middle, drawn in zip(*line.get_data(), strict=True):
                of_envs = [
                    values[np.abs(phase - middle) < 0.5 / NUM_CLIP_PARTS].mean()
                    for phase, values in zip(row["phase"].T, row[field].T, strict=True)
                    if (np.abs(phase - middle) < 0.5 / NUM_CLIP_PARTS).any()
                ]
                assert drawn == pytest.approx(np.mean(of_envs))
                edges = corners[np.isclose(corners[:, 0], middle), 1]
                assert (edges.min(), edges.max()) == pytest.approx(
                    tuple(np.quantile(of_envs, (0.1, 0.9)))
                )


def test_tracking_plots_take_one_phase_for_all_environments_and_tensors(figures, tmp_path):
    phase = torch.linspace(0.0, 1.0, 81)
    errors = phase[:, None].expand(81, 4)
    plot_tracking(
        {"trot": {"phase": phase, "joint_error": errors, "lin_vel_error": errors}},
        tmp_path / "one.png",
    )
    for line in curves(figures[0].axes[0]):
        assert len(line.get_xdata()) == NUM_CLIP_PARTS
        np.testing.assert_allclose(line.get_ydata(), line.get_xdata(), atol=0.5 / NUM_CLIP_PARTS)


@pytest.mark.filterwarnings("error")
def test_parts_that_no_environment_came_to_are_left_out(figures, tmp_path):
    rows = make_rows("trot", "pace")
    rows["trot"]["joint_error"][rows["trot"]["phase"] >= 0.5] = np.nan
    for values in rows["pace"].values():
        values[:] = np.nan
    plot_tracking(rows, tmp_path / "tracking.png")
    trot, pace = figures[0].axes
    assert [len(line.get_xdata()) for line in curves(trot)] == [NUM_CLIP_PARTS // 2, NUM_CLIP_PARTS]
    assert [len(line.get_xdata()) for line in curves(pace)] == [0, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"joint_error": np.zeros(100)}, r"joint_error.*'trot'.*\(T, N\).*\(100,\)"),
        ({"joint_error": np.zeros((100, 0))}, r"joint_error.*\(100, 0\)"),
        (
            {"lin_vel_error": np.zeros((9, 21))},
            r"lin_vel_error.*'trot'.*\(100, 21\).*\(9, 21\)",
        ),
        ({"phase": np.zeros(9)}, r"phase.*'trot'.*\(100, 21\).*\(9,\)"),
    ],
)
def test_rows_of_the_wrong_shape_are_refused_by_clip_and_field(changes, message, tmp_path):
    rows = make_rows("trot")
    rows["trot"].update(changes)
    with pytest.raises(ValueError, match=message):
        plot_tracking(rows, tmp_path / "tracking.png")


def test_missing_rows_are_named(tmp_path):
    rows = make_rows("trot")
    del rows["trot"]["joint_error"]
    with pytest.raises(ValueError, match=r"'trot'.*'joint_error'"):
        plot_tracking(rows, tmp_path / "tracking.png")
    with pytest.raises(ValueError, match="clip"):
        plot_tracking({}, tmp_path / "tracking.png")
