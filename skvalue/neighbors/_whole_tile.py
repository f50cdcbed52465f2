"""A tile of points that is evaluated as a whole."""


class WholeTile:
    """One slice of points, with the interface of `Halving`, for engines of the CPU."""

    def __init__(self, n_points):
        self._n_points = n_points

    def __iter__(self):
        yield slice(0, self._n_points)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return False
