"""The builds of the core for different instruction sets: the choice of one, and that they agree."""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

import halosvm
from halosvm import _core
from halosvm._processor import x86_64_level
from halosvm.core import isa

ALL = ("avx2", "baseline")

# Fits of every covariance kind, loss and storage type that has loops of its own.
FITS = """
import json, warnings
import numpy as np
from halosvm import Covariances, UncertainSVC, show_config

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n, d = 203, 13
y = np.arange(n) % 3
X = np.eye(3, d)[y] + rng.normal(size=(n, d))
variances = rng.uniform(0.05, 1.0, (n, d))
factors = rng.normal(size=(n, d, 3)) / 2
full = factors @ factors.transpose(0, 2, 1) + 0.01 * np.eye(d)
cases = {
    "certain, expected hinge": (X, y == 0, None, "expected_hinge"),
    "certain, hinge": (X, y == 0, None, "hinge"),
    "isotropic": (X, y == 0, Covariances.isotropic(variances[:, 0].copy(), d), "expected_hinge"),
    "diagonal": (X, y == 0, Covariances.diagonal(variances), "expected_hinge"),
    "diagonal, three classes": (X, y, Covariances.diagonal(variances), "expected_hinge"),
    "low rank": (X, y == 0, Covariances.low_rank(factors, variances), "expected_hinge"),
    "full": (X, y == 0, Covariances.full(full), "expected_hinge"),
    "float32": (
        X.astype(np.float32),
        y == 0,
        Covariances.diagonal(variances.astype(np.float32)),
        "expected_hinge",
    ),
}
fits = {}
for name, (means, labels, covariances, loss) in cases.items():
    svc = UncertainSVC(C=0.1, loss=loss, random_state=0).fit(means, labels, X_cov=covariances)
    fits[name] = np.column_stack([svc.coef_, svc.intercept_]).tolist()
print(json.dumps({"isa": show_config("dict")["isa"], "fits": fits}))
"""


def run(program, wanted):
    """Run a program in a process of its own: an instruction set is chosen at import."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"HALOSVM_ISA": wanted},
        capture_output=True,
        text=True,
        check=False,
    )


def fits_with(wanted):
    process = run(FITS, wanted)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.skipif(
    len(isa.available_isas()) < 2,
    reason="one build is installed, as usual from source; HALOSVM_ISA_VARIANTS=all installs each",
)
def test_every_instruction_set_gives_the_same_coefficients():
    all_fits = {wanted: fits_with(wanted) for wanted in isa.available_isas()}
    for wanted, forced in all_fits.items():
        assert forced["isa"] == wanted
        for name, fit in forced["fits"].items():
            coef, expected = np.array(fit), np.array(all_fits["baseline"]["fits"][name])
            assert np.abs(coef - expected).max() <= 1e-10 * np.abs(expected).max(), name


def test_the_fastest_build_that_the_processor_runs_is_imported():
    process = run("import halosvm; print(halosvm.show_config('dict')['isa'])", "")
    assert process.stdout.split() == isa.available_isas()[:1]


@pytest.mark.parametrize(
    ("level", "installed", "expected"),
    [
        (4, ALL, "avx2"),
        (3, ALL, "avx2"),
        (2, ALL, "baseline"),
        (1, ALL, "baseline"),
        (4, ("baseline",), "baseline"),
        (3, ("avx2",), "avx2"),
        (0, ("baseline",), "baseline"),
    ],
)
def test_choice_is_the_fastest_of_what_is_built_and_supported(level, installed, expected):
    assert isa.choose("", installed, level) == expected


@pytest.mark.parametrize("wanted", ALL)
def test_a_build_that_is_asked_for_is_chosen(wanted):
    assert isa.choose(wanted, ALL, 4) == wanted


@pytest.mark.parametrize(
    ("wanted", "installed", "level", "message"),
    [
        ("sse9", ALL, 4, "'sse9'; it can be avx2, baseline"),
        ("AVX2", ALL, 4, "'AVX2'; it can be avx2, baseline"),
        ("avx512", ALL, 4, "'avx512'; it can be avx2, baseline"),
        (
            "avx2",
            ("baseline",),
            4,
            "'avx2', which is not installed; installed: baseline .*VARIANTS=all",
        ),
        ("avx2", ALL, 2, "needs an x86-64-v3 processor; this one is x86-64-v2"),
        ("avx2", ALL, 1, "needs an x86-64-v3 processor; this one is x86-64$"),
        (
            "avx2",
            (),
            4,
            "no build of the compiled core is installed here: install halosvm with pip",
        ),
        ("", (), 4, "no build of the compiled core is installed here: install halosvm with pip"),
        ("", ("avx2",), 2, "for avx2, which needs an x86-64-v3 processor; this one is x86-64-v2"),
        ("", ("avx2",), 0, "build halosvm from source on this processor, or install a wheel"),
    ],
)
def test_a_choice_that_cannot_be_met_says_why(wanted, installed, level, message):
    with pytest.raises(ImportError, match=message):
        isa.choose(wanted, installed, level)


def test_import_fails_with_the_reason_when_the_variable_has_an_unknown_name():
    process = run("import halosvm", "sse9")
    assert process.returncode != 0
    last = process.stderr.splitlines()[-1]
    assert last == "ImportError: HALOSVM_ISA is 'sse9'; it can be avx2, baseline"


def test_processor_level_agrees_with_what_numpy_finds():
    extensions = np.show_config("dicts")["SIMD Extensions"]
    found = {*extensions["baseline"], *extensions["found"]}
    assert (x86_64_level() >= 3) == bool(found & {"AVX2", "X86_V3"})
    assert (x86_64_level() >= 4) == bool(found & {"AVX512_SKX", "X86_V4"})


def test_processor_names_follow_the_levels():
    names = [isa.processor_name(level) for level in range(5)]
    assert names == [platform.machine(), "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]


def test_show_config_returns_what_is_in_use():
    config = halosvm.show_config("dict")
    assert config["halosvm"] == halosvm.__version__
    assert config["isa"] in config["isa_available"] == isa.available_isas()
    assert config["processor"] == isa.processor_name(x86_64_level())
    assert config["n_threads"] == _core.thread_count() >= 1
    for package in ("numpy", "scipy", "scikit-learn"):
        assert config[package] == version(package)
    assert config["python"] == platform.python_version()
    for library in ("eigen", "pybind11"):
        assert tuple(map(int, config[library].split(".")[:2])) >= (3, 0), library
    name, number = config["compiler"].split()
    assert name
    assert int(number.split(".")[0]) > 0


def test_show_config_prints_every_entry_on_a_line(capsys):
    assert halosvm.show_config() is None
    printed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    config = halosvm.show_config("dict")
    assert list(printed) == list(config)
    assert printed["isa"] == config["isa"]
    assert printed["isa_available"] == ", ".join(config["isa_available"])


def test_show_config_rejects_an_unknown_mode():
    with pytest.raises(ValueError, match="mode is 'yaml'; it can be 'stdout' or 'dict'"):
        halosvm.show_config("yaml")
