"""Labels that are probably one class: spellings and typing errors; and rare labels."""

import re
import unicodedata
from collections import Counter, defaultdict

from sklearn.utils import Bunch

# Smallest ratio of the count of a label to that of a typing error of it.
_TYPO_RATIO = 20

# Labels of fewer rows are rare.
_MIN_ROWS = 5

# Largest length of a code, such as m and M. Two codes that differ in case alone are one
# label if one is at least `_CODE_RATIO` times rarer.
_MAX_CODE_LENGTH = 4
_CODE_RATIO = 5

# Short words that are no codes.
_WORDS = {
    "yes", "no", "ja", "nein", "oui", "non", "si", "true", "male", "high", "low",
    "good", "bad",
}  # fmt: skip

# Classes of letters that cannot be seen, and other such letters: the grapheme joiner,
# fillers of Korean, variation selectors.
_INVISIBLE = ("Cf", "Cc")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10))
)

# What makes another word of a word.
_PREFIXES = ("un", "in", "non", "im", "ir", "a", "re", "dis", "fe", "nicht", "ab", "an")
_ENDINGS = "sern"


def label_spellings(labels):
    """Find labels that differ in their spelling alone, typing errors, and rare labels.

    Parameters
    ----------
    labels : array-like of str
        The label of each row.

    Returns
    -------
    spellings : Bunch
        ``same``: a label -> the commonest one that is equal without case, accents,
        spaces, hyphens, full stops, leading zeros, and letters that cannot be seen
        (such as a zero-width space). Of codes of up to four letters,
        such as m and M, one must be five times rarer. ``typos``: a label of at least 5
        letters -> one that is one letter away (two, of 8 letters) and 20 times
        commoner. ``rare``: other labels of fewer than 5 rows.

    Examples
    --------
    >>> from skvalue.labels import label_spellings
    >>> labels = ["often"] * 40 + ["never"] * 40 + ["Often ", "nevver", "?"]
    >>> spellings = label_spellings(labels)
    >>> spellings.same, spellings.typos, spellings.rare
    ({'Often ': 'often'}, {'nevver': 'never'}, ['?'])
    """
    counts = Counter(map(str, labels))
    labels_by_plain = defaultdict(list)
    for label in counts:
        labels_by_plain[_plain(label)].append(label)

    # The commonest spelling first.
    for spellings in labels_by_plain.values():
        spellings.sort(key=lambda label: (-counts[label], label))
    same = _same_labels(labels_by_plain, counts)
    typos = _typing_errors(labels_by_plain, counts, same)

    counts_of_merged = Counter()
    for label, count in counts.items():
        counts_of_merged[same.get(label, label)] += count
    rare = [
        label
        for label, count in counts_of_merged.items()
        if count < _MIN_ROWS and label not in typos
    ]
    return Bunch(same=same, typos=typos, rare=rare)


def _same_labels(labels_by_plain, counts):
    """Label -> the commonest label of the same plain text."""
    same = {}
    for plain, (commonest, *others) in labels_by_plain.items():
        is_code = len(plain) <= _MAX_CODE_LENGTH and plain not in _WORDS
        for label in others:
            is_frequent = counts[label] > counts[commonest] / _CODE_RATIO
            differs_in_text = _visible(label) != _visible(commonest)
            if not (is_code and is_frequent and differs_in_text):
                same[label] = commonest
    return same


def _typing_errors(labels_by_plain, counts, same):
    """Label -> the commonest label of which it is probably a typing error."""
    totals = {
        plain: sum(counts[label] for label in spellings)
        for plain, spellings in labels_by_plain.items()
    }
    typos = {}
    for plain, spellings in labels_by_plain.items():
        candidates = [
            other
            for other in totals
            if totals[other] >= _TYPO_RATIO * totals[plain] and _is_typo(plain, other)
        ]
        if not candidates:
            continue
        likely = max(candidates, key=totals.get)
        for label in spellings:
            if label not in same:
                typos[label] = labels_by_plain[likely][0]
    return typos


def _visible(label):
    """What can be seen of a label: composed letters, without spaces around them.

    Marks of direction, soft hyphens, joiners, zero-width spaces and marks of byte order
    are formats (Cf); variation selectors and fillers have classes of letters.
    """
    text = unicodedata.normalize("NFC", label)
    return "".join(letter for letter in text if _is_visible(letter)).strip()


def _is_visible(letter):
    """Whether a letter can be seen, or is a space."""
    if letter.isspace():
        return True
    is_format = unicodedata.category(letter) in _INVISIBLE
    return not is_format and letter not in _FILLERS


def _plain(label):
    """A label without case, accents, outer spaces, and signs between its letters."""
    text = unicodedata.normalize("NFKD", _visible(label)).casefold().strip()
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    if re.fullmatch(r"\d+\.0+", text):
        text = text.partition(".")[0]
    # A sign is kept between two digits.
    text = re.sub(
        r"(?<=[^\W\d])[\s_\-–./]+(?=\w)|(?<=\w)[\s_\-–./]+(?=[^\W\d])", " ", text
    )
    return re.sub(r"^0+(?=\d)", "", text.strip(" .,;:\"'"))


def _is_typo(text, other):
    """Whether `text` may be a typing error of `other`.

    It may if it is few edits away, none of them of a digit or a sign.
    """
    max_edits = 2 if min(len(text), len(other)) >= 8 else 1
    if len(text) < 5 or len(other) < 4 or abs(len(text) - len(other)) > max_edits:
        return False
    if len(set(text) ^ set(other)) > 2 * max_edits:
        return False
    if re.sub(r"\D", "", text) != re.sub(r"\D", "", other):
        return False
    if re.sub(r"\w", "", text) != re.sub(r"\w", "", other):
        return False

    # Another form of a word is another word.
    words = text.split()
    other_words = other.split()
    if len(words) == len(other_words):
        for word, other_word in zip(words, other_words):
            if word != other_word and _is_form(word, other_word):
                return False
    return _is_few_edits(text, other, max_edits)


def _is_form(word, other):
    """Whether two words differ by a prefix, such as un-, or an ending, such as -s."""
    short, long = sorted((word, other), key=len)
    has_prefix = any(long == prefix + short for prefix in _PREFIXES)
    return has_prefix or (long[:-1] == short and long[-1] in _ENDINGS)


def _is_few_edits(text, other, max_edits):
    """Whether a text becomes the other one by at most `max_edits` edits of letters.

    Edits are insertions, deletions, replacements and swaps.
    """
    while text and other and text[0] == other[0]:
        text = text[1:]
        other = other[1:]
    if not text or not other or not max_edits:
        return max(len(text), len(other)) <= max_edits

    remainders = [(text[1:], other), (text, other[1:]), (text[1:], other[1:])]
    if text[:2] == other[1::-1]:
        remainders.append((text[2:], other[2:]))
    return any(_is_few_edits(*pair, max_edits - 1) for pair in remainders)
