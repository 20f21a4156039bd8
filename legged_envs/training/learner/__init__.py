"""The learner: PPO over :class:`~legged_envs.storage.RolloutStorageMM`, and the parts that join it.

The environment's observation is a TensorDict of groups, as
:class:`~legged_envs.wrappers.adapters.rsl_rl.RslRlVecEnv` returns it. ``extras`` of a step has the
entries of that class, including ``time_outs``, ``costs`` and ``final_obs``.
"""
