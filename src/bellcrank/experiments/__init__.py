"""The papers' experiments, done again: each a function that runs it and says what is printed beside what came out."""

from __future__ import annotations

from bellcrank.errors import InputError, unknown
from bellcrank.experiments import (
    nikravesh_times,
    saha_planar,
    saha_puma,
    saha_stanford,
    wong_excavator,
    wong_puma,
    wong_torso,
)
from bellcrank.experiments.experiment import Experiment, Result, Row

NIKRAVESH, WONG, SAHA = "Nikravesh 1989", "Wong 1991", "Saha 2001"

# In the order of the papers.
EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        Experiment(
            "nikravesh-7", NIKRAVESH, "7", "Four-bar on a slide, absolute and joint coordinates", nikravesh_times.run
        ),
        Experiment("wong-3.5.1", WONG, "3.5.1", "PUMA 600, open-loop inverse dynamics", wong_puma.run),
        Experiment("wong-3.5.2", WONG, "3.5.2", "Human torso, open-loop inverse dynamics", wong_torso.run),
        Experiment("wong-5.5.2", WONG, "5.5.2", "Excavator in JOINT and RESOLVED mode", wong_excavator.run),
        Experiment("saha-planar", SAHA, "4", "Planar arm against its explicit equations", saha_planar.run),
        Experiment("saha-stanford", SAHA, "4", "Stanford arm, free fall and forced", saha_stanford.run),
        Experiment("saha-puma", SAHA, "4", "PUMA robot, free fall and forced", saha_puma.run),
    )
}

__all__ = ["EXPERIMENTS", "Experiment", "Result", "Row", "experiment"]


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise InputError(unknown("experiment", name, EXPERIMENTS))
    return EXPERIMENTS[name]
