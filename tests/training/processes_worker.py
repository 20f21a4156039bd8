"""Program of each process of test_processes.py: ``python processes_worker.py FOLDER``.

With ``torchrun`` there are two of them. The test calls :func:`learn` in one process as well.
"""

import sys
from pathlib import Path

import torch
from rich.console import Console

from legged_envs.evaluation.metrics.task import TaskMetrics
from legged_envs.training import processes
from legged_envs.training.learner.bonus import RewardBonus
from legged_envs.training.learner.style_prior import StylePrior
from legged_envs.training.learner_options import AmpCfg, LagrangeCfg, RndCfg
from legged_envs.training.mimic_options import MimicPPOCfg
from legged_envs.training.options import LSTMCfg, PPOCfg, TrainCfg
from legged_envs.training.prepare import agreed, prepare
from legged_envs.training.scheme_options import CTSCfg
from legged_envs.training.trainer import Trainer

# One mini-batch, unmirrored: so it has the same rows in one process and in several.
WHOLE = {"steps_per_env": 8, "epochs": 1, "mini_batches": 1}
SMALL = {**WHOLE, "hidden": (16,), "symmetry": "off"}
CONSTRAINED = LagrangeCfg(enabled=True, calm_fraction=0.0)
BONUSES = {"amp": AmpCfg(0.1, hidden=(16,)), "rnd": RndCfg(0.1, hidden=(16,))}
CASES = {
    "ppo": ("Legged/Go2-Flat-v0", PPOCfg(**SMALL)),
    "adaptive": ("Legged/Go2-Flat-v0", PPOCfg(**SMALL, lagrange=CONSTRAINED)),
    "bonuses": ("Legged/Go2-Flat-v0", PPOCfg(**SMALL, **BONUSES)),
    "cts": ("Legged/Go2-Blind-v0", CTSCfg(**SMALL)),
    "lstm": ("Legged/Go2-Flat-v0", LSTMCfg(**{**SMALL, "mini_batches": 1}, memory=8)),
    "gaits": ("Legged/Go2-Gaits-v0", PPOCfg(**SMALL)),
    "mimic": ("Legged/Go2-Mimic-v0", MimicPPOCfg(**WHOLE, lagrange=CONSTRAINED)),
}
"""Task and algorithm of each training that one process and two processes make."""


def options(name, folder, iterations=2, **kwargs):
    task, algo = CASES[name]
    return TrainCfg(
        task,
        num_envs=8,
        iterations=iterations,
        run_dir=folder,
        algo=algo,
        episodes=2,
        video=False,
        threads=1,
        **kwargs,
    )


def seeded(expert):
    """Return an expert with random numbers of its own.

    Torch's are not the same in one process and in several after the rows of a rollout are shuffled.
    """

    def draw(n):
        with torch.random.fork_rng():
            torch.manual_seed(n * processes.count())
            return expert(n)

    return draw


def learn(name, folder):
    """Return the gradient of the first update, and rewards and parameters after two updates."""
    trainer = Trainer(agreed(prepare(options(name, folder))), Console(quiet=True))
    algorithm = trainer.algorithm
    bonuses = [part for part in algorithm.parts if isinstance(part, RewardBonus)]
    for part in bonuses:
        if isinstance(part, StylePrior):
            part.expert = seeded(part.expert)
    optimizers = [algorithm.optimizer, *(part.optimizer for part in bonuses)]
    parameters = [each for one in optimizers for each in one.param_groups[0]["params"]]
    gradients = {}

    def keep(optimizer, *_):
        of_optimizer = optimizer.param_groups[0]["params"]
        found = [each.grad.flatten() for each in of_optimizer if each.grad is not None]
        gradients.setdefault(optimizers.index(optimizer), torch.cat(found))

    for optimizer in optimizers:
        optimizer.register_step_pre_hook(keep)
    rewards = []
    for _ in range(2):
        trainer.set_schedule()
        rewards.append(trainer.iterate()["reward"])
    commands = trainer.core.commands.terms.values()
    state = algorithm.get_policy().state_dict()
    for part in bonuses:
        of_part = part.network.state_dict().items()
        state.update({f"{part.name}.{key}": value for key, value in of_part})
    return {
        "gradients": [gradients[number] for number in range(len(optimizers))],
        "rewards": rewards,
        "parameters": torch.cat([each.detach().flatten() for each in parameters]),
        "state": state,
        "ranges": [term.ranges for term in commands if hasattr(term, "ranges")],
    }


def run(name, folder, iterations, **kwargs):
    """Train as the command line does."""
    cfg = options(name, folder, iterations, **kwargs)
    Trainer(agreed(prepare(cfg)), Console(quiet=True)).run()
    # The first process writes its files after the second one is done.
    processes.of_first(0.0)


def main(folder):
    TaskMetrics.EPISODE_SECONDS = 1.2
    with processes.joined():
        run("lstm", folder / "straight", 3, checkpoint_minutes=1e-6, keep=3)
        second = folder / "straight" / "checkpoint_000002.pt"
        run("lstm", folder / "resumed", 3, resume=second)
        results = {name: learn(name, folder / name) for name in CASES}
        values = torch.arange(40.0).view(10, 4)[processes.rank() * 7 :][:7].square()
        results["moments"] = processes.moments(values)
        results["can_restart"] = processes.can_restart()
        torch.save(results, folder / f"{processes.rank()}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
