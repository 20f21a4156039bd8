"""What every engine must do, as tests: ``pytest --pyargs legged_envs.conformance --sim mine``; docs/engines.md."""
