"""The real data of the experiments, from `data/`: arrays and labels out."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FOLDER = Path(__file__).parent / "data"
UCI = Path(__file__).parents[2] / "tests" / "python" / "data" / "uci"


class Digits(NamedTuple):
    """Grey images from 0 to 1, (n, 28, 28), and whether each is a seven."""

    train: Array
    train_labels: NDArray[np.bool_]
    test: Array
    test_labels: NDArray[np.bool_]


def digits() -> Digits:
    """Load the ones and sevens of MNIST: 13,007 training and 2,163 test images."""
    with np.load(FOLDER / "mnist_1_7.npz") as file:
        parts = [file[f"{kind}_{part}"] for part in ("train", "test") for kind in "Xy"]
    return Digits(parts[0] / 255.0, parts[1] == 7, parts[2] / 255.0, parts[3] == 7)


class Clips(NamedTuple):
    """Clips of (n_frames_i, n_channels), and their labels."""

    frames: list[Array]
    labels: NDArray[Any]

    def take(self, rows: Any) -> Clips:
        """Return some of the clips."""
        return Clips([self.frames[row] for row in rows], self.labels[rows])


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (line.strip() for line in lines)


def _time_series(name: str) -> Clips:
    """Read a .ts file: a clip a line, its channels and its label separated by colons."""
    rows = [line.split(":") for line in _lines(FOLDER / name) if line and line[0] not in "#@"]
    clips = [np.array([np.fromstring(c, sep=",") for c in row[:-1]]).T for row in rows]
    return Clips(clips, np.array([row[-1] for row in rows]))


def speakers() -> tuple[Clips, Clips]:
    """Load the Japanese vowels, training and test part: 9 speakers, 12 cepstral coefficients."""
    return _time_series("JapaneseVowels_TRAIN.ts.gz"), _time_series("JapaneseVowels_TEST.ts.gz")


def hand_movements() -> Clips:
    """Load the Libras movements: position (x, y) and step (dx, dy) in 44 frames, 15 classes."""
    table = np.array(
        [np.fromstring(line, sep=",") for line in _lines(FOLDER / "movement_libras.dat.gz")]
    )
    places = table[:, :-1].reshape(len(table), 45, 2)
    steps = np.concatenate([places[:, 1:], np.diff(places, axis=1)], axis=2)
    return Clips(list(steps), table[:, -1].astype(int))


def eeg() -> Clips:
    """Load 80 clips of EEG at rest and in a task: 4 channels, 100 samples at 112.5 Hz."""
    train, test = (_time_series(f"KDD_Example_{part}.ts.gz") for part in ("TRAIN", "TEST"))
    return Clips(train.frames + test.frames, np.concatenate([train.labels, test.labels]))


def _values_and_labels(path: Path) -> tuple[Array, NDArray[np.str_]]:
    rows = [line.split(",") for line in _lines(path)]
    values = np.array([row[:-1] for row in rows], dtype=np.float64)
    return values, np.array([row[-1].strip() for row in rows])


def ionosphere() -> tuple[Array, NDArray[np.str_]]:
    """Load 351 radar returns of 33 values, and whether each is good, "g", or bad, "b"."""
    return _values_and_labels(FOLDER / "ionosphere.dat.gz")


def sonar() -> tuple[Array, NDArray[np.str_]]:
    """Load 208 sonar returns of 60 values, from a mine, "M", or a rock, "R"."""
    return _values_and_labels(UCI / "sonar.dat.gz")


def australian() -> tuple[Array, NDArray[np.str_]]:
    """Load 690 applications for credit, 14 values, and whether it was given, "1" or "0"."""
    return _values_and_labels(UCI / "australian.dat.gz")


class Catalogue(NamedTuple):
    """A catalogue: text of the columns by name, in the order of the rows."""

    columns: dict[str, NDArray[np.str_]]

    def numbers(self, name: str) -> Array:
        """Return a column as numbers, NaN where it is empty."""
        return np.array([float(text or "nan") for text in self.columns[name]])


def kepler() -> Catalogue:
    """Load the confirmed planets and false positives among the Kepler objects of interest."""
    header, *rows = csv.reader(_lines(FOLDER / "kepler_koi.csv.gz"))
    return Catalogue(dict(zip(header, np.array(rows).T, strict=True)))


def tess() -> Catalogue:
    """Load the planets (CP, KP) and false alarms (FP, FA) among the TESS objects of interest."""
    header, *rows = csv.reader(_lines(FOLDER / "tess_toi.csv.gz"))
    return Catalogue(dict(zip(header, np.array(rows).T, strict=True)))
