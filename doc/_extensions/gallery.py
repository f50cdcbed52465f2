"""Functions that sphinx-gallery calls by name."""

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.transforms import Bbox
from sphinx.util import logging
from sphinx_gallery import gen_rst
from sphinx_gallery.scrapers import matplotlib_scraper

logger = logging.getLogger(__name__)
started = {}
panels = Path(tempfile.mkdtemp())


def panel(figure):
    """The box, in inches, of the pictures of a figure, or else of its first panel."""
    figure.draw_without_rendering()
    shown = [axes for axes in figure.axes if axes.images] or figure.axes[:1]
    box = Bbox.union([axes.get_tightbbox() for axes in shown])
    return box.transformed(figure.dpi_scale_trans.inverted()).padded(0.08)


def scrape(block, block_vars, gallery_conf):
    """Save the figures, and the panel of the first one that the thumbnail shows."""
    picture = panels / f"{Path(block_vars['src_file']).stem}.png"
    if plt.get_fignums() and not picture.exists():
        figure = plt.figure(plt.get_fignums()[0])
        figure.savefig(picture, bbox_inches=panel(figure), dpi=200)
    return matplotlib_scraper(block, block_vars, gallery_conf)


_save_thumbnail = gen_rst.save_thumbnail


def _save_panel(image_path_template, src_file, script_vars, file_conf, gallery_conf):
    picture = panels / f"{Path(src_file).stem}.png"
    if picture.exists():
        file_conf = {"thumbnail_path": str(picture), **file_conf}
    _save_thumbnail(image_path_template, src_file, script_vars, file_conf, gallery_conf)


gen_rst.save_thumbnail = _save_panel


def log_cpu_time(gallery_conf, fname, when):
    """Log the CPU seconds of a script, with its threads and finished child
    processes."""
    seconds = sum(os.times()[:4]) - started.get(fname, 0)
    if when == "before":
        started[fname] = seconds
    elif seconds > 0.01:  # else the script has not changed since it last ran
        logger.info("CPU seconds of %s: %.1f", Path(fname).name, seconds)
