"""Pictures: fitted estimators and examples come in, figures of matplotlib go out (extra `plot`).

decision_boundary   `UncertainDecisionBoundaryDisplay`: border, band and ellipses, in `plane`
objective_plot      `ObjectivePlot`: value and certified bound of a fit
support_plot        `SupportPlot`: which examples act on the border
reliability         `ReliabilityDisplay`: whether probabilities are right
drawing             colours, axes, and matplotlib, which is imported only to draw
"""
