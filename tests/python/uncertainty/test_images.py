"""uncertainty.image_transform against Monte Carlo over analytic images, which move exactly."""

import numpy as np
import pytest
from cases import DTYPES, each

from halosvm.uncertainty import image_transform

H, W = 18, 24
CX, CY = (W - 1) / 2, (H - 1) / 2
ROWS, COLUMNS = np.mgrid[:H, :W].astype(float)
ALL = ("shift_x", "shift_y", "rotation", "scale", "gain", "offset")


def blobs(columns, rows, width=3.0):
    """Two Gaussian blobs, far from the border."""
    one = np.exp(-0.5 * ((columns - 9.0) ** 2 + (rows - 7.0) ** 2) / width**2)
    return one + 0.7 * np.exp(-0.5 * ((columns - 14.0) ** 2 + (rows - 10.0) ** 2) / width**2)


def transformed(shift_x=0.0, shift_y=0.0, rotation=0.0, scale=0.0, gain=0.0, offset=0.0, **shape):
    """The content moved right and down, turned clockwise on the screen, grown, and brightened."""
    x, y = COLUMNS - shift_x - CX, ROWS - shift_y - CY
    cos, sin = np.cos(rotation), np.sin(rotation)
    x, y = (cos * x + sin * y) / (1 + scale), (cos * y - sin * x) / (1 + scale)
    return (1 + gain) * blobs(x + CX, y + CY, **shape) + offset


def monte_carlo(names, cov, n=40_000, seed=0, **shape):
    draws = np.random.default_rng(seed).multivariate_normal(np.zeros(len(names)), cov, n)
    images = np.array([transformed(**dict(zip(names, t, strict=True)), **shape) for t in draws])
    images = images.reshape(n, -1)
    return images.mean(axis=0), np.cov(images, rowvar=False)


def relative_error(got, truth):
    return np.linalg.norm(got - truth) / np.linalg.norm(truth)


@pytest.mark.parametrize("name", ALL)
def test_each_generator_is_the_derivative_of_the_image(name):
    step = 1e-5
    ahead, behind = transformed(**{name: step}), transformed(**{name: -step})
    derivative = ((ahead - behind) / (2 * step)).ravel()
    X = image_transform(transformed()[np.newaxis], std=[1.0], transforms=(name,))
    factor = X.covariances.values[0, :, 0]
    # central differences damp a wave of number k by sin(k) / k: some percent of these blobs
    limit = 0.1 if name in ALL[:4] else 1e-9
    assert relative_error(factor, derivative) < limit
    assert (X.mean[0] == transformed().ravel()).all()


def test_small_transformations_have_the_covariance_of_monte_carlo():
    std = np.array([0.3, 0.3, 0.05, 0.05, 0.03, 0.01])
    correlation = np.full((6, 6), 0.3) + 0.7 * np.eye(6)
    cov = correlation * np.outer(std, std)
    mean, covariance = monte_carlo(ALL, cov)
    X = image_transform(transformed()[np.newaxis], cov=cov, transforms=ALL)
    assert X.covariances.values.shape == (1, H * W, 6)
    got = X.covariances.to_full()[0]
    assert relative_error(got, covariance) < 0.08
    assert relative_error(X.mean[0], mean) < 0.02
    # with the wrong relative sign of two generators the error is far larger
    flipped = cov * np.outer(*[[1, 1, -1, 1, 1, 1]] * 2)
    wrong = image_transform(transformed()[np.newaxis], cov=flipped, transforms=ALL)
    assert relative_error(wrong.covariances.to_full()[0], covariance) > 0.2


def test_statistical_linearisation_has_the_exact_mean_of_large_shifts():
    cov = np.array([[2.0, 0.8], [0.8, 1.0]])
    mean, covariance = monte_carlo(ALL[:2], cov, width=2.0)
    image = transformed(width=2.0)[np.newaxis]
    taylor = image_transform(image, cov=cov)
    statistical = image_transform(image, cov=cov, method="statistical")
    assert relative_error(statistical.mean[0], mean) < 0.01
    assert relative_error(taylor.mean[0], mean) > 0.15
    error = relative_error(statistical.covariances.to_full()[0], covariance)
    assert error < 0.35
    assert error < 0.5 * relative_error(taylor.covariances.to_full()[0], covariance)


def test_the_blur_is_that_of_the_analytic_image():
    """A blob of variance v blurred by a shift of covariance S is one of variance v + S."""
    cov = np.array([[0.09, 0.05], [0.05, 0.3]])
    image = np.exp(-0.5 * ((COLUMNS - 11.0) ** 2 + (ROWS - 8.0) ** 2) / 1.5**2)
    total = 1.5**2 * np.eye(2) + cov
    d = np.stack([COLUMNS - 11.0, ROWS - 8.0], axis=-1)
    quadratic = np.einsum("hwi,ij,hwj->hw", d, np.linalg.inv(total), d)
    expected = 1.5**2 / np.sqrt(np.linalg.det(total)) * np.exp(-0.5 * quadratic)
    X = image_transform(image[np.newaxis], cov=cov, method="statistical")
    np.testing.assert_allclose(X.mean[0].reshape(H, W), expected, atol=1e-4)


def test_statistical_and_taylor_agree_where_nothing_shifts():
    image = transformed()[np.newaxis]
    options = {"std": [0.1, 0.2], "transforms": ("rotation", "gain")}
    a = image_transform(image, **options)
    b = image_transform(image, **options, method="statistical")
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-12)
    np.testing.assert_allclose(a.covariances.values, b.covariances.values, atol=1e-12)


@each("dtype", DTYPES)
@each("method", ["taylor", "statistical"])
def test_parameters_for_each_image_equal_calls_one_by_one(method, dtype, monkeypatch):
    monkeypatch.setattr("halosvm.uncertainty.images._BLOCK", 2 * H * W * 2)  # two images a block
    rng = np.random.default_rng(4)
    images = rng.uniform(size=(5, H, W)).astype(dtype)
    images.flags.writeable = False
    std = rng.uniform(0.1, 1.0, (5, 2))
    cov = np.einsum("ni,ij->nij", std**2, np.eye(2))
    options = {"transforms": ("rotation", "shift_x"), "method": method, "center": (3.0, 4.0)}
    X = image_transform(images, std=std, **options)
    assert X.dtype == X.covariances.dtype == dtype
    by_cov = image_transform(images[:, ::-1][:, ::-1], cov=cov, **options)
    np.testing.assert_allclose(by_cov.covariances.values, X.covariances.values, rtol=1e-5)
    for i in range(5):
        one = image_transform(images[i : i + 1], std=std[i], **options)
        np.testing.assert_allclose(one.mean[0], X.mean[i], rtol=1e-6)
        np.testing.assert_allclose(
            one.covariances.values[0], X.covariances.values[i], rtol=1e-5, atol=1e-7
        )


def test_a_singular_parameter_covariance_is_a_covariance():
    cov = np.array([[1.0, 2.0], [2.0, 4.0]])
    X = image_transform(transformed()[np.newaxis], cov=cov)
    unit = image_transform(transformed()[np.newaxis], std=[1.0, 1.0]).covariances.values[0]
    np.testing.assert_allclose(X.covariances.to_full()[0], unit @ cov @ unit.T, atol=1e-12)


IMAGE = np.ones((1, 3, 3))


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (np.ones((3, 3)), {"std": [1, 1]}, r"images has shape \(3, 3\)"),
        (np.ones((2, 1, 3)), {"std": [1, 1]}, "at least 2 x 2 pixels"),
        (np.full((1, 3, 3), np.nan), {"std": [1, 1]}, r"images: row 0, entry \(0, 0\) is nan"),
        (IMAGE, {}, "exactly one of std and cov"),
        (IMAGE, {"std": [1, 1], "cov": np.eye(2)}, "exactly one of std and cov"),
        (IMAGE, {"std": [1, 1, 1]}, r"std has shape \(1, 3\), expected \(1, 2\)"),
        (IMAGE, {"std": [[1, 1], [1, 1]]}, r"std has shape \(2, 2\), expected \(1, 2\)"),
        (IMAGE, {"std": [1, -1]}, "std row 0, column 1 is -1"),
        (IMAGE, {"std": [1, np.nan]}, "std row 0, column 1 is nan"),
        (IMAGE, {"cov": [[1, 2], [2, 1]]}, "cov row 0 has the eigenvalue -1"),
        (IMAGE, {"std": [1], "transforms": ("twist",)}, "'twist' is none of shift_x, shift_y"),
        (IMAGE, {"std": [1, 1], "transforms": ("gain", "gain")}, "each transformation once"),
        (IMAGE, {"std": [], "transforms": ()}, "each transformation once"),
        (IMAGE, {"std": [1, 1], "method": "sampling"}, "method must be 'taylor' or 'statistical'"),
        (IMAGE, {"std": [1, 1], "center": (np.nan, 0)}, "center must be finite"),
    ],
)
def test_bad_input_is_named(images, options, message):
    with pytest.raises(ValueError, match=message):
        image_transform(images, **options)


def test_transforms_must_be_given():
    with pytest.raises(TypeError, match="transforms must be names of transformations, got None"):
        image_transform(IMAGE, std=[1, 1], transforms=None)
