"""Pictures of a fitted model, drawn with matplotlib from the dict of ``summary()``.

``pip install 'hikernel[plot]'`` brings matplotlib, which is imported when the first picture is
drawn. Every function takes a fitted model or its summary, and axes to draw on where it needs one.
"""

from hikernel.plots.certificate_plot import plot_certificate
from hikernel.plots.effect_plots import plot_effect, plot_effects
from hikernel.plots.hull_plot import plot_hull
from hikernel.plots.importance_plot import plot_importance
from hikernel.plots.overview_plot import overview
from hikernel.plots.path_plot import plot_path
from hikernel.plots.prediction_plot import plot_prediction
from hikernel.plots.stability_plot import plot_stability

__all__ = [
    "overview",
    "plot_certificate",
    "plot_effect",
    "plot_effects",
    "plot_hull",
    "plot_importance",
    "plot_path",
    "plot_prediction",
    "plot_stability",
]
