"""What became of a coalition's model."""

ONE_CLASS = 0  # predicts the one class that the coalition holds
SOLVED = 1
UNSOLVED = 2  # left to the loop
TWO_CLASSES = 3  # of three or more: left to the solver of two classes
FAILED = 4  # as the estimator itself would
