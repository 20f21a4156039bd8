"""Motion-mimic PPO and distillation over :class:`~legged_envs.storage.RolloutStorageMM`.

The environment's observation is a TensorDict, float32, of

- ``policy`` (num_envs, P) and ``critic`` (num_envs, C);
- ``reference`` (num_envs, R) and ``critic_reference`` (num_envs, CR): windows of future frames, frame after frame;
- ``reference_mask`` and ``critic_reference_mask`` (num_envs, 1): 0 where there is no reference, so that the window's
  content has no influence on anything, else 1;
- ``amp`` (num_envs, S), with an adversarial motion prior: the states that it compares.

``extras`` of a step are those of :class:`~legged_envs.wrappers.rsl_rl.RslRlVecEnv`: ``time_outs`` (num_envs,) bool,
``costs`` (num_envs, K), and ``final_obs``, the true last observations, on steps that end episodes.
"""
