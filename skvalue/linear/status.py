"""Status of the model of a coalition."""

ONE_CLASS = 0  # predicts the one class of the coalition
SOLVED = 1
UNSOLVED = 2  # left to the loop
FAILED = 3  # the estimator would raise an error
