"""Representations of rows, public and the same for all sellers."""
