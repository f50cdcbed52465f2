"""Shared code of the methods that train models on coalitions."""
