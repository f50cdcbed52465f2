"""Clipped gradients of players, and what a model gains along them."""
