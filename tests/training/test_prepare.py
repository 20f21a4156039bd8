"""Options are checked and completed before a training starts."""

from pathlib import Path

import pytest

import legged_envs
from legged_envs import make_task_cfg
from legged_envs.runs.checkpoint_file import OPTION_CLASSES as CLASSES_OF_FILES
from legged_envs.tasks import TASKS, TRAININGS, make_training_defaults
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.training_defaults import TrainingDefaults
from legged_envs.training.checkpoint import OPTION_CLASSES
from legged_envs.training.learner_options import AmpCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import (
    default_config,
    prepare,
    with_defaults,
)
from legged_envs.training.result_size import size_of_results
from legged_envs.training.scheme_options import CTSCfg
from legged_envs.training.task_defaults import coarse_fraction, first_trot_factor

GO2 = "Legged/Go2-Flat-v0"
G1 = "Legged/G1-Flat-v0"


def completed(cfg):
    kind = kind_of(make_task_cfg(cfg.task_id))
    return with_defaults(cfg, kind, make_training_defaults(cfg.task_id))


@pytest.mark.parametrize(
    ("task_id", "usual"),
    [
        (GO2, ((128, 128), 0.5, 0.0005, 0.97, 0.97, "networks")),
        ("Legged/Go2-Rough-v0", ((256, 128), 0.4, 0.002, 0.99, 0.99, "batches")),
        ("Legged/Tron1-WF-Flat-v0", ((128, 128), 0.5, 0.0005, 0.98, 0.99, "batches")),
        ("Legged/K1-Flat-v0", ((128, 128), 0.5, 0.0005, 0.98, 0.99, "batches")),
        ("Legged/G1-Rough-v0", ((256, 128), 0.4, 0.0005, 0.99, 0.99, "batches")),
    ],
)
def test_ppo_has_by_default_what_its_task_calls_for(task_id, usual):
    names = ("hidden", "init_std", "entropy", "gamma", "final_gamma", "symmetry")
    usual = dict(zip(names, usual, strict=True))
    own = {"hidden": (8,), "init_std": 0.3, "entropy": 0.0, "gamma": 0.9, "symmetry": "off"}
    cfg, algo = completed(TrainCfg(task_id))
    assert cfg.algo == algo == PPOCfg(**usual)
    given = PPOCfg(learning_rate=1e-4)
    assert completed(TrainCfg(task_id, algo=given))[1] == PPOCfg(learning_rate=1e-4, **usual)
    assert completed(TrainCfg(task_id, algo=PPOCfg(**own)))[1] == PPOCfg(**own, final_gamma=0.9)
    own["final_gamma"] = 0.95
    assert completed(TrainCfg(task_id, algo=PPOCfg(**own)))[1] == PPOCfg(**own)


@pytest.mark.parametrize(
    ("task_id", "iterations"),
    [
        (GO2, 270),
        ("Legged/AnymalC-Flat-v0", 560),
        ("Legged/K1-Flat-v0", 620),
        ("Legged/Go2-Rough-v0", 1300),
        ("Legged/Go2-Mimic-v0", 260),
    ],
)
def test_a_training_is_counted_in_the_updates_of_its_task_unless_a_time_is_given(
    task_id, iterations
):
    cfg, _ = completed(TrainCfg(task_id))
    assert (cfg.iterations, cfg.minutes) == (iterations, None)
    cfg, _ = completed(TrainCfg(task_id, iterations=7))
    assert (cfg.iterations, cfg.minutes) == (7, None)
    cfg, _ = completed(TrainCfg(task_id, minutes=0.5))
    assert (cfg.iterations, cfg.minutes) == (None, 0.5)
    assert default_config(task_id)["training"] == completed(TrainCfg(task_id))[0]


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({}, (256, 6.0)),
        ({"iterations": 100}, (118, 3.0)),
        ({"iterations": 1}, (32, 3.0)),
        ({"minutes": 10.0}, (256, 6.0)),
        ({"minutes": 2.0}, (171, 4.0)),
        ({"minutes": 0.1, "episodes": 7, "video_seconds": 1.0}, (7, 1.0)),
    ],
)
def test_the_evaluation_and_the_video_of_a_short_training_are_small(options, size):
    assert size_of_results(*completed(TrainCfg(GO2, **options))) == size


def test_a_trot_earns_more_at_first_where_a_task_on_flat_ground_rewards_one():
    def factor(task_id, asked=None, weight=None, warm_start=None):
        task = make_task_cfg(task_id)
        if weight is not None:
            task.rewards["trot"].weight = weight
        cfg = TrainCfg(task_id, first_trot=asked, warm_start=warm_start)
        return first_trot_factor(cfg, task, make_training_defaults(task_id))

    assert factor(GO2) == factor("Legged/AnymalC-Flat-v0") == 2.5
    assert factor(GO2, 1.5) == 1.5
    assert factor("Legged/Go2-Mimic-v0") == 2.5
    assert factor("Legged/Go2-Rough-v0") == factor(G1) == factor(GO2, weight=0.0) == 1.0
    assert factor(GO2, warm_start=Path("run")) == 1.0
    assert factor(GO2, 1.5, warm_start=Path("run")) == 1.5
    with pytest.raises(ValueError, match=r"--first-trot .*Legged/G1-Flat-v0"):
        factor(G1, 2.0)


def test_physics_is_coarse_on_flat_ground_where_it_can_be():
    def share(task_id, asked=None, **sim):
        task = make_task_cfg(task_id)
        for name, value in sim.items():
            setattr(task.sim, name, value)
        return coarse_fraction(
            TrainCfg(task_id, coarse=asked), task, make_training_defaults(task_id)
        )

    assert share(GO2) == share(G1) == share("Legged/Go2-Mimic-v0") == 0.8
    assert share(GO2, 0.3) == 0.3
    assert share("Legged/Go2-Rough-v0") == share("Legged/Go2-Legs-v0") == 0.0
    assert share(GO2, decimation=3) == 0.0
    with pytest.raises(ValueError, match=r"--coarse .*0\.5"):
        share(GO2, 0.5, decimation=3)


def test_a_task_is_registered_with_its_training_or_trained_as_its_kind(monkeypatch):
    monkeypatch.setattr("legged_envs.registration.TASKS", dict(TASKS))
    go2 = TASKS[GO2]

    def short() -> TrainingDefaults:
        return TrainingDefaults(iterations=3, hidden=(8,), gamma=0.9, final_gamma=0.95)

    try:
        for training, iterations in ((short, 3), (None, 270), (f"{__name__}:quick", 4)):
            legged_envs.register("Mine/Training-v0", go2, training=training)
            monkeypatch.setitem(TASKS, "Mine/Training-v0", go2)
            cfg, algo = completed(TrainCfg("Mine/Training-v0"))
            assert cfg.iterations == iterations
            assert algo.hidden == ((8,) if training is short else (128, 128))
        for wrong in (3, "no colon"):
            with pytest.raises(TypeError, match="training"):
                legged_envs.register("Mine/Training-v0", go2, training=wrong)
    finally:
        TRAININGS.pop("Mine/Training-v0", None)


def quick() -> TrainingDefaults:
    return TrainingDefaults(iterations=4)


def test_every_task_of_the_package_has_a_training():
    assert {task_id for task_id in TASKS if task_id.startswith("Legged/")} <= TRAININGS.keys()
    for task_id in TRAININGS:
        assert make_training_defaults(task_id).iterations > 0


def test_nothing_is_written_while_a_training_is_prepared(tmp_path):
    prepared = prepare(TrainCfg(GO2, run_dir=tmp_path / "run"))
    assert prepared.cfg.algo is prepared.algo
    assert prepared.run_dir == tmp_path / "run" and not prepared.run_dir.exists()


def test_checkpoint_files_know_every_class_of_options():
    here = {cls.__module__ for cls in OPTION_CLASSES.values()}
    names = {f"{module}.{name}" for module in here for name in CLASSES_OF_FILES[module]}
    present = {f"{cls.__module__}.{cls.__name__}" for cls in OPTION_CLASSES.values()}
    # Classes that have moved are known by their former places too.
    assert present <= names
    assert {name.rpartition(".")[2] for name in names} == set(OPTION_CLASSES)


@pytest.mark.parametrize(
    ("algo", "message"),
    [
        (PPOCfg(schedule="adaptive"), "--schedule adaptive is for --learner legged_envs"),
        (PPOCfg(symmetry="batches"), "--symmetry is for --learner legged_envs"),
    ],
)
def test_rsl_rl_refuses_what_it_would_ignore(algo, message):
    with pytest.raises(ValueError, match=message):
        prepare(TrainCfg(GO2, learner="rsl_rl", algo=algo))
    assert prepare(TrainCfg(GO2, learner="rsl_rl")).algo.symmetry == "off"


def test_a_group_of_a_style_reward_that_does_not_exist_is_refused():
    amp = AmpCfg(amp_reward_weight=0.1, group="anp")
    with pytest.raises(
        ValueError, match=r"--amp\.group: there is no group 'anp'; did you mean 'amp'"
    ):
        prepare(TrainCfg(GO2, algo=PPOCfg(amp=amp)))


@pytest.mark.parametrize(
    ("algo", "option"),
    [
        (PPOCfg(hidden=()), "hidden"),
        (PPOCfg(amp=AmpCfg(hidden=())), "amp.hidden"),
        (CTSCfg(encoder_hidden=()), "encoder-hidden"),
    ],
)
def test_networks_without_layers_are_refused(algo, option):
    with pytest.raises(ValueError, match=f"--{option} must be widths of layers"):
        prepare(TrainCfg(GO2, algo=algo))
