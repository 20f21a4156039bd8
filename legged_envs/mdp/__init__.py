"""The terms of Markov decision processes: plain functions of the batched state, one file per
kind."""
