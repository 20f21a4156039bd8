"""Datasets: records equal the values of the environment, and only data that fit the task are read."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import signal
import sys
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

from legged_envs import cli
from legged_envs.envs import unwrap
from legged_envs.evaluation.record import load_dataset, record
from legged_envs.evaluation.record_options import RecordCfg
from legged_envs.motion_reading import MotionReading
from legged_envs.motions import shipped_motions
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import load_shipped_policy, save_policy
from legged_envs.robots import GO2 as GO2_ROBOT

pytestmark = pytest.mark.usefixtures("short_evaluations")
GO2 = "Legged/Go2-Flat-v0"
DATASET = "go2/short-v0"

CHANGES = {"episode_length_s": 1.0, "terminations.fallen.params.max_projected_gravity": -0.99}
SHORT = RecordCfg(GO2, DATASET, episodes=5, num_envs=3, noise=0.5, changes=CHANGES)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory):
    """Five episodes of three robots, most of which fall."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.mktemp("datasets")))
        minari = pytest.importorskip("minari")
        record(SHORT)
        yield minari.load_dataset(DATASET)


def test_a_dataset_holds_what_the_vector_environment_gave(dataset):
    """As many episodes of each robot, whoever falls first, and each as a loop over the environment has it."""
    policy, generator = load_shipped_policy(GO2), torch.Generator().manual_seed(SHORT.seed)
    episodes: list[list[list[tuple]]] = [[[]] for _ in range(3)]
    with closing(gym.make_vec(GO2, num_envs=3, cfg={**policy.changes, **SHORT.changes})) as envs:
        seen, _ = envs.reset(seed=SHORT.seed)
        while any(len(own) < 3 for own in episodes):
            action = policy(torch.from_numpy(seen)) + SHORT.noise * torch.randn(
                3, 12, generator=generator
            )
            action = action.clamp(-1.0, 1.0).numpy()
            after, reward, terminated, truncated, info = envs.step(action)
            last = info.get("final_obs", after)
            for i, own in enumerate(episodes):
                ends = terminated[i], truncated[i]
                own[-1].append(
                    (
                        seen[i],
                        action[i],
                        reward[i],
                        *ends,
                        info["cost"][i],
                        info["costs"][i],
                        last[i],
                    )
                )
                own += [[]] if any(ends) else []
            seen = after
    expected = {
        own[0][0].tobytes(): own
        for robot, count in zip(episodes, (2, 2, 1), strict=True)
        for own in robot[:count]
    }
    assert len(dataset) == len(expected) == 5 and any(
        episode.terminations[-1] for episode in dataset
    )
    for episode in dataset:
        columns = [
            np.array(column)
            for column in zip(*expected[episode.observations[0].tobytes()], strict=True)
        ]
        observations, actions, rewards, terminated, truncated, cost, costs, following = columns
        assert np.array_equal(episode.observations, np.concatenate((observations, following[-1:])))
        assert np.array_equal(episode.actions, actions) and np.array_equal(episode.rewards, rewards)
        assert np.array_equal(episode.terminations, terminated) and np.array_equal(
            episode.truncations, truncated
        )
        assert np.array_equal(episode.infos["cost"], cost) and np.array_equal(
            episode.infos["costs"], costs
        )


def test_the_environment_is_recovered_and_repeats_an_episode(dataset):
    with closing(dataset.recover_environment()) as env:
        seen, _ = env.reset(seed=SHORT.seed)  # of one robot, which does as the first of many
        episode = next(each for each in dataset if np.array_equal(each.observations[0], seen))
        for t, action in enumerate(episode.actions):
            seen, reward, terminated, truncated, info = env.step(action)
            assert (
                np.array_equal(seen, episode.observations[t + 1]) and reward == episode.rewards[t]
            )
            assert (terminated, truncated) == (episode.terminations[t], episode.truncations[t])
            assert info["cost"] == episode.infos["cost"][t]
        assert terminated or truncated
    about = dataset.storage.metadata
    assert (
        about["cost_names"] == [*env.unwrapped.cost_names]
        and about["noise"] == 0.5
        and about["made_with"]["versions"]
    )


@pytest.mark.usefixtures("dataset")
def test_actions_are_recorded_as_the_environment_takes_them(tmp_path):
    changes = {"action_limit": 2.0, "episode_length_s": 0.1}
    with closing(gym.make_vec(GO2, num_envs=1, cfg=changes)) as envs:
        network = torch.nn.Linear(45, 12).requires_grad_(False)
        network.bias.copy_(torch.tensor([1.5, -5.0] * 6))
        network.weight.zero_()
        save_policy(
            tmp_path / "policy.safetensors", network, contract(GO2, unwrap(envs), changes=changes)
        )
    written = record(RecordCfg(GO2, "go2/limit-v0", tmp_path, episodes=2))
    assert written.action_space.high.max() == 2.0
    np.testing.assert_array_equal(
        written[0].actions, np.tile(np.float32([1.5, -2.0] * 6), (len(written[0]), 1))
    )


@pytest.mark.usefixtures("dataset")
def test_a_policy_of_several_groups_is_recorded_with_all_of_them():
    changes = {"episode_length_s": 0.1, "commands.motion.clips": ("trot",)}
    written = record(RecordCfg("Legged/Go2-Mimic-v0", "go2/mimic-v0", episodes=2, changes=changes))
    with closing(written.recover_environment()) as env:
        assert env.observation_space == written.observation_space and env.unwrapped.cfg.commands[
            "motion"
        ].clips == ["trot"]
    assert written[1].observations["critic_reference"].shape[0] == len(written[1]) + 1


@pytest.mark.usefixtures("dataset")
def test_an_interrupted_recording_keeps_the_episodes_that_were_over():
    def interrupt(what: str, done: float, text: str) -> None:
        if done > 0.3:
            raise KeyboardInterrupt

    changes = {"episode_length_s": 0.1}
    with pytest.raises(KeyboardInterrupt):
        record(RecordCfg(GO2, "go2/part-v0", episodes=5, num_envs=1, changes=changes), interrupt)
    assert load_dataset("go2/part-v0", GO2).total_episodes == 2


@pytest.mark.parametrize(
    ("change", "task", "message"),
    [
        (
            {},
            "Legged/G1-Flat-v0",
            rf"'{DATASET}'.*{GO2}.*'Legged/G1-Flat-v0'",
        ),
        ({"task_id": "Legged/Go2-Flat-v1"}, GO2, "Legged/Go2-Flat-v1"),
        (
            {"cost_names": ["slip"]},
            GO2,
            r"cost_names \['slip'\].*\['joint_position'",
        ),
        ({"cost_limits": [0.5] * 6}, GO2, r"cost_limits \[0.5, 0.5.*\[0.025"),
        (
            {"contract": {"control_dt": 0.01}},
            GO2,
            r"control_dt 0.01.* 0.02",
        ),
        ({"contract": {"action_scale": [1.0]}}, GO2, r"action_scale \[1.0\].*\[0.6"),
        ({"minari_version": "9.9"}, GO2, "does not support the dataset"),
        (
            {"task_id": 5},
            GO2,
            rf"'{DATASET}'.*AttributeError",
        ),
        ({"contract": [1]}, GO2, rf"'{DATASET}'.*TypeError"),
        ({"action_space": 5}, GO2, rf"'{DATASET}'.*legged-envs record"),
    ],
)
def test_a_dataset_of_another_task_or_version_is_refused(
    change, task, message, dataset, tmp_path, monkeypatch
):
    shutil.copytree(Path(dataset.spec.data_path).parents[1], tmp_path / "go2")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    file = tmp_path / DATASET / "data" / "metadata.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        load_dataset(DATASET, task)


def test_a_dataset_that_is_not_whole_is_told(dataset, tmp_path, monkeypatch):
    shutil.copytree(Path(dataset.spec.data_path).parents[1], tmp_path / "go2")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    file = tmp_path / DATASET / "data" / "main_data.hdf5"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ValueError, match=rf"'{DATASET}'.*OSError"):
        load_dataset(DATASET, GO2)
    (file.parent / "metadata.json").unlink()
    with pytest.raises(ValueError, match=rf"'{DATASET}'.*legged-envs record"):
        load_dataset(DATASET, GO2)


@pytest.mark.usefixtures("dataset")
def test_the_offline_example_clones_evaluates_and_refuses(tmp_path, monkeypatch, capsys):
    example = str(Path(__file__).parents[2] / "examples" / "offline.py")
    words = [
        DATASET,
        "--updates",
        "5",
        "--episodes",
        "2",
        "--safest",
        "0.5",
        "--save",
        str(tmp_path / "clone.safetensors"),
    ]
    monkeypatch.setattr(sys, "argv", [example, *words])
    runpy.run_path(example)
    printed = capsys.readouterr().out
    assert (
        "recorded: 5 episodes" in printed
        and "cloned: 2 episodes" in printed
        and "costs per step" in printed
    )
    for name, message in (
        (DATASET, "Legged/Go2-Flat-v0"),
        ("go2/none-v0", "go2/none-v0"),
    ):
        monkeypatch.setattr(sys, "argv", [example, name, "--env-id", "Legged/G1-Flat-v0"])
        with pytest.raises(SystemExit, match=message):
            runpy.run_path(example)
    for option, value, message in (
        ("--safest", "nan", "--safest"),
        ("--safest", "2", "--safest"),
        ("--updates", "0", "--updates"),
        ("--episodes", "0", "--episodes"),
        ("--save", "clone.pt", "--save"),
        ("--env-id", "nowhere:Mine-v0", "nowhere"),
    ):
        monkeypatch.setattr(sys, "argv", [example, DATASET, option, value])
        with pytest.raises(SystemExit, match=f"offline.py: .*{message}"):
            runpy.run_path(example)


@pytest.mark.usefixtures("dataset")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["record", GO2, "--name", "walk"],
            r"'walk'.*\[NAMESPACE/\]NAME-vN",
        ),
        (["record", GO2, "--name", "../walk-v0"], "'../walk-v0'"),
        (["record", GO2, "--name", DATASET], f"'{DATASET}'"),
        (
            ["record", GO2, "--name", "go2/x-v0", "--episodes", "0"],
            "--episodes",
        ),
        (
            ["record", GO2, "--name", "go2/x-v0", "--noise", "-1"],
            "--noise",
        ),
        (
            ["record", GO2, "--name", "go2/x-v0", "--policy", "none"],
            "'none'",
        ),
    ],
)
def test_a_mistake_of_record_is_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1 and re.search(message, error), error


# --- strangers and interruptions ------------------------------------------------------------------


def test_what_a_dataset_names_is_not_called(dataset, tmp_path, monkeypatch):
    """Minari's own recover_environment calls the entry point, and each wrapper, that the file names."""
    folder = Path(dataset.spec.data_path).parent
    copied = tmp_path / "go2" / "evil-v0"
    shutil.copytree(folder, copied)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    file = copied / "data" / "metadata.json"
    metadata = json.loads(file.read_text())
    spec = json.loads(metadata["env_spec"])
    command = f"touch {tmp_path / 'RAN'}"
    wrapper = {"name": "evil", "entry_point": "os:system", "kwargs": {"command": command}}
    spec["entry_point"] = spec["vector_entry_point"] = "os:system"
    spec["additional_wrappers"] = [wrapper]
    spec["kwargs"] |= {"command": command, "task_id": f"this:{GO2}", "render_mode": "human"}
    metadata |= {"env_spec": json.dumps(spec), "task_id": f"this:{GO2}"}
    file.write_text(json.dumps(metadata))
    monkeypatch.delitem(sys.modules, "this", raising=False)
    loaded = load_dataset("go2/evil-v0", GO2)
    assert len(loaded) == len(dataset)
    assert not (tmp_path / "RAN").exists()
    assert "this" not in sys.modules


@pytest.mark.parametrize("write", [1, 2, 3, 4, 6, 9])
def test_ctrl_c_leaves_the_episodes_that_were_over(write, tmp_path, monkeypatch):
    """It comes in the middle of a write of the file without which no dataset can be read."""
    storage = pytest.importorskip("minari.dataset.minari_storage")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    writes = []

    def interrupted(values, file, **options):
        writes.append(len(writes))
        file.write("{")
        file.flush()
        if len(writes) == write:
            os.kill(os.getpid(), signal.SIGINT)
        file.seek(0)
        return dump(values, file, **options)

    dump = json.dump
    monkeypatch.setattr(storage.json, "dump", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record(RecordCfg(GO2, DATASET, episodes=50, num_envs=2, changes={"episode_length_s": 0.1}))
    monkeypatch.undo()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert len(load_dataset(DATASET, GO2)) >= 1


def test_a_dataset_of_motion_files_makes_its_environment_from_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    trot = shipped_motions(GO2_ROBOT, "trot")[0]
    quat = trot.root_quat_w[:, [1, 2, 3, 0]]
    columns = np.hstack((trot.root_pos_w, quat, trot.joint_pos))
    np.savetxt("mine.csv", columns, delimiter=",")
    task_id = "Legged/Go2-Mimic-v0"
    options = RecordCfg(
        task_id,
        "go2/mine-v0",
        episodes=2,
        num_envs=2,
        changes={"episode_length_s": 0.2},
        motions=(Path("mine.csv"),),
        motion=MotionReading(rate=60.0),
    )
    record(options)
    # Paths are absolute: the dataset is read from anywhere.
    monkeypatch.chdir("/")
    assert len(load_dataset("go2/mine-v0", task_id)) == 2
    kwargs = minari.load_dataset("go2/mine-v0").env_spec.kwargs
    env = gym.make(task_id, cfg=kwargs["cfg"], observations=kwargs["observations"])
    library = env.unwrapped.core.commands.terms["motion"].player.library
    assert (library.names, library.frame_rate) == (("mine",), 60.0)
    env.close()
