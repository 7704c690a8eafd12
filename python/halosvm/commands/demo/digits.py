"""Distributions: few handwritten digits, which may stand a little aside of where they were seen.

Here the example itself is a distribution, all shifted versions of an image, so its Gaussian goes to
the expected hinge loss as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from halosvm.gaussians.gaussians import Gaussians
from halosvm.linear.svc import UncertainSVC
from halosvm.uncertainty import image_transform

from .fits import Record, Setup, Situation, fit_quietly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .fits import Progress

    Array = NDArray[np.float64]

STORY = "distributions"
PARTS = 6  # of about 300 images
SHIFT = 0.3  # standard deviation in pixels, down and to the right
COPIES = 4  # shifted versions of each image to predict


def load_images() -> tuple[Array, NDArray[np.intp]]:
    """Load 1,797 images of 8 x 8 pixels, from 0 to 1, and their digits."""
    data = load_digits()
    return data.images / 16.0, data.target


def shifted(images: Array, rng: np.random.Generator) -> Array:
    """Return shifted versions of each image, (n_images, COPIES, n_pixels)."""
    moved = [
        [ndimage.shift(image, rng.normal(0.0, SHIFT, 2), order=1) for _ in range(COPIES)]
        for image in images
    ]
    return np.array(moved).reshape(len(images), COPIES, -1)


def accuracy(clf: UncertainSVC, moved: Array, y: NDArray[np.intp]) -> float:
    """Return the accuracy on all versions of the images."""
    return float(clf.score(moved.reshape(-1, moved.shape[-1]), np.repeat(y, moved.shape[1])))


def choose_and_fit(
    loss: str,
    X: Gaussians,
    y: NDArray[np.intp],
    moved: Array,
    setup: Setup,
    seed: int,
) -> UncertainSVC:
    """Choose C on shifted versions of held-out images, then fit on all training images."""
    folds = list(StratifiedKFold(setup.folds, shuffle=True, random_state=seed).split(y, y))

    def validated(C: float) -> float:
        return sum(
            accuracy(fit_quietly(made(C), X[known], y[known]), moved[asked], y[asked])
            for known, asked in folds
        )

    def made(C: float) -> UncertainSVC:
        return UncertainSVC(C, loss=loss, n_threads=1)

    best: UncertainSVC = fit_quietly(made(max(setup.grid, key=validated)), X, y)
    return best


def shifted_digits(setup: Setup, progress: Progress) -> Iterator[Situation]:
    """Compare the images as they are with images under shifts.

    Each split trains on one sixth of the images and tests on the next, so no image serves twice for
    either, and there are at most six splits.
    """
    images, y = load_images()
    folds = StratifiedKFold(PARTS, shuffle=True, random_state=setup.seed)
    parts = [part for _, part in folds.split(images, y)]
    upright, moved = Record(), Record()
    for number in progress.steps("digits under shifts", min(setup.splits, PARTS)):
        train, test = parts[number], parts[(number + 1) % PARTS]
        rng = np.random.default_rng((setup.seed, number))
        known, asked = shifted(images[train], rng), shifted(images[test], rng)
        still = images[test].reshape(len(test), 1, -1)
        certain = Gaussians(images[train].reshape(len(train), -1))
        # The shifts are Gaussian, for which this method is exact.
        uncertain = image_transform(images[train], std=[SHIFT, SHIFT], method="statistical")
        for key, loss, X in (
            ("ignored", "hinge", certain),
            ("distribution", "expected_hinge", uncertain),
        ):
            clf = choose_and_fit(loss, X, y[train], known, setup, number)
            upright.add(key, clf, accuracy(clf, still, y[test]))
            moved.add(key, clf, accuracy(clf, asked, y[test]))
    yield Situation(STORY, "upright test images", 0.0, upright.outcomes())
    yield Situation(STORY, "shifted test images", 0.0, moved.outcomes())
