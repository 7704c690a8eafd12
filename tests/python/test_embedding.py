"""The core in C++ programs: tests/consumer built in three ways, and models that pass both ways.

Each way compiles the core once more, so these tests run only when asked for: `pytest -m embeds`.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import halosvm

ROOT = Path(__file__).parents[2]
CONSUMER = ROOT / "tests" / "consumer"
TABLE = CONSUMER / "measured.csv"
CONFIG = halosvm.show_config("dict")

# What is compiled for the processors of the extension's build computes the same bits. Without
# fused multiply-add that holds for every compiler and every level of optimisation; with it
# compilers differ in what they fuse.
FLAGS = {"baseline": "-O0", "avx2": "-O2 -march=x86-64-v3 -fno-math-errno -fno-trapping-math"}
FLAGS = FLAGS[CONFIG["isa"]]

embeds = pytest.mark.embeds


def run(*command):
    """Run a program, and return what it prints; what it says where it fails is the message."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def compiler(name):
    """Return the path of a compiler, and skip the test where there is none, or no CMake."""
    path = shutil.which(name)
    if path is None or shutil.which("cmake") is None:
        pytest.skip(f"needs cmake and {name}")
    return path


def build(source, folder, cxx, *options):
    """Configure and build a CMake project, without optimisation but for the bits' sake."""
    try:
        eigen = importlib.metadata.distribution("cmeel-eigen").locate_file("cmeel.prefix")
        options = (*options, f"-DEigen3_ROOT={eigen}")
    except importlib.metadata.PackageNotFoundError:
        pass  # the system's
    run(
        *("cmake", "-S", source, "-B", folder, f"-DCMAKE_CXX_COMPILER={cxx}"),
        *("-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={FLAGS}", *options),
    )
    run("cmake", "--build", folder, "--parallel", os.cpu_count() or 1)


def in_source_tree():
    """Return the source tree, and skip the test where only the tests are."""
    if not (ROOT / "CMakeLists.txt").exists():
        pytest.skip("the source tree is not here")
    return ROOT


def installed(folder, cxx, *options):
    """`cmake --install`, found by find_package."""
    options = (*options, "-DHALOSVM_BUILD_TESTS=OFF")
    build(in_source_tree(), folder / "core", cxx, *options)
    run("cmake", "--install", folder / "core", "--prefix", folder / "prefix")
    return [f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}"]


def fetched(_, __, *options):
    """Built by FetchContent, which is add_subdirectory, as a part of the program's project."""
    return [f"-DHALOSVM_SOURCE={in_source_tree()}", *options]


def from_the_wheel(_, __, *options):
    """The sources in the Python package, found by find_package."""
    try:
        return [f"-Dhalosvm_DIR={halosvm.cmake_dir()}", *options]
    except ImportError:
        pytest.skip("halosvm is not installed here")


# One each, in place of all eight: what they share is tested by any of them.
WAYS = {
    "installed, static": (installed, "g++", []),
    "fetched, shared": (fetched, "g++", ["-DBUILD_SHARED_LIBS=ON"]),
    "from the wheel, clang": (from_the_wheel, "clang++", []),
    "from the wheel": (from_the_wheel, "g++", []),
}


@pytest.fixture(scope="module")
def consumers():
    """Programs that are built, by their way."""
    return {}


@pytest.fixture(params=WAYS)
def consumer(request, consumers, tmp_path_factory):
    """The program, built once for each way. Its own symbols are hidden, as in an extension."""
    if request.param not in consumers:
        way, name, options = WAYS[request.param]
        folder, cxx = tmp_path_factory.mktemp("consumer"), compiler(name)
        options = way(folder, cxx, *options)
        build(CONSUMER, folder / "build", cxx, *options, "-DCMAKE_CXX_VISIBILITY_PRESET=hidden")
        consumers[request.param] = folder / "build" / "consumer"
    return consumers[request.param]


def write_table(path, labels, mean, std):
    """Write a table that the program reads, to the last bit."""
    rows = [[int(label), *m, *s] for label, m, s in zip(labels, mean, std, strict=True)]
    lines = [",".join(repr(float(value)) for value in row) for row in rows]
    path.write_text("\n".join(["names", *lines]) + "\n", encoding="utf-8")


def scores_and_spreads(program, table, model):
    """Return what the program predicts."""
    lines = run(program, "predict", table, model).splitlines()
    values = np.array([[float(word) for word in line.split()] for line in lines])
    return values[:, 0::2], values[:, 1::2]


def examples(n_classes, n_features):
    """Return labels, means and standard deviations."""
    rng = np.random.default_rng(n_features)
    labels = np.arange(90) % n_classes
    mean = 2.0 * np.eye(n_classes, n_features)[labels] + rng.normal(size=(90, n_features))
    return labels, mean, rng.uniform(0.1, 1.0, mean.shape)


@embeds
def test_program_trains_to_the_optimum_and_python_predicts_the_same_bits(consumer, tmp_path):
    out = run(consumer, "train", TABLE, tmp_path / "model.json")
    assert "the certified suboptimality is within the tolerance" in out
    table = np.loadtxt(TABLE, delimiter=",", skiprows=1)
    X = halosvm.Gaussians(table[:, 1:3], std=table[:, 3:])
    model = halosvm.load_model(tmp_path / "model.json")
    here = halosvm.UncertainSVC(C=1.0).fit(X, table[:, 0])
    np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-2)  # both within 1e-6 of J*
    score, spread = scores_and_spreads(consumer, TABLE, tmp_path / "model.json")
    np.testing.assert_array_equal(score[:, 0], model.decision_function(X))
    np.testing.assert_array_equal(spread[:, 0], model.decision_std(X))


@embeds
@pytest.mark.parametrize(("n_classes", "n_features"), [(2, 3), (2, 37), (3, 21), (5, 64)])
def test_model_of_python_predicts_the_same_bits_in_the_program(
    consumer, tmp_path, n_classes, n_features
):
    labels, mean, std = examples(n_classes, n_features)
    X = halosvm.Gaussians(mean, std=std)
    model = halosvm.UncertainSVC(C=0.5).fit(X, labels)
    halosvm.save_model(model, tmp_path / "model.json")
    write_table(tmp_path / "table.csv", labels, mean, std)
    score, spread = scores_and_spreads(consumer, tmp_path / "table.csv", tmp_path / "model.json")
    np.testing.assert_array_equal(score, model.decision_function(X).reshape(len(X), -1))
    np.testing.assert_array_equal(spread, model.decision_std(X).reshape(len(X), -1))


@embeds
def test_bad_input_ends_the_program_with_the_message_of_a_std_exception(consumer, tmp_path):
    (tmp_path / "table.csv").write_text("names\n1,0.5,-0.1\n0,-0.5,nan\n", encoding="utf-8")
    done = subprocess.run(
        [consumer, "train", tmp_path / "table.csv", tmp_path / "model.json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "stds" in done.stderr
    assert "row 1" in done.stderr


@embeds
def test_shared_library_shows_the_public_headers_and_nothing_else_of_ours(tmp_path):
    root, cxx = in_source_tree(), compiler("g++")
    options = ["-DBUILD_SHARED_LIBS=ON", "-DHALOSVM_BUILD_TESTS=OFF"]
    build(root, tmp_path, cxx, *options)
    (library,) = {path.resolve() for path in tmp_path.rglob("libhalosvm.so*")}
    symbols = run("nm", "-DC", "--defined-only", library)
    assert " T halosvm::minimize(" in symbols
    assert re.search(r" [VD] typeinfo for halosvm::LocalObjective\n", symbols)
    assert not re.findall(r" [TW] halosvm::(linalg|kernels)::.*", symbols)


def test_program_of_the_readme_is_the_one_that_is_tested():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    source = (CONSUMER / "main.cpp").read_text(encoding="utf-8")
    for page in (page for page in pages if page.exists() and "_build" not in page.parts):
        blocks = re.findall(r"```(?:cpp|c\+\+)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        assert all(block.strip() in source for block in blocks), page


@embeds
def test_each_public_header_compiles_alone(tmp_path):
    cxx, include = compiler("g++"), in_source_tree() / "cpp" / "include"
    headers = [path.relative_to(include).as_posix() for path in include.rglob("*.hpp")]
    lines = [f'file(WRITE {tmp_path}/{i}.cpp "#include <{h}>\\n")' for i, h in enumerate(headers)]
    (tmp_path / "CMakeLists.txt").write_text(
        "\n".join(
            [
                "cmake_minimum_required(VERSION 3.24)",
                "project(headers LANGUAGES CXX)",
                f"include({ROOT}/third_party/eigen.cmake)",
                *lines,
                "file(GLOB sources *.cpp)",
                "add_library(headers OBJECT ${sources})",
                "target_compile_features(headers PRIVATE cxx_std_17)",
                f"target_include_directories(headers PRIVATE {include})",
                "target_compile_options(headers PRIVATE -fsyntax-only)",
                "target_link_libraries(headers PRIVATE Eigen3::Eigen)",
            ]
        ),
        encoding="utf-8",
    )
    build(tmp_path, tmp_path / "build", cxx)


def test_folders_of_the_package_are_found_or_their_absence_is_told():
    if not (Path(halosvm.__file__).parent / "embed").exists():
        with pytest.raises(ImportError, match="install halosvm with pip"):
            halosvm.cmake_dir()
        with pytest.raises(ImportError, match="name the folder cpp/include"):
            halosvm.include_dir()
        return
    folder = Path(halosvm.cmake_dir())
    assert (folder / "halosvmConfig.cmake").exists()
    assert (folder / "halosvmConfigVersion.cmake").exists()
    assert (Path(halosvm.include_dir()) / "halosvm" / "halosvm.hpp").exists()
    sources = (folder.parent / "cpp" / "CMakeLists.txt").read_text(encoding="utf-8")
    named = re.findall(r"src/\S+\.cpp", sources)
    assert len(named) > 50
    assert all((folder.parent / "cpp" / name).exists() for name in named)
