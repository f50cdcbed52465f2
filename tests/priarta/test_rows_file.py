"""Rows of files: formats, and what is refused without running code."""

import numpy as np
import pytest

from skvalue.priarta.seller import read_rows


def refuses(path, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_rows(path)
    assert path.name in str(caught.value)


def test_array_of_any_name_is_read(tmp_path):
    np.savez(tmp_path / "one.npz", b=np.ones(2))
    assert read_rows(tmp_path / "one.npz").tolist() == [1, 1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_is_no_part_of_a_number(encoding, tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n", encoding=encoding)
    assert read_rows(tmp_path / "rows.csv").tolist() == [[1, 2], [3, 4]]


def test_a_line_with_a_number_sign_is_no_comment(tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n#3,4\n5,6\n")
    refuses(tmp_path / "rows.csv", "rows .*without a header")


class TestOtherContents:
    @pytest.mark.parametrize(
        "arrays", [{"a": np.zeros(2), "b": np.ones(2)}, {}], ids=["two", "none"]
    )
    def test_another_number_of_arrays_is_refused(self, tmp_path, arrays):
        np.savez(tmp_path / "rows.npz", **arrays)
        refuses(tmp_path / "rows.npz", "rows .*one array")

    def test_objects_are_refused(self, tmp_path):
        np.save(tmp_path / "evil.npy", np.array([{}], dtype=object))
        refuses(tmp_path / "evil.npy", "(?s)rows .*allow_pickle=False")

    def test_part_of_an_npz_file_is_refused(self, tmp_path):
        np.savez(tmp_path / "two.npz", a=np.zeros(2), b=np.ones(2))
        content = (tmp_path / "two.npz").read_bytes()
        (tmp_path / "part.npz").write_bytes(content[:99])
        refuses(tmp_path / "part.npz", "(?s)rows .*a whole .npz")

    def test_empty_npy_file_is_refused(self, tmp_path):
        (tmp_path / "part.npy").write_bytes(b"")
        refuses(tmp_path / "part.npy", "(?s)rows .*a whole .npy")

    def test_npz_file_named_npy_is_refused(self, tmp_path):
        np.savez(tmp_path / "one.npz", b=np.ones(2))
        (tmp_path / "one.npz").rename(tmp_path / "other.npy")
        refuses(tmp_path / "other.npy", "(?s)rows .*another kind")

    def test_npy_file_named_npz_is_refused(self, tmp_path):
        np.save(tmp_path / "array.npy", np.zeros(2))
        (tmp_path / "array.npy").rename(tmp_path / "other.npz")
        refuses(tmp_path / "other.npz", "(?s)rows .*another kind")

    def test_csv_file_with_a_header_is_refused(self, tmp_path):
        (tmp_path / "named.csv").write_text("a,b\n1,2\n")
        refuses(tmp_path / "named.csv", "(?s)rows .*without a header")


class TestDamagedFiles:
    @pytest.fixture
    def plain(self, tmp_path):
        """The content of an uncompressed file, as a bytearray."""
        np.savez(tmp_path / "plain.npz", np.arange(9.0))
        return bytearray((tmp_path / "plain.npz").read_bytes())

    def refuses_content(self, tmp_path, content, message):
        (tmp_path / "bad.npz").write_bytes(content)
        refuses(
            tmp_path / "bad.npz", f"a whole .npz file .* Got .*bad.npz: .*{message}"
        )

    def test_flipped_bits_are_refused(self, tmp_path):
        np.savez_compressed(tmp_path / "whole.npz", np.arange(600.0))
        content = bytearray((tmp_path / "whole.npz").read_bytes())
        content[100] ^= 255
        self.refuses_content(tmp_path, content, "Error -3 while decompressing")

    def test_unknown_compression_is_refused(self, tmp_path, plain):
        plain[plain.index(b"PK\x03\x04") + 8] = 99
        plain[plain.index(b"PK\x01\x02") + 10] = 99
        self.refuses_content(tmp_path, plain, "compression method")

    def test_encrypted_file_is_refused(self, tmp_path, plain):
        plain[plain.index(b"PK\x03\x04") + 6] = 1
        plain[plain.index(b"PK\x01\x02") + 8] = 1
        self.refuses_content(tmp_path, plain, "is encrypted")

    def test_header_that_claims_too_many_rows_is_refused(self, tmp_path):
        header = (
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000, 2), }"
        )
        content = b"\x93NUMPY\x01\x00v\x00" + header.ljust(117) + b"\n" + header
        (tmp_path / "long.npy").write_bytes(content)
        refuses(tmp_path / "long.npy", "a whole .npy file .*long.npy: ")


@pytest.mark.parametrize(
    "array",
    [np.array(3.0), np.ones(3, complex), np.array(["1", "2"]), np.zeros(2, "M8[s]")],
    ids=["one number", "complex", "text", "dates"],
)
def test_arrays_that_are_no_rows_of_real_numbers_are_refused(array, tmp_path):
    np.save(tmp_path / "rows.npy", array)
    refuses(tmp_path / "rows.npy", "real numbers. Got .*rows.npy, which holds ")
