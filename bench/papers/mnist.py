"""SVM-GSU, Table 1 and figure 5: ones against sevens from 25 images of each, D0 to D5.

D0 is MNIST; in D1 to D5 each image is turned by up to 15 degrees and shifted by up to 3, 5, 7, 9
and 11 pixels, training and test images alike. The errors of an image are those of a shift of
standard deviation 5/3 pixels in both directions (covariances of rank 2), in all of D0 to D5 as in
the paper. Two shifts allow subspaces of one or two dimensions only, so the fraction of variance p
of figure 5 decides which images keep both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from common import (
    LEGEND,
    Method,
    Options,
    Run,
    Search,
    as_given,
    baselines,
    best_by_validation,
    compare,
    format_scores,
    means_only,
    run_script,
    standard_error,
)
from loaders import Digits, digits
from scipy import ndimage

from halosvm import UncertainSVC
from halosvm.uncertainty import image_transform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from common import Array, Scores

SHIFTS = {"D0": 0, "D1": 3, "D2": 5, "D3": 7, "D4": 9, "D5": 11}  # pixels
TURN = 15.0  # degrees
STD = 5.0 / 3.0  # pixels
PAPER = {
    "lsvm": (0.9952, 0.9362, 0.8240, 0.6830, 0.6558, 0.6027),
    "sphere": (0.9963, 0.9315, 0.8157, 0.7017, 0.6650, 0.6259),
    "iso": (0.9968, 0.9327, 0.8133, 0.7222, 0.6675, 0.6328),
    "gsu": (0.9971, 0.9452, 0.8310, 0.7216, 0.6708, 0.6353),
    "subspace": (0.9972, 0.9480, 0.8562, 0.7543, 0.6974, 0.6640),
}
ErrorModel = dict[str, Any]
SHIFTED: ErrorModel = {"std": [STD, STD]}
BLURRED: ErrorModel = {"std": [STD, STD], "method": "statistical"}
TURNED: ErrorModel = {  # the standard deviation of a uniform angle
    "std": [STD, STD, np.radians(TURN) / np.sqrt(3.0)],
    "transforms": ("shift_x", "shift_y", "rotation"),
}


def pollute(images: Array, shift: float, rng: np.random.Generator) -> Array:
    """Turn and shift each image at random, as D1 to D5 do; a shift of 0 leaves all as they are."""
    if shift == 0:
        return images
    polluted = np.empty_like(images)
    for i, image in enumerate(images):
        turned = ndimage.rotate(image, rng.uniform(-TURN, TURN), reshape=False, order=1)
        polluted[i] = ndimage.shift(turned, rng.uniform(-shift, shift, 2), order=1)
    return polluted


def make_run(
    data: Digits, shift: float, per_class: int, rng: np.random.Generator, model: ErrorModel
) -> Run:
    """Choose images of each digit, pollute them and all test images, and model their errors."""
    rows = [
        rng.choice(np.flatnonzero(data.train_labels == label), per_class, replace=False)
        for label in (False, True)
    ]
    chosen = np.concatenate(rows)
    images, test = (pollute(part, shift, rng) for part in (data.train[chosen], data.test))
    points = test.reshape(len(test), -1)
    return Run(
        image_transform(images, **model), data.train_labels[chosen], points, data.test_labels
    )


def methods(fractions: tuple[float, ...]) -> dict[str, Method]:
    """Return the baselines, LSVM-GSU, and LSVM-GSU in subspaces of several fractions p."""
    basic = baselines()
    del basic["sampling"]
    subspaces = {
        f"p = {p:g}": Method(f"LSVM-GSU, p = {p:g}", as_given, UncertainSVC(subspace=p))
        for p in fractions
    }
    return basic | subspaces


VARIANTS = {
    "turned": (TURNED, Method("LSVM-GSU, with rotation", as_given, UncertainSVC())),
    "statistical": (BLURRED, Method("LSVM-GSU, blurred", as_given, UncertainSVC())),
    "blurred": (BLURRED, Method("LSVM, blurred", means_only, UncertainSVC(loss="hinge"))),
}


def measure(
    data: Digits, shift: float, n_runs: int, seed: int, search: Search, fractions: tuple[float, ...]
) -> dict[str, Scores]:
    """Compare all methods on one data set, all with the same images."""

    def runs(model: ErrorModel) -> Iterator[Run]:
        for number in range(n_runs):
            yield make_run(data, shift, 25, np.random.default_rng((seed, number)), model)

    results = compare(methods(fractions), runs(SHIFTED), search)
    results["subspace"] = best_by_validation(
        [results["gsu"], *(results[f"p = {p:g}"] for p in fractions)]
    )
    for key, (model, method) in VARIANTS.items():
        results |= compare({key: method}, runs(model), search)
    return results


def experiment(options: Options) -> None:
    """Print Table 1 for all data sets, paired tests, and draw figure 5."""
    data = digits()
    n_runs, fractions = (20, (0.7,)) if options.quick else (100, (0.5, 0.6, 0.7, 0.8, 0.9))
    grid = (0.1, 1.0, 10.0) if options.quick else tuple(np.logspace(-3, 1, 9))
    search = Search(grid)
    shown = methods(fractions) | {key: method for key, (_, method) in VARIANTS.items()}
    shown["subspace"] = Method("LSVM-GSU, p by cross-validation", as_given, UncertainSVC())
    print(f"Table 1: 25 images per class, {n_runs} runs, C by 3-fold cross-validation\n{LEGEND}\n")
    found = {}
    for number, (name, shift) in enumerate(SHIFTS.items()):
        found[name] = measure(data, shift, n_runs, options.seed, search, fractions)
        for key, accuracies in PAPER.items():
            shown[key] = shown[key]._replace(paper=f"{100 * accuracies[number]:.2f}")
        table = format_scores(shown, found[name], search)
        print(f"{name}: shifts up to {shift} pixels\n{table}\n", flush=True)
    draw(options, found, fractions)


def draw(
    options: Options, found: dict[str, dict[str, Scores]], fractions: tuple[float, ...]
) -> None:
    """Draw figure 5: accuracy against the fraction of variance kept."""
    figure, save = options.figure("mnist_figure5", (13, 7.5))
    for axes, (name, results) in zip(figure.subplots(2, 3).ravel(), found.items(), strict=True):
        places = [*fractions, 1.0]
        curve = [results[f"p = {p:g}"].score() for p in fractions] + [results["gsu"].score()]
        means, bars = np.mean(curve, axis=1), [standard_error(values) for values in curve]
        axes.errorbar(places, means, bars, marker="D", capsize=3, label="LSVM-GSU, fraction p")
        plain = results["lsvm"].score()
        axes.axhline(plain.mean(), color="black", lw=1.2, label="LSVM")
        for side in (-1, 1):
            level = plain.mean() + side * standard_error(plain)
            axes.axhline(level, color="black", lw=0.8, ls="--")
        for place, key, marker, label in (
            (1.03, "sphere", "o", "optimistic sphere"),
            (1.05, "iso", "*", "LSVM-iso"),
            (1.07, "statistical", "s", "LSVM-GSU, blurred"),
            (1.09, "turned", "^", "LSVM-GSU, with rotation"),
        ):
            score = results[key].score()
            axes.errorbar(
                place, score.mean(), standard_error(score), fmt=marker, ms=8, capsize=3, label=label
            )
        axes.set(title=f"{name}", xlabel="fraction of variance p", ylabel="test accuracy")
        axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    save()


if __name__ == "__main__":
    run_script(experiment, __doc__)
