"""Estimation of semivalues of a game from the utilities of some of its coalitions.

Coalitions come in blocks, each with random numbers of its own (a `SeedSequence` keyed by game and
block) and added up in the order of blocks, so that neither the number of workers, nor what runs
them, nor where a computation was interrupted changes a bit of the result.
"""
