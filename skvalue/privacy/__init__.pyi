"""Differential privacy: accounting, calibrated noise, budgets, reports and audits."""

from .._utils.checks import check_delta, check_epsilon
from . import audit as audit
from . import sentences
from .accounting import get_delta as get_delta
from .accounting import get_epsilon as get_epsilon
from .calibration import calibrate as calibrate
from .calibration import calibrate_counts as calibrate_counts
from .calibration import calibrate_gaussian as calibrate_gaussian
from .calibration import calibrate_laplace as calibrate_laplace
from .clipping import clip_rows as clip_rows
from .clipping import clipping_margin as clipping_margin
from .command_line import add_ledger_command as add_ledger_command
from .command_line import ledger_of
from .events import ComposedEvent as ComposedEvent
from .events import DiscreteGaussianEvent as DiscreteGaussianEvent
from .events import GaussianEvent as GaussianEvent
from .events import LaplaceEvent as LaplaceEvent
from .events import OpaqueEvent as OpaqueEvent
from .events import PoissonSampledEvent as PoissonSampledEvent
from .events import SelfComposedEvent as SelfComposedEvent
from .events import event_from_dict as event_from_dict
from .events import event_to_dict as event_to_dict
from .gdp import delta_from_mu as delta_from_mu
from .gdp import detection_ceiling as detection_ceiling
from .gdp import epsilon_from_mu as epsilon_from_mu
from .gdp import mu_from_epsilon as mu_from_epsilon
from .ledger import Charge as Charge
from .ledger import Ledger as Ledger
from .mechanisms import SeededNoiseWarning as SeededNoiseWarning
from .mechanisms import add_noise as add_noise
from .mechanisms import clip_and_noise as clip_and_noise
from .mechanisms import draw_noise as draw_noise
from .mechanisms import grid_width as grid_width
from .mechanisms import noise_source as noise_source
from .mechanisms import on_grid as on_grid
from .mechanisms import poisson_sample as poisson_sample
from .packing import smat as smat
from .packing import svec as svec
from .packing import svec_index as svec_index
from .relations import convert as convert
from .release import Release as Release
from .report import PrivacyReport as PrivacyReport
from .report import describe_noise as describe_noise
from .report import make_report as make_report
from .report import warn_of_large_delta
