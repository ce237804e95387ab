"""The report's figures: matplotlib drawings as inline SVG with text alternatives."""

from harness.report.figures.batch import batch_figure
from harness.report.figures.clocks import clocks_figure
from harness.report.figures.collectives import collective_figure
from harness.report.figures.curves import efficiency_figure, throughput_figure
from harness.report.figures.network import network_figure
from harness.report.figures.ops import ops_figure
from harness.report.figures.parts import parts_figure
from harness.report.figures.phases import phases_figure
from harness.report.figures.pipelines import pipelines_figure
from harness.report.figures.ranking import ranking_figure
from harness.report.figures.roofline import roofline_figure
from harness.report.figures.steps import steps_figure, workers_figure
from harness.report.figures.svg import Picture

__all__ = [
    "Picture",
    "batch_figure",
    "clocks_figure",
    "collective_figure",
    "efficiency_figure",
    "network_figure",
    "ops_figure",
    "parts_figure",
    "phases_figure",
    "pipelines_figure",
    "ranking_figure",
    "roofline_figure",
    "steps_figure",
    "throughput_figure",
    "workers_figure",
]
