"""Optuna's trials in the words of the surrogate, for the sampler that people use in their own Optuna studies."""
