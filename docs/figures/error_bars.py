"""Draw the README's first picture: what error bars are worth, by what they mean.

It is the figure of `halosvm demo`. Run as `python docs/figures/error_bars.py [FILE.png]`.
"""

from __future__ import annotations

import sys

from halosvm.commands import demo

if __name__ == "__main__":
    setup = demo.Setup()
    path = sys.argv[1] if len(sys.argv) > 1 else "docs/error_bars.png"
    judged = demo.judge_probabilities(setup, demo.fits.Progress(sys.stderr))
    demo.draw(demo.run(setup, sys.stderr), judged, setup, path)
