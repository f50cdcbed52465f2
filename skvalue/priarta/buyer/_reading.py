"""Reads summaries, and checks that they belong to the buyer's model."""

import os

import numpy as np

from ..._utils.untrusted import read_text
from ..seller import Summary, max_file_size, n_radius_counts, own_radii


def read_summaries(model, sources):
    """Summaries of a `BuyerModel`, from objects or files, which are not trusted."""
    if isinstance(sources, str | os.PathLike | Summary):
        raise TypeError(
            "summaries must be a sequence of summaries or paths. Got a single one."
        )
    summaries = []
    for i, source in enumerate(sources):
        summary = source
        if not isinstance(source, Summary):
            summary = _read(source, model.n_dimensions)
        if summary.model != model.fingerprint:
            raise ValueError(
                "summaries must be made with this buyer's model, "
                f"{model.fingerprint[:12]}... Got one of model "
                f"{summary.model[:12]}... at place {i}."
            )
        for name in ("mean_weight", "centre"):
            if not np.array_equal(getattr(summary, name), getattr(model, name)):
                raise ValueError(
                    f"summaries must have the {name} of the buyer's model that they "
                    f"name. Got another at place {i}."
                )
        _check_radius(summary, model, i)
        summaries.append(summary)
    return summaries


def _check_radius(summary, model, place):
    """Refuse a radius that the mechanism of a buyer's model cannot give."""
    if summary.epsilon is None:
        return
    radii = model.max_norm
    if model.has_own_radius:
        radii = own_radii(model)
    is_possible = np.isclose(summary.max_norm, radii, rtol=1e-9, atol=0.0).any()
    if not is_possible or summary.n_radius_counts != n_radius_counts(model):
        raise ValueError(
            "summaries must have a max_norm that the buyer's model allows. Got "
            f"{summary.max_norm:g} by {summary.n_radius_counts} counts at place "
            f"{place}."
        )


def _read(source, n_dimensions):
    """The summary of a file; one too long for n_dimensions is an error."""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"summaries must be paths or Summary objects. Got {type(source).__name__}."
        )
    text = read_text(source, max_file_size(n_dimensions), os.fspath(source))
    try:
        return Summary.from_json(text)
    except ValueError as error:
        raise ValueError(f"{source} is not a valid summary: {error}") from None
