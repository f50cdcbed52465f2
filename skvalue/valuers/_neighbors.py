"""What the neighbour methods share: engine and device, rows out of memory, an embedding."""

from .._utils.sklearn import HasMethods, StrOptions
from ..neighbors import APPROXIMATE, DEVICES, ENGINES, Rows, check_engine, get_engine

ENGINE_CONSTRAINTS = {
    "engine": [StrOptions({"auto", *ENGINES} - APPROXIMATE)],
    "device": [StrOptions(DEVICES)],
    "embedding": [HasMethods(["fit", "transform"]), callable, None],
}


class NeighboursMixin:
    """A valuer that stands on an engine of `skvalue.neighbors`."""

    _takes_blocks = True

    def _get_engine(self):
        return get_engine(self.engine, self.device)

    def _get_exact_engine(self):
        """The engine, or the exact one of the same library."""
        return get_engine("faiss" if self.engine in APPROXIMATE else self.engine, self.device)

    def _tiles(self, n_players, n_judges, n_features=None):
        """Slices of the judges that are one task each; the same for all of a fit."""
        plan = {} if self._plan is None else self._plan
        shape = n_players, n_judges
        if shape not in plan:
            plan[shape] = self._cut(n_players, n_judges, n_features)
        return plan[shape]

    def _checked(self, X, y):
        X, y = super()._checked(X, y)
        check_engine(self.engine, self.device, X, self.metric)
        kept = getattr(self, "store_neighbors", False)
        if kept or getattr(self, "epsilon", None) is not None:
            what = "store_neighbors=True" if kept else "epsilon"
            if isinstance(X, Rows):
                raise ValueError(
                    f"X must be dense and in memory with {what}. Got sparse rows, rows in a file "
                    "or a Dask array."
                )
            other = self.engine not in ("auto", "numba") and not kept  # see `_stored`
            if self.device == "cuda" or other:
                raise ValueError(
                    f"{what} needs engine='numba' or 'auto', on the CPU. Got "
                    f"engine={self.engine!r} and device={self.device!r}."
                )
        self.approximate_ = self.engine in APPROXIMATE
        return X, y

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
