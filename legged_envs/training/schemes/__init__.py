"""Training schemes: what a policy without eyes learns from its past, each in a file of its own.

| scheme | the policy acts on its observation and on |
|---|---|
| ``ts`` | the code that a teacher with privileged observations would give it |
| ``cts`` | the same, learnt beside the teacher |
| ``ee`` | an estimate of velocity, contacts and heights of the feet |
| ``dreamwaq`` | such an estimate, and a code of the next observation |
| ``him`` | an estimate of the velocity, and a code that tells what comes next |
"""
