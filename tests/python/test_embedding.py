"""The core in C++ programs: tests/consumer built in three ways, and models that pass both ways.

Each way compiles the core once more, so these tests run only when asked for: `pytest -m embeds`.
"""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

import halosvm
from halosvm.calibration.scores import scores

ROOT = Path(__file__).parents[2]
CONSUMER = ROOT / "tests" / "consumer"
TABLE = CONSUMER / "measured.csv"
PACKED = Path(halosvm.__file__).parent / "embed"

embeds = pytest.mark.embeds


def run(*command):
    """Run a program, and return what it prints; what it says where it fails is the message."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def compiler(name):
    """Return the path of a compiler, and skip the test where there is none, or no CMake."""
    if halosvm.show_config("dict")["isa"] != "baseline":
        pytest.skip("needs HALOSVM_ISA=baseline, the processors that compilers compile for")
    path = shutil.which(name)
    if path is None or shutil.which("cmake") is None:
        pytest.skip(f"needs cmake and {name}")
    return path


def build(source, folder, cxx, *options):
    """Configure and build a CMake project, in a hurry: no optimisation changes the numbers."""
    try:
        eigen = importlib.metadata.distribution("cmeel-eigen").locate_file("cmeel.prefix")
        options = (*options, f"-DEigen3_ROOT={eigen}")
    except importlib.metadata.PackageNotFoundError:
        pass  # the system's
    run(
        *("cmake", "-S", source, "-B", folder, f"-DCMAKE_CXX_COMPILER={cxx}"),
        *("-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0", "-DCMAKE_UNITY_BUILD=ON", *options),
    )
    run("cmake", "--build", folder, "--parallel", os.cpu_count() or 1)


def in_source_tree():
    """Return the source tree, and skip the test where only the tests are."""
    if not (ROOT / "CMakeLists.txt").exists():
        pytest.skip("the source tree is not here")
    return ROOT


def installed(folder):
    """Options for the core that `cmake --install` has put where find_package finds it.

    HALOSVM_PREFIX names the place of one that is there already.
    """
    prefix = os.environ.get("HALOSVM_PREFIX")
    if prefix is None:
        prefix = folder / "prefix"
        build(in_source_tree(), folder / "core", compiler("g++"), "-DHALOSVM_BUILD_TESTS=OFF")
        run("cmake", "--install", folder / "core", "--prefix", prefix)
    return [f"-DCMAKE_PREFIX_PATH={prefix}"]


def fetched(_):
    """Options for the core as a part of the program's project, by FetchContent; shared."""
    return [f"-DHALOSVM_SOURCE={in_source_tree()}", "-DBUILD_SHARED_LIBS=ON"]


def from_the_package(_):
    """Options for the sources in the Python package, found by find_package."""
    if not PACKED.exists():
        pytest.skip("the package was not installed by pip")
    return [f"-Dhalosvm_DIR={halosvm.cmake_dir()}"]


WAYS = [installed, fetched, from_the_package]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the folder in which the program is built by a way with a compiler, but once."""
    folders = {}

    def folder_of(way, name):
        cxx = compiler(name)
        if way not in folders:
            folder = tmp_path_factory.mktemp(way.__name__)
            folders[way] = folder, way(folder)
        folder, options = folders[way]
        if not (folder / name / "consumer").exists():
            hidden = "-DCMAKE_CXX_VISIBILITY_PRESET=hidden"  # as in an extension
            build(CONSUMER, folder / name, cxx, hidden, *options)
        return folder / name

    return folder_of


@pytest.fixture(params=["g++", "clang++"])
def cxx(request):
    """Name of a compiler."""
    return request.param


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def consumer(request, built, cxx):
    """The program."""
    return built(request.param, cxx) / "consumer"


def write_table(path, labels, mean, std):
    """Write a table that the program reads, to the last bit."""
    rows = [[int(label), *m, *s] for label, m, s in zip(labels, mean, std, strict=True)]
    lines = [",".join(repr(float(value)) for value in row) for row in rows]
    path.write_text("\n".join(["names", *lines]) + "\n", encoding="utf-8")


def assert_same(actual, expected):
    """Compare bits; where processors fuse multiplications and additions, compilers choose which."""
    if platform.machine() in {"x86_64", "AMD64"}:
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-13)


def predictions(program, table, model):
    """Return what the program predicts: classes, scores and their standard deviations."""
    lines = run(program, "predict", table, model).splitlines()
    values = np.array([[float(word) for word in line.split()] for line in lines])
    scores, spreads = np.split(values[:, 1:], 2, axis=1)
    return values[:, 0], scores, spreads


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
    label, score, spread = predictions(consumer, TABLE, tmp_path / "model.json")
    np.testing.assert_array_equal(label, model.predict(X))
    assert_same(score[:, 0], model.decision_function(X))
    assert_same(spread[:, 0], model.decision_std(X))


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
    label, score, spread = predictions(consumer, tmp_path / "table.csv", tmp_path / "model.json")
    np.testing.assert_array_equal(label, model.predict(X))
    assert_same(score, model.decision_function(X).reshape(len(X), -1))
    assert_same(spread, model.decision_std(X).reshape(len(X), -1))


def batches(mean, std):
    """Return the same means with covariances of every kind that files hold, by name."""
    rng = np.random.default_rng(0)
    n, d = mean.shape
    factors = 0.3 * rng.normal(size=(n, d, 2))
    ragged = [factors[i, :, : i % 3] for i in range(n)]
    kinds = halosvm.Covariances
    pairs = halosvm.Gaussians(mean, std=std)
    return {
        "zero": halosvm.Gaussians(mean),
        "isotropic": halosvm.Gaussians(mean, std=std[:, 0]),
        "diagonal": pairs,
        "float32": halosvm.Gaussians(mean.astype(np.float32), std=std.astype(np.float32)),
        "low_rank": halosvm.Gaussians(mean, cov=kinds.low_rank(factors)),
        "ranks": halosvm.Gaussians(mean, cov=kinds.low_rank(ragged, diagonal=std**2)),
        "full": halosvm.Gaussians(mean, cov=factors @ factors.transpose(0, 2, 1)),
        "columns": halosvm.Gaussians(
            mean, cov=kinds.diagonal(std[:, 1:] ** 2, columns=range(1, d), n_features=d)
        ),
        "mixtures": halosvm.GaussianMixtures(
            pairs[np.arange(2 * n) // 2], np.tile([0.25, 0.75], n), np.full(n, 2)
        ),
    }


def machines(n_classes):
    """Return machines fitted to 90 examples with three features, and these, by what they are."""
    labels, mean, std = examples(n_classes, 3)
    SVC = halosvm.UncertainKernelSVC
    given = batches(mean, std)
    fitted = {}
    for kind, X in given.items():
        fitted["rbf", kind] = SVC(gamma=0.5).fit(X, labels)
        fitted["linear", kind] = SVC(kernel="linear").fit(X, labels)
        if kind != "mixtures":
            fitted["poly", kind] = SVC(kernel="poly", degree=2, coef0=1.0).fit(X, labels)
    X = given["diagonal"]
    for kind in ("zero", "isotropic", "diagonal"):
        fitted["laplacian", kind] = SVC(kernel="laplacian").fit(given[kind], labels)
    others = {
        "normalized": SVC(normalize=True),
        "scaled": SVC(gamma=[0.1, 0.5, 1.0], decision_function_shape="ovo"),
        "cubic": SVC(kernel="poly", normalize=True, coef0=1.0),
        "level2": SVC(level2="gaussian"),
        "level2 normalized": SVC(kernel="poly", level2="gaussian", normalize=True, C=np.inf),
    }
    for name, machine in others.items():
        fitted[name, "diagonal"] = machine.fit(X, labels)
    isotropic = halosvm.IsotropicKernelSVC().fit(mean, labels, X_std=std[:, 0])
    fitted["feature space", "isotropic"] = isotropic
    if n_classes == 2:
        total = halosvm.TotalSVC(kernel="rbf", max_iter=5).fit(mean, labels, X_std=0.1 * std)
        fitted["total", "diagonal"] = total
    inner = {
        "linear": halosvm.UncertainSVC(),
        "rbf": SVC(gamma=0.2),
        "poly": SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.1),
    }
    for kernel, machine in inner.items():
        for method in ("sigmoid", "isotonic", "temperature"):
            calibrated = halosvm.UncertainCalibratedClassifier(machine, method=method, cv=2)
            data = X if n_classes == 2 else mean  # of more classes probabilities are of points
            fitted[kernel, method] = calibrated.fit(data, labels)
    frozen = FrozenEstimator(inner["rbf"].fit(mean, labels))
    calibrated = halosvm.UncertainCalibratedClassifier(frozen)
    fitted["frozen", "sigmoid"] = calibrated.fit(mean, labels)
    return labels, mean, std, fitted


def expected_of(machine, X):
    """Return classes, decision values and, of a calibrated machine, probabilities."""
    if not hasattr(machine, "predict_proba"):
        return machine.predict(X), [machine.decision_function(X)]
    decision, _ = scores(machine.estimator_, X, logits=False)
    return machine.predict(X), [decision, machine.predict_proba(X)]


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def saved(request, tmp_path_factory):
    """Return a folder with files of machines, and what Python predicts by each of each table."""
    folder = tmp_path_factory.mktemp("machines")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels, mean, std, fitted = machines(request.param)
    write_table(folder / "points.csv", labels, mean, 0.0 * std)
    write_table(folder / "errors.csv", labels, mean, std)
    tables = {
        "points": halosvm.Gaussians(mean),
        "errors": halosvm.Gaussians(mean, std=std),
    }
    expected = {}
    for names, machine in fitted.items():
        path = folder / f"{' '.join(names)}.json"
        halosvm.save_model(machine, path)
        for table, X in tables.items():
            several = request.param > 2 and hasattr(machine, "predict_proba")
            feature_space = names[0] == "feature space"  # errors are not of features
            if table == "points" or not (several or feature_space):
                expected[path, table] = expected_of(machine, X)
    return expected


def close(names):
    """Return the tolerance: rounding, and what the steepest piece of a rising curve makes of it."""
    return 1e-7 if "isotonic" in names else 1e-10


@embeds
def test_every_machine_of_python_predicts_the_same_in_the_program(consumer, saved):
    for (path, table), (labels, values) in saved.items():
        lines = run(consumer, "classify", path.parent / f"{table}.csv", path).splitlines()
        actual = np.array([[float(word) for word in line.split()] for line in lines])
        wanted = np.column_stack(values)
        np.testing.assert_array_equal(actual[:, 0], labels, err_msg=path.stem)
        tolerance = close(path.stem)
        message = f"{path.stem}, {table}"
        np.testing.assert_allclose(
            actual[:, 1:], wanted, rtol=tolerance, atol=tolerance, err_msg=message
        )


@embeds
def test_bad_input_ends_the_program_with_the_message_of_a_std_exception(consumer, tmp_path):
    (tmp_path / "table.csv").write_text("names\n1,0.5,-0.1\n0,-0.5,nan\n", encoding="utf-8")
    done = subprocess.run(
        [consumer, "train", tmp_path / "table.csv", tmp_path / "model.json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("stds row 0, column 0 is -0.1;")


def train_with_flags(folder, options, library, program):
    """Build the program with flags that the library lacks, or the other way round, and run it."""
    (folder / "CMakeLists.txt").write_text(
        f"""
        cmake_minimum_required(VERSION 3.24)
        project(flags LANGUAGES CXX)
        add_subdirectory({CONSUMER} consumer)
        target_compile_options(consumer PRIVATE {program})
        if(TARGET halosvm)
          target_compile_options(halosvm PRIVATE {library})
        endif()
        """,
        encoding="utf-8",
    )
    build(folder, folder / "build", compiler("g++"), *options)
    program = folder / "build" / "consumer" / "consumer"
    assert "within the tolerance" in run(program, "train", TABLE, folder / "model.json")
    assert len(run(program, "predict", TABLE, folder / "model.json").splitlines()) == 12


def wide_vectors():
    """Skip the test on processors that lack them."""
    if halosvm.show_config("dict")["processor"] not in {"x86-64-v3", "x86-64-v4"}:
        pytest.skip("needs a processor with AVX2")
    return "-march=x86-64-v3"


@embeds
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_program_may_have_wider_vectors_than_the_library(tmp_path, way):
    """Eigen allocates by the widest vectors of a file's flags, and matrices cross the border."""
    wide_vectors()
    train_with_flags(tmp_path, way(tmp_path), "", "-march=native")


@embeds
def test_library_may_have_wider_vectors_than_the_program(tmp_path):
    flags = f"-DCMAKE_CXX_FLAGS=-O0 {wide_vectors()}"
    core = in_source_tree()
    build(core, tmp_path / "core", compiler("g++"), "-DHALOSVM_BUILD_TESTS=OFF", flags)
    run("cmake", "--install", tmp_path / "core", "--prefix", tmp_path / "prefix")
    train_with_flags(tmp_path, [f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}"], "", "")


@embeds
@pytest.mark.parametrize("flags", ["", "-DEIGEN_MAX_ALIGN_BYTES=32", "-DEIGEN_DONT_ALIGN"])
def test_program_that_would_free_in_another_way_than_the_library_does_not_compile(tmp_path, flags):
    (tmp_path / "program.cpp").write_text("#include <halosvm/halosvm.hpp>\n", encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(
        f"""
        cmake_minimum_required(VERSION 3.24)
        project(program LANGUAGES CXX)
        include({in_source_tree()}/third_party/eigen.cmake)
        add_library(program OBJECT program.cpp)
        target_compile_features(program PRIVATE cxx_std_17)
        target_include_directories(program PRIVATE {ROOT}/cpp/include)
        target_compile_options(program PRIVATE {flags})
        target_link_libraries(program PRIVATE Eigen3::Eigen)
        """,
        encoding="utf-8",
    )
    with pytest.raises(
        AssertionError, match="with -DEIGEN_MAX_ALIGN_BYTES=64, as the CMake target"
    ):
        build(tmp_path, tmp_path / "build", compiler("g++"))


@embeds
def test_shared_library_shows_the_public_headers_and_nothing_else_of_ours(built, cxx):
    (library,) = {path.resolve() for path in built(fetched, cxx).rglob("libhalosvm.so*")}
    symbols = run("nm", "-DC", "--defined-only", library)
    assert " T halosvm::minimize(" in symbols
    assert re.search(r" [VD] typeinfo for halosvm::LocalObjective\n", symbols)
    assert not re.findall(r" [TW] halosvm::(?:linalg|kernels)::.*", symbols)


def test_program_of_the_readme_is_the_one_that_is_tested():
    if not (ROOT / "README.md").exists():
        pytest.skip("the README is not here")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```cpp\n(.*?)```", readme, re.DOTALL)
    assert blocks
    source = (CONSUMER / "main.cpp").read_text(encoding="utf-8")
    assert all(block in source for block in blocks)


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
                "target_compile_definitions(headers PRIVATE EIGEN_MAX_ALIGN_BYTES=64)",
                "target_compile_options(headers PRIVATE -fsyntax-only)",
                "target_link_libraries(headers PRIVATE Eigen3::Eigen)",
            ]
        ),
        encoding="utf-8",
    )
    build(tmp_path, tmp_path / "build", cxx, "-DCMAKE_UNITY_BUILD=OFF")


def test_folders_of_the_package_are_found_or_their_absence_is_told():
    if not PACKED.exists():
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
