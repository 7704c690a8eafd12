"""
Embedding from C++
==================

The core is a C++17 library without Python. Here a model is trained in Python and compiled into a
small program, which predicts examples with error bars: the same numbers up to the last bit, which
other instructions of the processor may round otherwise.
"""

# %%
# The model
# ---------
# A linear model is a vector and a number, here in a header. ``float.hex`` writes all of their bits.

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from halosvm import Gaussians, UncertainSVC

rng = np.random.default_rng(0)
y = np.arange(60) % 2
std = rng.uniform(0.1, 1.0, (60, 2))
X = Gaussians(2.0 * y[:, None] + rng.normal(size=(60, 2)), std=std)
clf = UncertainSVC().fit(X, y)
(w1, w2), (b,) = clf.coef_[0], clf.intercept_
header = f"constexpr double w1 = {w1.hex()}, w2 = {w2.hex()}, b = {b.hex()};"
print(header)

# %%
# The program
# -----------
# It reads a line for each example, two means and two standard deviations, and writes the decision
# value, its standard deviation, and the probability of the positive side. Arrays are views: the
# library copies nothing.

program = r"""
#include "model.hpp"

#include <halosvm/gaussians/covariances/diagonal.hpp>
#include <halosvm/model/linear_model.hpp>

#include <cstdio>
#include <vector>

int main() {
  std::vector<double> means, stds;
  double x, y, sx, sy;
  while (std::scanf("%lf %lf %lf %lf", &x, &y, &sx, &sy) == 4) {
    means.insert(means.end(), {x, y});
    stds.insert(stds.end(), {sx, sy});
  }
  const auto n = static_cast<halosvm::Index>(means.size() / 2);

  halosvm::LinearModel model(1, 2);
  model.coef << w1, w2;
  model.intercept << b;

  const bool are_stds = true;  // the view reads them as variances
  halosvm::DiagonalCovariances covariances({stds.data(), n, 2, are_stds});
  halosvm::Matrix value(n, 1), spread(n, 1);
  decision_function(model, halosvm::ArrayView(means.data(), n, 2), value, {});
  decision_std(model, covariances, spread, {});
  for (halosvm::Index i = 0; i < n; ++i) {
    const double side = halosvm::side_probability(value(i), spread(i));
    std::printf("%.17g %.17g %.17g\n", value(i), spread(i), side);
  }
}
"""

# %%
# Building it
# -----------
# A project of its own takes the library by three lines of CMake, ``find_package(halosvm)`` once it
# is installed or ``add_subdirectory`` from its sources:
#
# .. code-block:: cmake
#
#     find_package(halosvm REQUIRED)
#     add_executable(predict predict.cpp)
#     target_link_libraries(predict PRIVATE halosvm::halosvm)
#
# To be quick, this page compiles only the eleven sources that a prediction needs, with the
# definition that CMake would hand on. It says so if there is no compiler, or no Eigen, or no source
# of the library.

folders = (Path.cwd(), *Path.cwd().parents)
root = next((one / "cpp" for one in folders if (one / "cpp/include/halosvm").is_dir()), None)
parts = "model/linear_model gaussians/means gaussians/array_view gaussians/array_products"
parts += " gaussians/covariances/diagonal gaussians/sparse_view core/parallel core/check core/types"
parts += " gaussians/covariances/covariances core/double_double"
places = [Path(folder) / "cmeel.prefix/include/eigen3" for folder in sys.path]
places += [Path("/usr/include/eigen3"), Path("/usr/local/include/eigen3")]
eigen = next((place for place in places if (place / "Eigen").is_dir()), None)
compiler = shutil.which("c++")


def predict_in_cpp(lines):
    """Compile the program and return what it makes of the lines, or None if that cannot be."""
    missing = {"C++ compiler": compiler, "Eigen": eigen, "source": root}
    for what, found in missing.items():
        if not found:
            print(f"no {what} here: the program is shown, and not run")
            return None
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "predict.cpp", Path(folder) / "predict"
        source.write_text(program, encoding="utf-8")
        source.with_name("model.hpp").write_text(header, encoding="utf-8")
        command = [compiler, "-std=c++17", f"-I{root / 'include'}", f"-I{eigen}", "-pthread"]
        command += [f"-I{root / 'src'}", "-DEIGEN_MAX_ALIGN_BYTES=64"]
        command += [source, *(root / "src" / f"{part}.cpp" for part in parts.split())]
        subprocess.run([*command, "-o", built], check=True)
        done = subprocess.run([built], input=lines, capture_output=True, text=True, check=True)
    return np.array([line.split() for line in done.stdout.splitlines()], dtype=float)


lines = "\n".join(" ".join(map(repr, row.tolist())) for row in np.hstack([X.mean, std]))
here = np.column_stack([clf.decision_function(X), clf.decision_std(X), clf.side_probability(X)])
there = predict_in_cpp(lines)
if there is not None:
    print(f"largest difference: {np.abs(there - here).max():.1e}")

# %%
# What came out
# -------------
# Decision values with their standard deviations, from C++ where it was run.

value, spread, side = (here if there is None else there).T
order = np.argsort(value)
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.errorbar(np.arange(60), value[order], yerr=spread[order], fmt="none", ecolor="0.7")
points = ax.scatter(np.arange(60), value[order], c=side[order], cmap="coolwarm", s=16, zorder=3)
ax.axhline(0, color="black", lw=0.8)
figure.colorbar(points, label="P(f > 0)")
ax.set(xlabel="examples, in order", ylabel="decision value f")
plt.show()
