"""Formulas as MathML, which browsers draw by themselves, without script or network."""

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)
converter = LatexToMathML(fancy_error=False)


def mathml(node, display):
    """Markup of a formula; one that cannot be converted is a warning."""
    try:
        return converter.convert_with_local_state(node.astext(), displaystyle=display)
    except LatexError as error:
        logger.warning("%s: %s", node.astext(), error, location=node)
        return ""


def visit_math(self, node):
    """Write a formula in a line of text."""
    self.body.append(mathml(node, display=False))
    raise nodes.SkipNode


def visit_displayed_math(self, node):
    """Write a formula on a line of its own, with its number if it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(mathml(node, display=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer; `html_math_renderer = "mathml"` selects it."""
    app.add_html_math_renderer(
        "mathml", (visit_math, None), (visit_displayed_math, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
