"""Messages of the library in the words of the command line."""

import re

# Patterns of what is said in Python -> the options of a command.
_WORDS = [
    (r"header=False", "--no-header"),
    (r"header=True", "--header"),
    (r"skip_lines=", "--skip-lines "),
    (r"latest_year=", "--latest-year "),
    (r"max_rows=", "--max-rows "),
    (r"separator=", "--sep "),
    (r"\bstratify=True needs", "--keep-classes needs"),
    (r"\bstratify=True", "--keep-classes"),
    (
        r"\b(encoding|decimal|dates|missing|text|task|drop|groups|fdr|epsilon|delta)=",
        r"--\1 ",
    ),
    (r"\bX_val and y_val to fit", "--validation"),
    (r"\bX_val and y_val|\bX_val, y_val|\bX_val\b", "--validation"),
    (r"\by_val\b", "the target of --validation"),
    (r"[Tt]he '(\w+)' parameter of \w+ must", r"--\1 must"),
    (
        r"Set \w+, max_time or tol[^.]*\.",
        "Value groups of rows, or use another --method.",
    ),
    (r"\brandom_state\b", "--seed"),
    (r"\bn_(sample|group)s=(\d+)", r"the number of \1s, \2"),
    (r"Set another radius", "Use another --method"),
    (r", so that `cv` holds out rows", ""),
    (r"the same rows as X\b", "the rows of the table"),
    (
        r"a valuer that has the method harmful\. Got \w+",
        "--validation and another --method",
    ),
    (
        r"(?<!-)\b(decimal|dates|missing|text|task|target|epsilon|delta|drop) must",
        r"--\1 must",
    ),
    (r"\by must\b", "the target must"),
    (r"\bX must\b", "the rows must"),
]


def in_words(text):
    """A message of the library, in the words of the command line.

    >>> in_words("'d' can be 3 or 4. Pass dates='dmy'; X_val must have 3 columns.")
    "'d' can be 3 or 4. Pass --dates dmy; --validation must have 3 columns."
    """
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    text = re.sub(r"(--[a-z-]+) '([^' ]*)'", r"\1 \2", text)
    return re.sub(r"(--[a-z-]+) (?=[.,;)])", r"\1", text)
