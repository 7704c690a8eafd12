"""The README: its Python runs from top to bottom, and its pictures are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not here")


def test_examples_run_one_after_the_other_in_one_session():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["any_other"].predict(names["measured"][:2]).shape == (2,)
    assert names["scaled"].covariances.kind == names["curves"].covariances.kind == "diagonal"
    assert names["robust"].suboptimality_ <= 1e-6
    assert names["value_std"].shape == (3,)


def test_pictures_and_links_exist():
    text = README.read_text(encoding="utf-8")
    names = re.findall(r"\]\(([^)#:]+)\)", text)
    assert "docs/error_bars.png" in names
    assert not [name for name in names if not (ROOT / name).exists()]
