"""Differential privacy: accounting, calibrated noise, budgets, reports and audits.

A release is described by an immutable event, from which its cost is computed. A ledger is charged
before noise is drawn, and a report states the guarantee.
"""

from .._utils.checks import check_delta as check_delta
from .._utils.checks import check_epsilon as check_epsilon
from . import audit
from . import sentences as sentences
from .accounting import get_delta, get_epsilon
from .calibration import (
    calibrate,
    calibrate_counts,
    calibrate_gaussian,
    calibrate_laplace,
)
from .clipping import clip_rows, clipping_margin
from .events import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    OpaqueEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    event_from_dict,
    event_to_dict,
)
from .gdp import delta_from_mu, detection_ceiling, epsilon_from_mu, mu_from_epsilon
from .ledger import Charge, Ledger
from .mechanisms import (
    SeededNoiseWarning,
    add_noise,
    clip_and_noise,
    draw_noise,
    grid_width,
    noise_source,
    on_grid,
    poisson_sample,
)
from .packing import smat, svec, svec_index
from .relations import convert
from .release import Release
from .report import PrivacyReport, describe_noise, make_report
from .report import warn_of_large_delta as warn_of_large_delta

__all__ = [
    "Charge",
    "ComposedEvent",
    "DiscreteGaussianEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "Ledger",
    "OpaqueEvent",
    "PoissonSampledEvent",
    "PrivacyReport",
    "Release",
    "SeededNoiseWarning",
    "SelfComposedEvent",
    "add_noise",
    "audit",
    "calibrate",
    "calibrate_counts",
    "calibrate_gaussian",
    "calibrate_laplace",
    "clip_and_noise",
    "clip_rows",
    "clipping_margin",
    "convert",
    "delta_from_mu",
    "describe_noise",
    "detection_ceiling",
    "draw_noise",
    "epsilon_from_mu",
    "event_from_dict",
    "event_to_dict",
    "get_delta",
    "get_epsilon",
    "grid_width",
    "make_report",
    "mu_from_epsilon",
    "noise_source",
    "on_grid",
    "poisson_sample",
    "smat",
    "svec",
    "svec_index",
]
