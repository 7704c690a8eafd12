"""Small files that ask for much, or for other files: each is refused before anything is made."""

import bz2
import contextlib
import gzip
import http.server
import io
import lzma
import threading

import numpy as np
import pyarrow as pa
import pytest
from astropy.io import fits
from pyarrow import feather, parquet

from halosvm.commands.cli import main
from halosvm.commands.options import make_parser
from halosvm.files.tables.reading import Reading
from halosvm.files.tables.room import Room
from halosvm.files.tables.table import read_table
from halosvm.files.tables.trouble import TableError

SMALL = Reading(room=Room(1e6))


def refused(path, content, reading=SMALL):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TableError) as told:
        read_table(path, reading=reading)
    assert str(path.parent) in str(told.value)
    return str(told.value)


# ---- other places, and XML that multiplies itself ------------------------------------------------
_TWO = '<FIELD name="a" datatype="double"/><FIELD name="b" datatype="double"/>'
_ROW = "<TABLEDATA><TR><TD>1</TD><TD>2</TD></TR></TABLEDATA>"


def votable(data=_ROW, *, fields=_TWO, table="", before=""):
    return (
        f'{before}<VOTABLE version="1.3"><RESOURCE><TABLE {table}>{fields}<DATA>{data}</DATA>'
        "</TABLE></RESOURCE></VOTABLE>"
    )


@pytest.mark.parametrize("form", ["BINARY", "BINARY2", "PARQUET", "FITS"])
def test_address_in_a_votable_is_never_opened(tmp_path, form):
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/rows"
        text = votable(f'<{form}><STREAM encoding="base64" href="{address}"/></{form}>')
        assert "in another place" in refused(tmp_path / "t.vot", text)
        server.shutdown()
    assert not asked


@pytest.mark.parametrize("prefix", ["", "v:"])
def test_file_named_in_a_votable_is_never_read(tmp_path, prefix):
    (tmp_path / "secret").write_bytes(np.arange(8.0, dtype=">f8").tobytes())
    place = (tmp_path / "secret").as_uri()
    text = votable(f'<BINARY><STREAM href="{place}"/></BINARY>')
    text = text.replace("</", "</" + prefix).replace("<" + "V", "<" + prefix + "V")
    for tag in ("RESOURCE", "TABLE", "FIELD", "DATA", "BINARY", "STREAM"):
        text = text.replace(f"<{tag}", f"<{prefix}{tag}")
    text = text.replace("VOTABLE v", f'VOTABLE xmlns:{prefix[:-1] or "w"}="x" v', 1)
    assert "in another place" in refused(tmp_path / "t.vot", text)


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1/x">%a;',
        '<!ATTLIST STREAM href CDATA "file:///dev/zero">',
    ],
)
def test_declarations_in_a_votable_are_refused(tmp_path, declared):
    text = votable(before=f"<!DOCTYPE VOTABLE [{declared}]>")
    assert "declares entities" in refused(tmp_path / "t.vot", text)


def test_votable_that_names_the_old_definition_is_read_without_it(tmp_path):
    (tmp_path / "t.vot").write_text(
        votable(before='<!DOCTYPE VOTABLE SYSTEM "file:///dev/zero">'), encoding="ascii"
    )
    assert read_table(tmp_path / "t.vot", reading=SMALL).mean.tolist() == [[1.0, 2.0]]


# ---- sizes ---------------------------------------------------------------------------------------
def _bytes(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def _arrow(write, *, rows=100_000, **columns):
    arrays = columns or {f"c{j}": pa.array(np.zeros(rows)) for j in range(10)}
    return _bytes(lambda stream: write(pa.table(arrays), stream))


def _views():
    n = 1000  # texts that all show the same 10 kB
    views = np.tile(np.array([10_000, 0x78787878, 0, 0], "<i4"), n).tobytes()
    array = pa.Array.from_buffers(
        pa.string_view(), n, [None, pa.py_buffer(views), pa.py_buffer(b"x" * 10_000)]
    )
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, pa.schema([("v", pa.string_view())])) as file:
        file.write_batch(pa.record_batch([array], ["v"]))
    return stream.getvalue()


def _fits(column, *changes):
    data = _bytes(fits.BinTableHDU.from_columns([column]).writeto)
    for before, after in changes:
        assert before in data
        data = data.replace(before, after)
    return data


def _heap_shown_often():
    rows = np.array([np.zeros(500)] * 400, dtype=object)
    data = bytearray(_fits(fits.Column("v", "PD()", array=rows)))
    begin = len(data) - 400 * 8 - 400 * 500 * 8
    begin = data.index(np.array([500, 0], ">i4").tobytes(), begin - begin % 2880 - 2880)
    data[begin : begin + 3200] = np.tile(np.array([100_000, 0], ">i4"), 400).tobytes()
    return bytes(data)


def _ecsv(kind, meta="{}"):
    return (
        "# %ECSV 1.0\n# ---\n# datatype:\n# - {name: a, datatype: float64}\n"
        f'# - {{name: b, datatype: {kind}}}\n# meta: {meta}\na b\n1 ""\n2 ""\n'
    )


_MERGED = "{a0: &a0 {x: 1}" + "".join(
    f", a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 4)
)

SMALL_FILES = {
    "constant.parquet": lambda: _arrow(parquet.write_table),
    "constant.feather": lambda: _arrow(lambda t, s: feather.write_feather(t, s, "zstd")),
    "nothing.feather": lambda: _arrow(
        lambda t, s: feather.write_feather(t, s, "zstd"), n=pa.nulls(10**6)
    ),
    "views.feather": _views,
    "t.csv.gz": lambda: gzip.compress(bytes(2 * 10**6)),
    "t.csv.bz2": lambda: bz2.compress(bytes(2 * 10**6)),
    "t.csv.xz": lambda: lzma.compress(bytes(2 * 10**6)),
    "t.csv.zst": lambda: pa.compress(bytes(2 * 10**6), codec="zstd", asbytes=True),
    "zeros.npz": lambda: _bytes(lambda s: np.savez_compressed(s, X=np.zeros((10**6, 1)))),
    "flags.npz": lambda: _bytes(lambda s: np.savez_compressed(s, X=np.zeros((10**6, 1), bool))),
    "names.svm": lambda: "1 " + " ".join(f"{900 * k + 1}:1" for k in range(100)),
    "array.vot": lambda: votable(
        fields=_TWO + '<FIELD name="c" datatype="double" arraysize="3x1000000"/>'
    ),
    "text.vot": lambda: votable(
        fields=_TWO + '<FIELD name="c" datatype="char" arraysize="100000000"/>'
    ),
    "parameter.vot": lambda: votable(
        fields='<PARAM name="p" datatype="int" arraysize="100000000" value=""/>' + _TWO
    ),
    "rows.vot": lambda: votable(table='nrows="10000000000"'),
    "text.ecsv": lambda: _ecsv("U200000000"),
    "shape.ecsv": lambda: _ecsv("string, subtype: 'float64[30000,10000]'"),
    "rows.fits": lambda: _fits(
        fits.Column("b", "D", array=np.zeros(3)),
        (b"NAXIS1  =                    8", b"NAXIS1  =                    0"),
        (b"NAXIS2  =                    3", b"NAXIS2  =           3000000000"),
        (b"'D       '", b"'0D      '"),
    ),
    "heap.fits": _heap_shown_often,
}


@pytest.mark.parametrize("name", SMALL_FILES)
def test_file_that_asks_for_more_than_the_room_is_refused_with_the_size(tmp_path, name):
    content = SMALL_FILES[name]()
    room = Room(max(1e6, 20.0 * len(content)))
    if name in ("views.feather", "heap.fits", "nothing.feather"):  # larger than what they hold
        room = Room(8e6)
    told = refused(tmp_path / name, content, Reading(room=room))
    assert "would take" in told
    assert "--memory" in told


def test_documents_that_ask_for_more_than_the_room_are_refused_with_the_size(tmp_path):
    labels, covariances = tmp_path / "labels", tmp_path / "cov"
    labels.write_text("".join(f"d{k} {k % 2}\n" for k in range(200)), encoding="ascii")
    sparse = "".join(f"d{k} {900 * k + 1}:1\n" for k in range(200))
    told = refused(tmp_path / "m", sparse, Reading(labels=labels, room=SMALL.room))
    assert "the means of 200 documents with 179101 features would take 287 MB" in told
    covariances.write_text("".join(f"d{k} 1,2:0\n" for k in range(200)), encoding="ascii")
    dense = "".join(f"d{k} 60:1\n" for k in range(200))
    told = refused(
        tmp_path / "m", dense, Reading(labels=labels, covariances=covariances, room=SMALL.room)
    )
    assert "full covariances of 200 documents with 60 features would take" in told


def test_yaml_that_multiplies_itself_is_refused(tmp_path):
    assert "merge key" in refused(tmp_path / "t.ecsv", _ecsv("float64", _MERGED + "}"))


def test_binary_rows_of_no_bytes_end(tmp_path):
    text = votable(
        '<BINARY><STREAM encoding="base64">AAAA</STREAM></BINARY>',
        fields='<FIELD name="a" datatype="char" arraysize="0"/>',
    )
    assert "arraysize" in refused(tmp_path / "t.vot", text)


def test_text_that_parquet_holds_once_stays_one(tmp_path):
    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), ["x" * 10_000])
    columns = {"kind": one, "a": np.arange(1000.0)}
    write = lambda t, s: parquet.write_table(t, s, store_schema=False)  # noqa: E731
    (tmp_path / "t.parquet").write_bytes(_arrow(write, **columns))
    before = pa.total_allocated_bytes()
    table = read_table(tmp_path / "t.parquet", label="kind", reading=SMALL)
    assert table.labels == ["x" * 10_000] * 1000
    assert pa.total_allocated_bytes() - before < 10**6


def test_arrays_of_an_archive_that_have_no_meaning_are_not_read(tmp_path):
    np.savez_compressed(tmp_path / "t.npz", X=np.ones((3, 2)), other=np.zeros(10**6))
    table = read_table(tmp_path / "t.npz", reading=SMALL)
    assert table.mean.tolist() == [[1.0, 1.0]] * 3
    assert table.notes == ("arrays 'other' left out",)


def test_lists_in_parquet_are_left_in_the_file(tmp_path):
    many = pa.ListArray.from_arrays(pa.array([0, 10**6], pa.int32()), pa.array(np.zeros(10**6)))
    content = _arrow(parquet.write_table, many=many, a=pa.array([1.0]))
    assert "column 'many' holds more numbers in each row" in refused(tmp_path / "t.pq", content)
    (tmp_path / "t.pq").write_bytes(content)
    assert read_table(tmp_path / "t.pq", drop=["many"], reading=SMALL).features == ("a",)


def test_feather_of_version_1_is_refused_by_name(tmp_path):
    assert "Feather of version 1" in refused(tmp_path / "t.feather", b"FEA1" + bytes(40))


# ---- damage ------------------------------------------------------------------------------------
def test_damaged_sizes_of_parquet_columns_do_not_end_the_process(tmp_path):
    table = pa.table({"a": np.arange(12.0), "b": np.arange(12.0)})
    whole = _bytes(lambda stream: parquet.write_table(table, stream))
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for at in range(begin, len(whole) - 8):  # each byte of what stands behind the data
        damaged = whole[:at] + bytes([(whole[at] + 12) % 256]) + whole[at + 1 :]
        (tmp_path / "t.parquet").write_bytes(damaged)
        with contextlib.suppress(TableError):
            read_table(tmp_path / "t.parquet", reading=SMALL)


def test_damaged_offsets_of_feather_do_not_end_the_process(tmp_path):
    texts = pa.array([f"k{k}" for k in range(12)])
    table = pa.table({"t": texts, "d": texts.dictionary_encode(), "a": np.arange(12.0)})
    whole = _bytes(lambda stream: feather.write_feather(table, stream, "uncompressed"))
    for at in range(len(whole)):
        value = 255 if at % 2 else (whole[at] + 64) % 256
        (tmp_path / "t.feather").write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
        with contextlib.suppress(TableError):
            read_table(tmp_path / "t.feather", label="t", drop=["d"], reading=SMALL)


# ---- the option ----------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "size"), [("500M", 5e8), ("8g", 8e9), ("1.5G", 1.5e9), ("9", 9)])
def test_memory_is_read_with_its_unit(text, size):
    parser = make_parser(print, print)
    assert parser.parse_args(["train", "t.csv", "--memory", text]).memory == size


def test_memory_of_the_command_line_overrules_the_share(tmp_path, capsys):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.arange(40.0).reshape(20, 2), y=np.arange(20) % 2)
    common = ["convert", str(path), str(tmp_path / "t.csv")]
    assert main([*common, "--memory", "100"]) == 1
    assert "and the limit is" in capsys.readouterr().err
    assert main([*common, "--memory", "1M"]) == 0
    with pytest.raises(SystemExit):
        main([*common, "--memory", "much"])
    assert "is not a size" in capsys.readouterr().err
