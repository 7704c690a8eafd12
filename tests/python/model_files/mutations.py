"""Model files that are damaged at random, and what must become of them."""

import json
import random
import warnings
from pathlib import Path

import numpy as np
from limits import limited

from halosvm import UncertainSVC, load_model, save_model
from halosvm.files.model_file import ModelFileError
from model_files.machines import EXAMPLES, MACHINES, METHODS, TWO, fitted

TRIED = (
    "svc of three classes",
    "svr",
    "total with a kernel",
    "kernel of mixtures",
    "kernel of ranks",
    "kernel of columns",
    "kernel of values",
    "polynomial",
    "isotropic kernel",
    "population",
    "population of factors",
    "paired",
    "float32",
    "gaussian landmarks",
    "scaler",
    "whitened",
    "logarithm",
    "isotonic",
    "temperature",
    "one against the rest",
    "pipeline",
)
STRANGE = (
    *(0, 1, -1, 2, 7, 10**15, -(10**15), 10**30, 0.0, -0.0, 1e-320, 1e308, -1e308, 0.5),
    *(True, None, "", "1", "rbf", "<f8", "AAAA", [], [1.0], [[1.0]], {}, {"number": "nan"}),
    *(float("nan"), float("inf")),
)
BYTES = b'0123456789-+.eE"\\[]{},:ntf \n\x00\xff'


def write_all(folder):
    """Write files of machines of many kinds and a long one, and return their texts and examples."""
    texts = []
    path = Path(folder) / "model.json"
    for name in TRIED:
        machine, X = fitted(name)
        save_model(machine, path)
        texts.append((path.read_bytes(), X[:5] if MACHINES[name][1] != "gram" else X))
    machine = UncertainSVC().fit(EXAMPLES["diagonal"], np.where(TWO == "yes", 1, -1))
    save_model(machine, path, format="svm-gsu")
    texts.append((path.read_bytes(), EXAMPLES["diagonal"][:5]))
    path.unlink()
    return texts


def damaged(text, rng):
    """Return a text that is damaged in its values, where it has some, or in its bytes."""
    if rng.random() < 0.5 and text.startswith(b"{"):
        document = json.loads(text)
        for _ in range(rng.randint(1, 2)):
            _change(document, rng)
        return json.dumps(document).encode()
    for _ in range(rng.randint(1, 3)):
        at, n = rng.randrange(len(text)), rng.randint(1, 20)
        match rng.randrange(6):
            case 0:
                text = text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1 :]
            case 1:
                text = text[:at] + text[at + n :]
            case 2:
                begin = rng.randrange(len(text))
                text = text[:at] + text[begin : begin + n] + text[at:]
            case 3:
                text = text[:at] + bytes([rng.choice(BYTES)]) + text[at + 1 :]
            case 4:
                text = text[:at]
            case _:
                lines = text.split(b"\n")
                i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines[i], lines[j] = lines[j], lines[i]
                text = b"\n".join(lines)
        text = text or b"{"
    return text


def _change(document, rng):
    """Change one member or element, at any depth."""
    where = document
    while True:
        key = rng.choice(list(where) if isinstance(where, dict) else range(len(where)))
        inner = where[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.2:
            break
        where = inner
    match rng.randrange(4):
        case 0:
            del where[key]
        case 1 if isinstance(where, list):
            where.insert(key, where[rng.randrange(len(where))])
        case 2 if isinstance(where, list):
            other = rng.randrange(len(where))
            where[key], where[other] = where[other], where[key]
        case _:
            where[key] = rng.choice(STRANGE)


def outcome(path, text, X):
    """Return "refused" or "read", after a check that either is as it should be."""
    path.write_bytes(text)
    told = ""
    try:
        with limited():
            machine = load_model(path)
    except ModelFileError as error:
        told = str(error)
    if told:
        assert str(path) in told
        assert "\n" not in told
        return "refused"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other names of features, and of division by 1e-308
        for method in METHODS:
            try:
                found = getattr(machine, method)(X) if hasattr(machine, method) else ()
            except ValueError:
                continue
            for part in (getattr(found, "components", found),):
                numbers = np.asarray(getattr(part, "mean", part))
                assert numbers.dtype.kind not in "fc" or np.isfinite(numbers).all()
    return "read"


def run(folder, seeds):
    """Damage a file for each seed, and count the outcomes."""
    texts, counts = write_all(folder), {"refused": 0, "read": 0}
    path = Path(folder) / "model.json"
    for seed in seeds:
        rng = random.Random(seed)
        text, X = texts[seed % len(texts)]
        mutated = damaged(text, rng)
        try:
            counts[outcome(path, mutated, X)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}, file {seed % len(texts)}")
            raise
    return counts
