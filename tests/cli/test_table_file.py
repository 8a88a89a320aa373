"""Tables from files of every kind, and files that are none."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading

import pandas as pd
import pytest
from cli.houses import SIZE, TOWN

from hikernel.cli import table_file
from hikernel.cli.console import BadInput, Console
from hikernel.cli.table_file import TableOptions, read_table_file


def read(path, text=(), **options):
    return read_table_file(str(path), TableOptions(**options), Console(quiet=True), text)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_every_kind_of_file_is_the_same_table(tmp_path, houses):
    text = houses.to_csv(index=False).encode()
    write(tmp_path, "a.csv", text)
    write(tmp_path, "b.csv.gz", gzip.compress(text))
    write(tmp_path, "c.CSV.BZ2", bz2.compress(text))
    write(tmp_path, "d.csv.xz", lzma.compress(text))
    write(tmp_path, "e.txt", b"\xef\xbb\xbf" + text)  # with a byte order mark
    houses.to_csv(tmp_path / "f.tsv", sep="\t", index=False)
    houses.to_csv(tmp_path / "g.csv", sep=";", index=False)
    houses.to_csv(tmp_path / "h.csv", sep="|", index=False)
    houses.to_csv(tmp_path / "i.tsv.gz", sep="\t", index=False)
    houses.to_parquet(tmp_path / "j.parquet")
    houses.to_feather(tmp_path / "k.feather")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 11
    for path in files:
        pd.testing.assert_frame_equal(read(path), houses, check_dtype=False)


def test_a_pipe_can_be_read_once(tmp_path, houses):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = houses.to_csv(index=False).encode()
    writer = threading.Thread(target=lambda: pipe.write_bytes(content))
    writer.start()
    found = read(pipe)
    writer.join()
    pd.testing.assert_frame_equal(found, houses, check_dtype=False)


def test_the_options_of_a_text_file(tmp_path):
    path = write(tmp_path, "a.csv", "a_b_c\n1,5_x_?\n2,5_y_3\n")
    found = read(path, delimiter="_", decimal=",", missing=("?", "y"))
    assert found["a"].tolist() == [1.5, 2.5]
    assert found["b"].isna().tolist() == [False, True]
    assert found["c"].isna().tolist() == [True, False]
    path = write(tmp_path, "b.csv", "größe\n1\n".encode("latin-1"))
    assert list(read(path, encoding="latin-1")) == ["größe"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_words_that_are_lost_are_said(name, tmp_path):
    content = b"pool,n,town\nNone,NA,?\nbig,1,Oslo\nnull,2,\nNone,3,Bergen\n,4,Oslo\n"
    path = write(tmp_path, name, gzip.compress(content) if name.endswith("gz") else content)
    console = Console(quiet=True)
    found = read_table_file(str(path), TableOptions(missing=("?",)), console)
    assert found.isna().sum().tolist() == [4, 1, 2]
    assert console.notes == [
        "Column 'pool': taken for missing values: 'None' (2), 'null' (1); --keep-na keeps such "
        "words as text."
    ]
    console = Console(quiet=True)
    found = read_table_file(str(path), TableOptions(missing=("?",), keep_na=True), console)
    assert found["pool"].tolist()[:4] == ["None", "big", "null", "None"]
    assert found.isna().sum().tolist() == [1, 0, 2]
    assert console.notes == []


def test_the_delimiter_is_not_a_comma_within_fields(tmp_path):
    path = write(tmp_path, "a.csv", 'name;size\n"a, b";1,5\n"c, d";2,5\n')
    assert list(read(path)) == ["name", "size"]
    path = write(tmp_path, "b.csv", "only\n1\n2\n")
    assert list(read(path)) == ["only"]


def test_text_stays_text(tmp_path):
    path = write(tmp_path, "a.csv", "code,n\n01,1\n2,2\n,3\n")
    assert read(path)["code"].tolist()[:2] == [1.0, 2.0]
    found = read(path, text=["code", "not there"])["code"]
    assert found.tolist()[:2] == ["01", "2"]
    assert pd.isna(found[2])


def test_the_named_index_of_a_frame_is_a_column(tmp_path, houses):
    houses.rename_axis("id").to_parquet(tmp_path / "a.parquet")
    assert list(read(tmp_path / "a.parquet"))[:2] == ["id", SIZE]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"", "'{path}' is empty."),
        ("a.csv", b"a,b\n", "'{path}' has no rows, only a header."),
        ("a.csv", b"a,b\n1,2\n3,4,5\n", "line 3 has 3 fields and the header 2, with the delim"),
        ("a.csv", b"a,b\n1,2,3\n3,4,5\n", "have more fields than its header"),
        ("a.csv", b"a,b,a\n1,2,3\n", "'{path}' has more than one column 'a'; rename them."),
        ("a.csv", "größe\n1\n".encode("latin-1"), "is not UTF-8"),
        ("a.csv.gz", b"not compressed", "'{path}' cannot be read: Not a gzipped file"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:20], "'{path}' cannot be read: "),
        ("a.csv.xz", b"not compressed", "'{path}' cannot be read: "),
        ("a.parquet", b"not that", "'{path}' cannot be read as Parquet"),
        ("a.feather", b"not that", "'{path}' cannot be read as Feather"),
        ("a.xlsx", b"PK", "must be .csv, .tsv (with .gz, .bz2 or .xz), .parquet or .feather."),
        ("a", b"a,b\n1,2\n", "The ending of '{path}' does not tell what it is"),
        ("a.parquet.gz", b"", "does not tell what it is"),
    ],
)
def test_what_is_no_table_is_said_in_a_sentence(name, content, sentence, tmp_path):
    path = write(tmp_path, name, content)
    with pytest.raises(BadInput) as caught:
        read(path)
    assert sentence.format(path=path) in caught.value.message


@pytest.mark.parametrize("ending", ["feather", "parquet"])
def test_text_that_is_damaged_inside_a_file_is_found_before_pandas_follows_it(ending, tmp_path):
    frame = pd.DataFrame({"town": ["Bergen", "Oslo"]})
    path = tmp_path / f"a.{ending}"
    if ending == "feather":
        frame.to_feather(path, compression="uncompressed")
    else:
        frame.to_parquet(path, compression="none", use_dictionary=False, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"Bergen", b"Berg\xff\xff"))
    with pytest.raises(BadInput, match="cannot be read as"):
        read(path)


def test_a_file_that_claims_more_than_there_is_memory_for(tmp_path, houses, monkeypatch):
    houses.to_parquet(tmp_path / "a.parquet")

    def fail(path):
        raise MemoryError("malloc of size 39406496739491968 failed")

    monkeypatch.setattr(pd, "read_parquet", fail)
    with pytest.raises(BadInput, match="claims more data than there is memory for"):
        read(tmp_path / "a.parquet")


def test_files_that_are_not_there(tmp_path):
    for name in ("no.csv", "no.parquet", "no.xlsx"):
        with pytest.raises(BadInput, match=r"There is no file '.*no\."):
            read(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(BadInput, match="is a folder"):
        read(tmp_path / "folder.csv")


def test_options_that_cannot_be_meant(tmp_path, houses, run):
    houses.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(BadInput, match=r"--decimal is for CSV, and '.*' is Parquet"):
        read(tmp_path / "a.parquet", decimal=",")
    path = write(tmp_path, "a.csv", "a\n1\n")
    with pytest.raises(BadInput, match="'klingon' is no encoding"):
        read(path, encoding="klingon")
    result = run("fit", path, "--target", "a", "--delimiter", "ab")
    assert result.exit_code == 2
    assert "--delimiter takes one character, not 'ab'" in result.stderr


def test_parquet_without_pyarrow_names_the_extra(tmp_path, houses, monkeypatch):
    houses.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(table_file, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"Parquet files need pyarrow: pip install 'hikernel\[parq"):
        read(tmp_path / "a.parquet")


def test_names_are_kept_as_they_are(tmp_path, houses):
    houses.to_csv(tmp_path / "a.csv", index=False)
    assert list(read(tmp_path / "a.csv"))[:2] == [SIZE, TOWN]
