"""Mechanisms as data, and the internal tree that methods work on; independent of graphs."""

from bellcrank.model.construction import mechanism_of
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.parts import Array, Body, Frame, Joint, Limits, Loop, Mimic, Report, ReportLine, Spring
from bellcrank.model.tree import Tree, regrouped

__all__ = [
    "Array",
    "Body",
    "Frame",
    "Joint",
    "Limits",
    "Loop",
    "Mechanism",
    "Mimic",
    "Report",
    "ReportLine",
    "Spring",
    "Tree",
    "mechanism_of",
    "regrouped",
]
