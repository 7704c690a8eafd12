"""The README and the pages of docs: their Python runs, and what they point to is there."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score

import halosvm
from halosvm.commands.cli import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
WITH_CODE = [page for page in PAGES if "```python\n" in page.read_text(encoding="utf-8")]

pytestmark = pytest.mark.skipif(
    not all((ROOT / name).exists() for name in ("docs/conf.py", "examples", "bench")),
    reason="this is no clone",
)


def run_blocks(page):
    """Run the blocks of a page one after the other in one session, and return its names."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
    return names


def test_examples_run_one_after_the_other_in_one_session():
    names = run_blocks(README)
    assert names["any_other"].predict(names["measured"][:2]).shape == (2,)
    assert names["clf"].suboptimality_ <= 1e-6


def test_table_of_the_readme_is_that_of_scikit_learn_and_its_commands_run(tmp_path, monkeypatch):
    data = load_breast_cancer()
    table = pd.read_csv(ROOT / "examples" / "cells.csv")
    assert (table.to_numpy()[:, :20] == data.data[:, :20]).all()
    assert (table["diagnosis"] == data.target_names[data.target]).all()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    halosvm (.*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert [command.split()[0] for command in commands] == [
        "doctor",
        "train",
        "predict",
        "evaluate",
    ]
    for command in commands[1:]:  # the doctor's are tested where it is
        assert main(shlex.split(command)) == 0
    labels = pd.read_csv(tmp_path / "labels.csv")["label"]
    assert (labels == table["diagnosis"]).mean() > 0.9


def test_measurements_with_holes_are_judged_alike_as_gaussians_arrays_and_frames():
    names = run_blocks(DOCS / "guide" / "sklearn.md")
    scores, best = names["scores"], names["search"].best_score_
    for way in ("arrays", "frames"):
        assert (names[f"scores_of_{way}"] == scores).all()
        assert names[f"search_of_{way}"].best_score_ == best
    # Where errors reach the fit alone, which is warned of, the scores are others.
    given = {"empiricalbayes__X_std": names["std"]}
    with pytest.warns(halosvm.ErrorsLeftOutWarning):
        others = cross_val_score(names["posteriors"], names["values"], names["y"], params=given)
    assert (others != scores).any()


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(DOCS)))
def test_python_of_a_page_runs_from_top_to_bottom(page):
    assert len(run_blocks(page)) > 1


def test_pages_have_code_to_run():
    assert {"error_bars.md", "losses.md", "migration.md"} <= {page.name for page in WITH_CODE}


def test_pictures_and_links_exist():
    pages = [README, *PAGES]
    names = {
        (page, name)
        for page in pages
        for name in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if "gallery/" not in name  # made from the examples
    }
    assert (README, "docs/error_bars.png") in names
    assert not [(page.name, name) for page, name in names if not (page.parent / name).exists()]


def test_examples_of_the_gallery_that_pages_point_to_exist():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = set(re.findall(r"gallery/(plot_\w+)\.rst", text))
    assert names
    assert not [name for name in names if not (ROOT / "examples" / f"{name}.py").exists()]


def test_every_public_name_is_in_the_reference():
    parts = {"index": halosvm, "uncertainty": halosvm.uncertainty, "numpy": halosvm.reference}
    for page, module in parts.items():
        text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
        listed = re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", text, re.MULTILINE)
        modules = {"reference", "uncertainty"} if module is halosvm else set()
        assert sorted(listed) == sorted(set(module.__all__) - modules)


def test_every_public_header_is_on_one_page_of_the_library():
    pages = (DOCS / "cpp").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    listed = re.findall(r"^## ([\w/]+\.hpp)\n\n```\{doxygenfile\} (\w+\.hpp)$", text, re.MULTILINE)
    folder = ROOT / "cpp" / "include" / "halosvm"
    headers = {str(path.relative_to(folder).as_posix()) for path in folder.rglob("*.hpp")}
    # Of everything, halosvm.hpp, the index tells; Doxygen finds files by their names alone.
    assert sorted(heading for heading, _ in listed) == sorted(headers - {"halosvm.hpp"})
    assert all(heading.rpartition("/")[2] == name for heading, name in listed)
    assert len({name for _, name in listed}) == len(listed)


def test_every_letter_of_the_specification_in_the_code_is_a_heading():
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^##+ ([A-P](?:\.\d+b?)?)(?:\.)? ", text, re.MULTILINE))
    sources = [*(ROOT / "cpp").rglob("*.?pp"), *(ROOT / "python").rglob("*.py")]
    code = "".join(path.read_text(encoding="utf-8") for path in sources)
    letters = set(re.findall(r"\bspec ([A-Z](?:\.\d+b?)?)\b", code))
    assert "A.8" in letters
    assert sorted(letters - headings) == []
