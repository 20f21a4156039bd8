"""Motion-mimic PPO and distillation over :class:`~legged_envs.storage.RolloutStorageMM`.

The environment's observation is a TensorDict, float32, of

- ``policy`` (num_envs, P) and ``critic`` (num_envs, C);
- ``reference`` (num_envs, R) and ``critic_reference`` (num_envs, CR): windows of future frames, frame after frame;
- ``reference_mask`` and ``critic_reference_mask`` (num_envs, 1): 1 where there is a reference, else 0, and then the
  window's content has no influence on anything;
- ``amp`` (num_envs, S), with an adversarial motion prior: the states that it compares.

``extras`` of a step are those of :class:`~legged_envs.wrappers.rsl_rl.RslRlVecEnv`: ``time_outs`` (num_envs,) bool,
``costs`` (num_envs, K), and ``final_obs``, the true last observations, on steps that end episodes.
"""
