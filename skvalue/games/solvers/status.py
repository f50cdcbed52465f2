"""Status of the model of a coalition."""

ONE_CLASS = 0  # predicts the one class of the coalition
SOLVED = 1
UNSOLVED = 2  # left to the loop
TWO_CLASSES = 3  # of three or more classes: left to the solver of two classes
FAILED = 4  # the estimator would raise an error
