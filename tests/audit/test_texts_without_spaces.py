"""Audits of texts whose words have no spaces between them."""

import numpy as np
import pytest

from skvalue.audit import audit_table, check_table
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")

# Phrases of good and of bad reviews, and of neither, in languages without spaces.
PHRASES = {
    "Chinese": (
        ["房间很干净", "服务非常好", "早餐很丰富", "位置方便极了"],
        ["房间太脏了", "服务态度很差", "早餐难吃", "隔音不好太吵"],
        ["我们住了两晚", "酒店在市中心", "价格是三百元", "前台有电梯"],
    ),
    "Japanese": (
        ["部屋がとても綺麗", "サービスが最高", "朝食が美味しい"],
        ["部屋が汚い", "サービスが悪い", "騒音がひどい"],
        ["二泊しました", "駅の近くです", "値段は一万円"],
    ),
    "Thai": (
        ["ห้องสะอาดมาก", "บริการดีเยี่ยม", "อาหารเช้าอร่อย"],
        ["ห้องสกปรกมาก", "บริการแย่", "เสียงดังรบกวน"],
        ["เราพักสองคืน", "โรงแรมอยู่ในเมือง", "ราคาสามพันบาท"],
    ),
}
FEW = {"checks": None, "random_state": 0}


def reviews(language, n=240):
    """Reviews in one column, their labels, and which of these are wrong."""
    rng = np.random.default_rng(0)
    good, bad, neutral = PHRASES[language]
    texts = []
    is_good = np.arange(n) % 2 == 0
    for row in range(n):
        phrases = [*rng.choice(good if is_good[row] else bad, 2)]
        phrases += [*rng.choice(neutral, 2), str(rng.integers(10_000))]
        texts.append("".join(rng.permutation(phrases)))
    is_wrong = np.zeros(n, dtype=bool)
    is_wrong[rng.choice(n, 12, replace=False)] = True
    labels = np.where(is_good ^ is_wrong, "good", "bad")
    return pd.DataFrame({"review": texts}), labels, is_wrong


@pytest.mark.parametrize("language", PHRASES)
class TestReviews:
    @pytest.mark.parametrize("container", ["frame", "list"])
    def test_wrong_labels_are_the_most_doubtful(self, container, language):
        X, labels, is_wrong = reviews(language)
        rows = X if container == "frame" else X["review"].tolist()
        report = audit_table(rows, labels, **FEW)
        assert is_wrong[np.argsort(report.values)[:12]].mean() > 0.9

    def test_notes_say_that_letters_take_the_place_of_words(self, language):
        X, labels, _ = reviews(language)
        [note] = audit_table(X, labels, **FEW).notes
        assert note.startswith("text review: one to three letters in a row")

    def test_the_column_is_no_identifier(self, language):
        X, labels, _ = reviews(language)
        kinds = [finding.kind for finding in check_table(X, labels, cells=False)]
        assert "id" not in kinds


# Columns that are named ---------------------------------------------------------------


def codes(n=120):
    """Codes in which a part tells the label, another one for every row."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2 == 0, "new", "old")
    parts = np.where(y == "new", "qx", "zv")
    numbers = rng.permutation(n)
    X = pd.DataFrame({"code": [f"{parts[i]}{numbers[i]:04d}" for i in range(n)]})
    return X.assign(size=rng.normal(size=n)), y


def test_a_column_of_codes_is_left_out():
    X, y = codes()
    notes = audit_table(X, y, **FEW).notes
    assert any("identifier code: left out" in note for note in notes)


def test_a_column_that_texts_names_is_used():
    X, y = codes()
    report = audit_table(X, y, texts=["code"], **FEW)
    assert any(note.startswith("text code: ") for note in report.notes)
    assert not len(report.listed)


def test_a_name_that_is_no_column_is_refused():
    X, y = codes()
    with pytest.raises(ValueError, match="texts must be columns of X. Got 'kode'"):
        audit_table(X, y, texts=["kode"], **FEW)


def test_the_option_forces_a_text(tmp_path, capsys):
    X, y = codes()
    table = tmp_path / "t.csv"
    X.assign(age=y).to_csv(table, index=False)
    output = ["-o", tmp_path / "t.html", "--checks", "fast"]
    words = ["audit", table, "--target", "age", "--text", "code", *output]
    command(list(map(str, words)))
    assert "text code: all words" in capsys.readouterr().out
