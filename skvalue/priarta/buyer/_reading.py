"""Reads summaries, and checks that they belong to the buyer's model."""

import numpy as np

from ..seller import ReleasePlan, read_summary


def read_summaries(model, sources, plans=False):
    """Summaries of a `BuyerModel`, from objects or files; with `plans`, also release plans."""
    if isinstance(sources, str | ReleasePlan):
        raise TypeError("summaries must be a sequence of summaries or paths. Got a single one.")
    read = []
    for place, source in enumerate(sources):
        planned = plans and isinstance(source, ReleasePlan)
        summary = source if planned else read_summary(source, model.n_dimensions)
        if summary.model != model.fingerprint:
            raise ValueError(
                f"summaries must be made with this buyer's model, {model.fingerprint[:12]}... "
                f"Got one of model {summary.model[:12]}... at place {place}."
            )
        for name in ("max_norm", "mean_weight", "centre"):
            if not np.array_equal(getattr(summary, name), getattr(model, name)):
                raise ValueError(
                    f"summaries must have the {name} of the buyer's model that they name. Got "
                    f"another at place {place}."
                )
        read.append(summary)
    return read
