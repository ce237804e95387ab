"""In what order and how often: blocks of groups, shuffled by a seed and sealed by a hash."""

from harness.plan.blocks import beside_bases, make_plan, missing_groups, part_of
from harness.plan.estimate import Estimate, estimate

__all__ = ["Estimate", "beside_bases", "estimate", "make_plan", "missing_groups", "part_of"]
