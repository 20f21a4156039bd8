"""Networks that treat left and right equally."""

from dataclasses import replace

import gymnasium as gym
import pytest
import torch
from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.policy.policy import load_policy
from legged_envs.training.checkpoint import read_checkpoint
from legged_envs.training.learner.mirror import mirror_of, mirror_of_actions
from legged_envs.training.learner.networks import Actor, make_network
from legged_envs.training.learner.normalization import Normalization
from legged_envs.training.learner.symmetry import (
    SymmetricNormalization,
    image_of,
    is_symmetric,
    make_symmetric,
    restore_symmetry,
)
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.scheme_options import CTSCfg, LSTMCfg
from legged_envs.training.trainer import Trainer, train
from legged_envs.wrappers import SauteBudget

GO2 = "Legged/Go2-Flat-v0"
OPTIONS = PPOCfg(steps_per_env=4, epochs=2, mini_batches=2, hidden=(16, 8), symmetry="networks")


def options(run_dir=None, algo=OPTIONS, **changes) -> TrainCfg:
    return TrainCfg(
        GO2,
        num_envs=8,
        iterations=2,
        episodes=4,
        video=False,
        run_dir=run_dir,
        algo=algo,
        **changes,
    )


@pytest.fixture(scope="module")
def core():
    envs = gym.make_vec(GO2, num_envs=2)
    yield unwrap(envs)
    envs.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory, short_evaluations):
    """A finished run of two updates with symmetric networks."""
    return train(options(tmp_path_factory.mktemp("symmetric") / "run"))


def test_mirrored_observations_give_mirrored_actions_and_the_same_value(core):
    """The definition, by the mirror images of observations and actions."""
    torch.manual_seed(0)
    size = core.group_sizes["policy"]
    observed, acted = mirror_of(core, ("policy",)), mirror_of_actions(core)
    actor = Actor(size, torch.full((12,), 0.5), (16, 8), "elu")
    critic = make_network(size, 1, (16, 8), "elu")
    rows = torch.randn(64, size)
    assert not torch.allclose(actor(observed(rows)), acted(actor(rows)), atol=1e-3)
    make_symmetric(actor, image_of(observed), image_of(acted))
    make_symmetric(critic, image_of(observed))
    for network in (actor, critic):
        network.update_normalizers(3.0 * rows + 1.0)
    torch.testing.assert_close(actor(observed(rows)), acted(actor(rows)), rtol=0, atol=1e-6)
    torch.testing.assert_close(critic(observed(rows)), critic(rows), rtol=0, atol=1e-6)
    assert actor(rows).std() > 0.01
    assert not torch.allclose(actor(observed(rows)), actor(rows), atol=1e-3)


def test_initial_weights_keep_their_variance(core):
    torch.manual_seed(0)
    size = core.group_sizes["policy"]
    network = make_network(size, 1, (512, 256), "elu")
    before = [layer.weight.var().item() for layer in network.mlp if hasattr(layer, "weight")]
    make_symmetric(network, image_of(mirror_of(core, ("policy",))))
    after = [layer.weight.var().item() for layer in network.mlp if hasattr(layer, "weight")]
    assert after[:2] == pytest.approx(before[:2], rel=0.05)


def test_the_statistics_are_those_of_observations_and_their_mirror_images(core):
    mirror = mirror_of(core, ("policy",))
    size = len(mirror.index)
    ours, plain = SymmetricNormalization(size, image_of(mirror)), Normalization(size)
    torch.manual_seed(0)
    for _ in range(3):
        rows = 2.0 * torch.randn(500, size) + torch.linspace(-1.0, 1.0, size)
        ours.update(rows)
        plain.update(torch.cat([rows, mirror(rows)]))
    torch.testing.assert_close(ours._mean, plain._mean, rtol=0, atol=1e-5)
    torch.testing.assert_close(ours._var, plain._var, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours._std, plain._std, rtol=1e-5, atol=1e-5)
    assert ours.state_dict().keys() == plain.state_dict().keys()


def test_trained_networks_are_symmetric_to_the_bit():
    """Steps of Adam round the last entries of odd sizes otherwise. Each update ends without it."""
    algo = replace(OPTIONS, hidden=(50, 26), epochs=20)
    trainer = Trainer(prepare(options(algo=algo)), Console(quiet=True))
    for _ in range(5):
        trainer.iterate()
    algorithm = trainer.algorithm
    rows = torch.randn(16, trainer.core.group_sizes["policy"], dtype=torch.float64)
    mirror, acted = mirror_of(trainer.core, ("policy",)), mirror_of_actions(trainer.core)
    for network in (algorithm.actor, algorithm.critic):
        before = {name: value.clone() for name, value in network.state_dict().items()}
        assert is_symmetric(network)
        restore_symmetry(network)
        assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    # In float64, because processors add up a float32 product in different orders.
    exact = algorithm.actor.double()
    difference = exact(mirror(rows)) - acted(exact(rows))
    assert difference.abs().max() < 1e-12
    std = algorithm.actor.output_std
    assert torch.equal(std, std[acted.index]) and len(std.unique()) > 1


@pytest.mark.parametrize("part", ["mlp.0.weight", "mlp.2.bias", "distribution.std_param"])
def test_a_parameter_that_is_not_symmetric_is_found(core, part):
    size = core.group_sizes["policy"]
    actor = Actor(size, torch.full((12,), 0.5), (16, 8), "elu")
    make_symmetric(actor, image_of(mirror_of(core, ("policy",))), image_of(mirror_of_actions(core)))
    assert is_symmetric(actor)
    with torch.no_grad():
        actor.get_parameter(part).view(-1)[0] += 0.01
    assert not is_symmetric(actor)
    restore_symmetry(actor)
    assert is_symmetric(actor)


def test_the_policy_file_of_a_run_is_symmetric(run, core):
    policy = load_policy(run / "policy.safetensors")
    mirror, acted = mirror_of(core, ("policy",)), mirror_of_actions(core)
    rows = torch.randn(32, len(mirror.index))
    torch.testing.assert_close(policy(mirror(rows)), acted(policy(rows)), rtol=0, atol=1e-5)


def test_costs_have_a_symmetric_critic(tmp_path):
    algo = replace(OPTIONS, constraint=replace(OPTIONS.constraint, method="lagrange"))
    trainer = Trainer(prepare(options(tmp_path, algo, constraints="medium")), Console(quiet=True))
    trainer.iterate()
    assert is_symmetric(trainer.algorithm.cost_critic)


def test_a_warm_start_needs_symmetric_networks(run, tmp_path, short_evaluations):
    def start(algo, source):
        return Trainer(prepare(options(None, algo, warm_start=source)), Console(quiet=True))

    assert is_symmetric(start(OPTIONS, run).algorithm.actor)
    start(replace(OPTIONS, symmetry="batches"), run)
    wider = start(replace(OPTIONS, hidden=(24, 12)), run).algorithm.actor
    assert is_symmetric(wider)
    usual = train(options(tmp_path / "usual", replace(OPTIONS, symmetry="batches")))
    with pytest.raises(ValueError, match="do not treat left and right equally"):
        start(OPTIONS, usual)
    unsaid = replace(OPTIONS, symmetry=None)
    assert start(unsaid, run).algorithm.actor.images is not None
    assert start(unsaid, usual).algorithm.actor.images is None


def test_a_warm_start_from_a_task_without_a_mirror_image_has_usual_networks(
    tmp_path, short_evaluations
):
    changes = {"observations.policy.terms.gravity.mirror": None}
    algo = replace(OPTIONS, symmetry=None)
    with pytest.warns(UserWarning, match="left and right are not treated equally"):
        source = train(options(tmp_path / "run", algo, changes=changes))
    assert read_checkpoint(source)["cfg"].algo.symmetry == "off"
    later = Trainer(prepare(options(None, algo, warm_start=source)), Console(quiet=True))
    assert later.algorithm.actor.images is None


@pytest.mark.parametrize("symmetry", ["networks", "batches"])
def test_a_wrapper_that_adds_observations_switches_symmetry_off(symmetry):
    algo = replace(OPTIONS, symmetry=symmetry)
    with pytest.warns(UserWarning, match="a wrapper changes the 45 elements"):
        trainer = Trainer(
            prepare(options(None, algo)), Console(quiet=True), lambda envs: SauteBudget(envs, 500)
        )
    assert trainer.algorithm.actor.images is None
    trainer.iterate()


@pytest.mark.parametrize(("mirror", "symmetry"), [(True, "batches"), (False, "off")])
def test_a_run_of_an_earlier_version_learns_as_before(run, tmp_path, mirror, symmetry):
    """Its options have ``mirror`` instead of ``symmetry``."""
    checkpoint = read_checkpoint(run)
    vars(checkpoint["cfg"].algo)["mirror"] = mirror
    del checkpoint["cfg"].algo.symmetry
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    assert read_checkpoint(tmp_path)["cfg"].algo.symmetry == symmetry


@pytest.mark.parametrize("algo", [CTSCfg(symmetry="networks"), LSTMCfg(symmetry="networks")])
def test_schemes_are_refused(algo):
    with pytest.raises(ValueError, match="--symmetry networks is for ppo, got"):
        prepare(options(None, algo))


def test_other_learners_and_odd_widths_are_refused():
    with pytest.raises(ValueError, match="--symmetry is for --learner legged_envs"):
        prepare(options(None, learner="rsl_rl"))
    with pytest.raises(ValueError, match="needs even --hidden, got 15"):
        prepare(options(None, replace(OPTIONS, hidden=(16, 15))))
    assert prepare(options(None, replace(OPTIONS, symmetry=None, hidden=(15,)))).algo.symmetry == (
        "batches"
    )


def test_a_height_scan_of_any_width_is_mirrored():
    """Rows of five points from the left to the right of the robot are reversed."""
    y = "observations.policy.terms.height_scan.params.y"
    x = "observations.policy.terms.height_scan.params.x"
    changes = {x: (0.0, 0.1, 0.2), y: (-0.4, -0.2, 0.0, 0.2, 0.4)}
    envs = gym.make_vec("Legged/Go2-Rough-v0", num_envs=1, cfg=changes)
    core = unwrap(envs)
    mirror = mirror_of(core, ("policy",))
    first = core.observations.groups["policy"].size - 15
    scan = mirror(torch.arange(first + 15.0))[first:] - first
    assert scan.tolist() == [4, 3, 2, 1, 0, 9, 8, 7, 6, 5, 14, 13, 12, 11, 10]
    core.cfg.observations["policy"].terms["height_scan"].params["y"] = (-0.4, 0.0, 0.2)
    with pytest.raises(ValueError, match=r"y = \(-0.4, 0.0, 0.2\).*symmetric"):
        mirror_of(core, ("policy",))
    envs.close()
