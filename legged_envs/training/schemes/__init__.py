"""Training schemes for blind policies, which estimate from their observation history.

| scheme | inputs of the policy besides its observation |
|---|---|
| ``ts`` | the latent vector that a teacher computes from privileged observations |
| ``cts`` | the same; teacher and student train at the same time |
| ``ee`` | an estimate of velocity, contacts and heights of the feet |
| ``dreamwaq`` | the same estimate, and a latent vector from which the next observation is decoded |
| ``him`` | an estimate of the velocity, and an embedding that predicts the next observation |
| ``lstm`` | the state of a recurrent cell |
"""
