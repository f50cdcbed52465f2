"""Rows by distance from points, and label counts within a radius."""

from ._balls import ball_tiles as ball_tiles
from ._balls import balls as balls
from ._copies import copy_clusters as copy_clusters
from ._copies import copy_radius as copy_radius
from ._distance_space import append_columns as append_columns
from ._distances import METRICS as METRICS
from ._distances import exact_distances as exact_distances
from ._engines import APPROXIMATE as APPROXIMATE
from ._engines import DEVICES as DEVICES
from ._engines import ENGINES as ENGINES
from ._engines import check_engine as check_engine
from ._engines import get_engine as get_engine
from ._engines import release_gpu_memory as release_gpu_memory
from ._make_space import make_space as make_space
from ._ranks import Order as Order
from ._ranks import most_rank_workers as most_rank_workers
from ._ranks import rank_tiles as rank_tiles
from ._ranks import ranks as ranks
from ._rows import Rows as Rows
from ._rows import as_rows as as_rows
from ._rows import blank_rows as blank_rows
from ._rows import concatenate_rows as concatenate_rows
from ._rows import read_rows as read_rows
from ._space import Space as Space
