"""Compiled loops of the CPU engine."""
