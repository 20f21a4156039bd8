"""Gaits that a user sets, in scenes of films and windows, and while a robot walks."""

import socket

import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.cli.play import PlayCfg, make_gait
from legged_envs.envs import unwrap
from legged_envs.evaluation.metrics.gaits import find_gait_command
from legged_envs.mdp.gait_command import GAITS, GaitChoice
from legged_envs.viewing.scenes import Scene, make_scenes
from legged_envs.viewing.watch import make_watched_envs, watch
from legged_envs.viewing.web.session import Session

TASK = "Legged/Go2-Gaits-v0"
GROUPS = ("policy",)


class Standing:
    """A policy that stands, and keeps what it observed."""

    inputs = GROUPS

    def __init__(self):
        self.seen = []

    def check(self, core):
        pass

    def reset(self, ended=None):
        pass

    def __call__(self, observation):
        self.seen.append(observation.clone())
        return torch.zeros(len(observation), 12)


@pytest.fixture
def envs():
    envs = make_watched_envs(TASK, make_task_cfg(TASK), Standing())
    yield envs
    envs.close()


def test_a_tour_shows_every_gait_at_the_middle_of_its_ranges():
    scenes = make_scenes(make_task_cfg(TASK))
    assert [scene.gait.gait for scene in scenes] == list(GAITS)
    assert {scene.command for scene in scenes} == {(0.6, 0.0, 0.0)}
    for scene in scenes:
        assert scene.gait.period == pytest.approx(0.4)
        assert scene.gait.height == pytest.approx(0.275)
        assert scene.gait.pitch == 0.0


def test_options_of_play_choose_one_gait_and_parts_of_its_style():
    options = PlayCfg(TASK, gait="pace", period=0.4, height=0.28)
    (scene,) = make_scenes(make_task_cfg(TASK), (0.5, 0.0, 0.2), gait=make_gait(options))
    assert scene.command == (0.5, 0.0, 0.2)
    assert scene.gait == GaitChoice("pace", 0.4, 0.08, 0.28, 0.0)
    assert make_gait(PlayCfg(TASK)) is None


@pytest.mark.parametrize(
    ("choice", "match"),
    [
        (GaitChoice("amble"), "--gait.*amble"),
        (GaitChoice("trot", period=2.0), r"--period.*2\.0"),
        (GaitChoice(height=0.5), r"--height.*0\.5"),
        (GaitChoice(pitch=float("nan")), "--pitch.*nan"),
    ],
)
def test_a_gait_or_style_that_the_task_has_not_is_named(choice, match):
    with pytest.raises(ValueError, match=match):
        make_scenes(make_task_cfg(TASK), gait=choice)


def test_a_task_without_gaits_takes_none():
    with pytest.raises(ValueError, match="--gait"):
        make_scenes(make_task_cfg("Legged/Go2-Flat-v0"), gait=GaitChoice("trot"))


def test_a_robot_changes_its_gait_without_a_reset_and_observes_it_at_once(envs):
    policy = Standing()
    command = find_gait_command(unwrap(envs))
    scenes = [
        Scene(0.1, (0.5, 0.0, 0.0), gait=GaitChoice("trot", 0.4, 0.08, 0.28, 0.0)),
        Scene(0.1, (0.5, 0.0, 0.0), gait=GaitChoice("bound", 0.5, 0.1, 0.3, 0.1)),
    ]
    offsets = []
    for scene in watch(envs, policy, GROUPS, scenes):
        offsets.append(command.offsets[0].tolist())
        assert command.period.item() == pytest.approx(scene.gait.period)
    assert offsets == [[0.5, 0.0, 0.0]] * 5 + [[0.0, 0.5, 0.0]] * 5
    assert unwrap(envs).episode_steps.item() == 10
    # Command 3, gait 3, style 4: what the policy saw as it acted first in each scene.
    seen = [policy.seen[0][0, 3:10].tolist(), policy.seen[5][0, 3:10].tolist()]
    assert seen[0] == pytest.approx([-1.0, 1.0, 1.0, 0.4, 0.08, 0.28, 0.0])
    assert seen[1] == pytest.approx([1.0, -1.0, 1.0, 0.5, 0.1, 0.3, 0.1])


def test_the_page_sets_the_gait_of_a_robot_that_walks(envs):
    first = GaitChoice("trot", 0.4, 0.08, 0.28, 0.0)
    session = Session(envs, Standing(), Scene(1.0, (0.5, 0.0, 0.0), gait=first))
    session.step()
    session.hold_gait(GaitChoice("pronk", 0.5, 0.1, 0.3, 0.0))
    session.step()
    command = find_gait_command(unwrap(envs))
    assert command.offsets[0].tolist() == [0.0, 0.0, 0.0]
    assert session.scene.gait.gait == "pronk"
    session.restart()
    assert command.offsets[0].tolist() == [0.0, 0.0, 0.0]
    assert command.height.item() == pytest.approx(0.3)


def test_controls_of_the_page_are_those_of_the_gait(envs):
    pytest.importorskip("viser")
    from legged_envs.viewing.web.panel import Panel
    from legged_envs.viewing.web.play import serving

    cfg = make_task_cfg(TASK)
    scenes = make_scenes(cfg, (0.5, 0.0, 0.0), gait=GaitChoice("trot"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with serving(port) as server:
        session = Session(envs, Standing(), scenes[0])
        # A policy of the package has the id of its task.
        session.policy.task_id = TASK
        panel = Panel(server, session, cfg, scenes)
        panel.show_frame()
        command = find_gait_command(unwrap(envs))
        assert command.offsets[0].tolist() == [0.5, 0.0, 0.0]
        panel.controls["gait"].value = "bound"
        panel.controls["period"].value = 0.4
        # No page sends this: it becomes the end of the range.
        panel.controls["height"].value = 9.0
        panel.show_frame()
        assert command.offsets[0].tolist() == [0.0, 0.5, 0.0]
        assert command.period.item() == pytest.approx(0.4)
        assert command.height.item() == pytest.approx(cfg.commands["gait"].height[1])
