"""Bayesian models that the mediator fits to releases."""
