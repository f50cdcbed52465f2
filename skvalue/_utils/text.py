"""Numbers and words as people write them."""

import re
import shlex

import numpy as np

# Letters of scripts without spaces between words, and how many are a word on average:
# Chinese characters and Japanese letters; Thai, Lao, Tibetan, Burmese and Khmer.
_SHORT_WORDS = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]"
)
_LETTERS_OF_SHORT = 2
_LONG_WORDS = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")
_LETTERS_OF_LONG = 5
_SPACES = re.compile(r"\s+")


def count_gaps(text):
    """Number of gaps between words: spaces, and an estimate where a script has none.

    >>> count_gaps("not bad at all"), count_gaps("ok"), count_gaps("房间很干净服务也好")
    (3, 0, 4)
    """
    n_gaps = len(_SPACES.findall(text))
    n_gaps += len(_SHORT_WORDS.findall(text)) // _LETTERS_OF_SHORT
    return n_gaps + len(_LONG_WORDS.findall(text)) // _LETTERS_OF_LONG


def lacks_spaces(texts):
    """Whether most letters of texts are of scripts without spaces between words.

    They are written without spaces if, in addition, a run of letters has more than four
    of them on average: texts may have been taken apart.

    >>> lacks_spaces(["房间很干净服务也好"]), lacks_spaces(["房间 很 干净"])
    (True, False)
    """
    n_letters = 0
    n_unspaced = 0
    n_runs = 0
    for text in texts:
        runs = re.findall(r"\w+", text)
        n_runs += len(runs)
        n_letters += sum(map(len, runs))
        n_unspaced += len(_SHORT_WORDS.findall(text)) + len(_LONG_WORDS.findall(text))
    return n_unspaced > n_letters / 2 and n_letters > 4 * n_runs


def number_text(number, grouped=True):
    """A number as people write it: an exponent is for extreme ones only.

    It has four digits if they are grouped by commas, else six.

    >>> [number_text(number) for number in (4511000.0, 0.12345, 3.0, 2e-9)]
    ['4,511,000', '0.1235', '3', '2e-09']
    """
    number = float(number)  # 1e15 is infinite in float16
    digits = 6
    if grouped:
        digits = 4
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
    if n == 1:
        return f"{n:,} {word}"
    return f"{n:,} {word}s"


def enumeration(names):
    """The first five names, and the number of further ones.

    >>> enumeration(["a", "b"]), enumeration("abcdefg")
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    text = ", ".join(map(str, names[:5]))
    if len(names) > 5:
        return f"{text} and {len(names) - 5} more"
    return text


def shell_word(text):
    """A path or another word as a shell takes it, in quotes if they are needed.

    Double quotes are those of all systems.

    >>> print(shell_word("a.csv"), shell_word("my table.csv"), shell_word('$a".csv'))
    a.csv "my table.csv" '$a".csv'
    """
    if re.fullmatch(r"[\w@%+=:,./\\-]+", text):
        return text
    if re.search(r'["$`!]', text):
        return shlex.quote(text)
    return f'"{text}"'
