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

from halosvm.svc import UncertainSVC
from halosvm.uncertainty import image_transform

from .fits import Record, Setup, Situation, choose_and_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .fits import Progress

    Array = NDArray[np.float64]

STORY = "distributions"
PARTS = 6  # of about 300 images
SHIFT = 0.5  # standard deviation in pixels, down and to the right
COPIES = 4  # shifted versions of each test image


def load_images() -> tuple[Array, NDArray[np.intp]]:
    """Load 1,797 images of 8 x 8 pixels, from 0 to 1, and their digits."""
    data = load_digits()
    return data.images / 16.0, data.target


def shifted(images: Array, rng: np.random.Generator) -> Array:
    """Move each image by a random part of a pixel."""
    return np.array([ndimage.shift(image, rng.normal(0.0, SHIFT, 2), order=1) for image in images])


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
        tests = images[test].reshape(len(test), -1)
        copies = np.tile(images[test], (COPIES, 1, 1))
        moved_tests = shifted(copies, rng).reshape(len(copies), -1)
        for key, loss in (("ignored", "hinge"), ("distribution", "expected_hinge")):
            X = image_transform(images[train], std=[SHIFT, SHIFT])
            fitted = choose_and_fit(
                UncertainSVC(loss=loss), X if key == "distribution" else X.mean, y[train], setup,
                number,
            )  # fmt: skip
            upright.add(key, fitted, fitted.score(tests, y[test]))
            moved.add(key, fitted, fitted.score(moved_tests, np.tile(y[test], COPIES)))
    yield Situation(STORY, "upright test images", 0.0, upright.outcomes())
    yield Situation(STORY, "shifted test images", 0.0, moved.outcomes())
