"""Labels that are probably one class: spellings, typing errors; and labels of few
rows."""

import re
import unicodedata
from collections import Counter, defaultdict

from sklearn.utils import Bunch

_RARER = 20  # times, at least, that a typing error is rarer than the label it resembles
_LEAST = 5  # rows, below which a label is rare
_WORDS = {
    "yes", "no", "ja", "nein", "oui", "non", "si", "true", "male", "high", "low", "good", "bad",
}  # fmt: skip
_PREFIXES = ("un", "in", "non", "im", "ir", "a", "re", "dis", "fe", "nicht", "ab", "an")


def label_spellings(labels):
    """Find labels that differ in their spelling alone, typing errors, and rare labels.

    Parameters
    ----------
    labels : array-like of str
        The label of each row.

    Returns
    -------
    found : Bunch
        ``same``: a label -> the commonest one that is equal without case, accents,
        spaces, hyphens, full stops and leading zeros. Of codes of up to four letters,
        such as m and M, one must be five times rarer. ``typos``: a label of at least 5
        letters -> one that is one letter away (two, of 8 letters) and 20 times
        commoner. ``rare``: other labels of fewer than 5 rows.

    Examples
    --------
    >>> from skvalue.labels import label_spellings
    >>> found = label_spellings(["often"] * 40 + ["never"] * 40 + ["Often ", "nevver", "?"])
    >>> found.same, found.typos, found.rare
    ({'Often ': 'often'}, {'nevver': 'never'}, ['?'])
    """
    counts, same, totals, first = Counter(map(str, labels)), {}, {}, {}
    spellings = defaultdict(list)
    for label in counts:
        spellings[_plain(label)].append(label)
    for plain, members in spellings.items():
        members.sort(key=lambda label: (-counts[label], label))
        common = members[0]
        first[plain], totals[plain] = common, sum(counts[label] for label in members)
        for other in members[1:]:
            is_code = len(plain) <= 4 and plain not in _WORDS
            often = counts[other] > counts[common] / 5
            if not (is_code and often and other.strip() != common.strip()):
                same[other] = common
    typos = {}
    for plain in totals:
        near = [
            other
            for other in totals
            if totals[other] >= _RARER * totals[plain] and _is_typo(plain, other)
        ]
        if near:
            likely = first[max(near, key=totals.get)]
            typos |= {label: likely for label in spellings[plain] if label not in same}
    merged = Counter()
    for label, times in counts.items():
        merged[same.get(label, label)] += times
    rare = [
        label
        for label, times in merged.items()
        if times < _LEAST and label not in typos
    ]
    return Bunch(same=same, typos=typos, rare=rare)


def _plain(label):
    """A label without case, accents, spaces around it, and signs between its
    letters."""
    text = unicodedata.normalize("NFKD", label).casefold().strip()
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    if re.fullmatch(r"\d+\.0+", text):
        text = text.partition(".")[0]
    text = re.sub(
        r"(?<=[^\W\d])[\s_\-–./]+(?=\w)|(?<=\w)[\s_\-–./]+(?=[^\W\d])", " ", text
    )
    return re.sub(r"^0+(?=\d)", "", text.strip(" .,;:\"'"))


def _is_typo(text, other):
    """Whether `text` may be a typing error of `other`: few edits, none of a digit or a
    sign."""
    most = 2 if min(len(text), len(other)) >= 8 else 1
    if len(text) < 5 or len(other) < 4 or abs(len(text) - len(other)) > most:
        return False
    if len(set(text) ^ set(other)) > 2 * most:
        return False
    if any(
        re.sub(kind, "", text) != re.sub(kind, "", other) for kind in (r"\D", r"\w")
    ):
        return False
    words = list(zip(text.split(), other.split()))
    same_number = len(text.split()) == len(other.split())
    if same_number and any(a != b and _is_form(a, b) for a, b in words):
        return False
    return _few_edits(text, other, most)


def _is_form(a, b):
    """Whether two words differ by a prefix, such as un-, or an ending, such as -s."""
    short, long = sorted((a, b), key=len)
    prefixed = any(long == prefix + short for prefix in _PREFIXES)
    return prefixed or (long[:-1] == short and long[-1] in "sern")


def _few_edits(a, b, most):
    """Whether `most` insertions, deletions, replacements and swaps of letters turn a to
    b."""
    start = next(
        (i for i, (x, z) in enumerate(zip(a, b)) if x != z), min(len(a), len(b))
    )
    a, b = a[start:], b[start:]
    if not a or not b or not most:
        return max(len(a), len(b)) <= most
    rest = [(a[1:], b), (a, b[1:]), (a[1:], b[1:])]
    if a[:2] == b[1::-1]:
        rest.append((a[2:], b[2:]))
    return any(_few_edits(*pair, most - 1) for pair in rest)
