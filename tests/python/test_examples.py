"""The examples of the gallery, and the README's pictures: each runs without a warning and draws."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
EXAMPLES = [
    pytest.param(path, marks=pytest.mark.campaign) if "embedding" in path.name else path  # compiles
    for path in sorted(FOLDER.glob("plot_*.py"))
]

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the examples are not here")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: getattr(path, "stem", None))
def test_example_runs_draws_and_prints(path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.chdir(FOLDER)
    plt.close("all")
    runpy.run_path(str(path), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
        assert any(ax.has_data() for ax in figure.axes)
    plt.close("all")
    assert capsys.readouterr().out.strip()


def test_there_are_eight_in_order():
    assert sorted(path.name[:7] for path in FOLDER.glob("plot_*.py")) == [
        f"plot_{k}_" for k in range(1, 9)
    ]


@pytest.mark.parametrize("name", ["decision_lines", "pictures"])  # the third is the demo's own
def test_picture_of_the_readme_is_drawn(name, monkeypatch, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    output = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [name, str(output)])
    with plt.rc_context():
        runpy.run_path(str(ROOT / "docs" / "figures" / f"{name}.py"), run_name="__main__")
    plt.close("all")
    assert plt.imread(output).std() > 0
