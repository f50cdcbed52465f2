"""Numbers and words as people write them."""

import numpy as np


def number_text(number, grouped=True):
    """A number as people write it: an exponent is for extreme ones only.

    It has four digits if they are grouped by commas, else six.

    >>> [number_text(number) for number in (4511000.0, 0.12345, 3.0, 2e-9)]
    ['4,511,000', '0.1235', '3', '2e-09']
    """
    digits = 4 if grouped else 6
    if number == 0 or not 1e-4 <= abs(number) < 1e15:
        return f"{number:.{digits}g}"
    places = max(digits - 1 - int(np.floor(np.log10(abs(number)))), 0)
    text = f"{number:,.{places}f}"
    if not grouped or abs(number) < 10_000:
        text = text.replace(",", "")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


def plural(n, word):
    """A number and a word, with an s unless there is one.

    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"
