"""Writer of an FMU's modelDescription.xml, FMI 2.0 and 3.0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bellcrank.emit.c.stepper import Stepper
from bellcrank.exporting.units import parsed
from bellcrank.exporting.variables import Variable, Variables, units
from bellcrank.quoting import xml
from bellcrank.version import __version__

# Causality, variability and initial of each kind.
KINDS = {
    "time": ("independent", "continuous", ""),
    "state": ("output", "continuous", "exact"),
    "rate": ("local", "continuous", "calculated"),
    "input": ("input", "continuous", ""),
    "parameter": ("parameter", "tunable", "exact"),
    "output": ("output", "continuous", "calculated"),
    "indicator": ("local", "continuous", "calculated"),
}
STARTED = ("state", "input", "parameter")


@dataclass(frozen=True)
class About:
    """Facts about an FMU beside its variables: title, C identifier, token, machine and source files."""

    title: str
    identifier: str
    token: str
    stepper: Stepper
    sources: Sequence[str]

    @property
    def steps(self) -> dict[str, str]:
        """Attributes about step sizes for Co-Simulation; samples need a fixed grid of steps."""
        return {"canHandleVariableCommunicationStepSize": "false" if self.stepper.program.ports.clocks else "true"}


def tag(word: str, /, *inside: str, **attributes: str | float) -> str:
    """Return the XML element `word` with the children `inside`; `attributes` are escaped, empty ones left out."""
    head = " ".join([word, *(f'{key}="{xml(str(x))}"' for key, x in attributes.items() if x != "")])
    if not inside:
        return f"<{head}/>"
    body = "\n".join(f"  {line}" for text in inside for line in text.split("\n"))
    return f"<{head}>\n{body}\n</{word}>"


def description(about: About, variables: Variables, version: int) -> str:
    """Return the modelDescription.xml of the FMU `about` with these `variables`, for FMI `version` 2 or 3."""
    made = _of_2(about, variables) if version == 2 else _of_3(about, variables)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{made}\n'


def build_description(about: About) -> str:
    """Return the buildDescription.xml of the FMU `about`, for FMI 3."""
    files = [tag("SourceFile", name=name) for name in about.sources if name.endswith(".c")]
    made = tag(
        "fmiBuildDescription",
        tag(
            "BuildConfiguration",
            tag("SourceFileSet", *files, language="C99"),
            tag("Library", name="m", external="true"),
            modelIdentifier=about.identifier,
        ),
        fmiVersion="3.0",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{made}\n'


def unit_definitions(variables: Variables) -> str:
    """Return the UnitDefinitions element for all units of `variables`."""
    made = []
    for name in units(variables.all):
        found = parsed(name)
        if found is None:
            made.append(tag("Unit", name=name))
            continue
        scale = {"factor": found.factor if found.factor != 1.0 else "", "offset": found.offset or ""}
        made.append(tag("Unit", tag("BaseUnit", **found.powers, **scale), name=name))
    return tag("UnitDefinitions", *made)


def experiment(about: About) -> str:
    """Return the DefaultExperiment element of the FMU `about`."""
    tolerance = about.stepper.tolerance if about.stepper.adaptive else ""
    return tag("DefaultExperiment", startTime="0", stopTime="1", tolerance=tolerance, stepSize=about.stepper.step)


def listed(numbers: Iterable[int]) -> str:
    """Return `numbers` separated by blanks."""
    return " ".join(map(str, numbers))


# -- 2.0: a variable is referred to by its index, which is its value reference plus one


def _of_2(about: About, variables: Variables) -> str:
    files = tag("SourceFiles", *(tag("File", name=name) for name in about.sources if name.endswith(".c")))
    can = {
        "modelIdentifier": about.identifier, "canNotUseMemoryManagementFunctions": "true",
        "canGetAndSetFMUstate": "true", "canSerializeFMUstate": "true", "providesDirectionalDerivative": "true",
    }  # fmt: skip
    outputs, rates = variables.of("state", "output"), variables.of("rate")
    structure = [
        tag("Outputs", *(_unknown_2(v) for v in outputs)),
        tag("Derivatives", *(_unknown_2(v) for v in rates)),
        tag("InitialUnknowns", *(tag("Unknown", index=v.reference + 1) for v in variables.of("rate", "output"))),
    ]
    return tag(
        "fmiModelDescription",
        tag("ModelExchange", files, **can),
        tag("CoSimulation", files, **can, **about.steps),
        unit_definitions(variables),
        experiment(about),
        tag("ModelVariables", *(_variable_2(v) for v in variables.all)),
        tag("ModelStructure", *structure),
        fmiVersion="2.0", modelName=about.title, guid=about.token, generationTool=f"bellcrank {__version__}",
        variableNamingConvention="flat", numberOfEventIndicators=len(variables.of("indicator")),
    )  # fmt: skip


def _unknown_2(v: Variable) -> str:
    # An empty list means that there are no dependencies; tag() would leave it out.
    return f'<Unknown index="{v.reference + 1}" dependencies="{listed(k + 1 for k in v.depends)}"/>'


def _variable_2(v: Variable) -> str:
    causality, variability, initial = KINDS[v.kind]
    start = repr(v.start) if v.kind in STARTED else ""
    derivative = v.state + 1 if v.kind == "rate" else ""
    real = tag("Real", unit=v.unit, nominal=v.nominal or "", start=start, derivative=derivative)
    head: dict[str, str | float] = {"name": v.name, "valueReference": v.reference, "causality": causality}
    return tag("ScalarVariable", real, **head, variability=variability, initial=initial)


# -- 3.0: a variable is referred to by its value reference


def _of_3(about: About, variables: Variables) -> str:
    can = {
        "modelIdentifier": about.identifier, "canGetAndSetFMUState": "true", "canSerializeFMUState": "true",
        "providesDirectionalDerivatives": "true", "providesAdjointDerivatives": "true",
    }  # fmt: skip
    structure = [_unknown_3("Output", v) for v in variables.of("state", "output")]
    structure += [_unknown_3("ContinuousStateDerivative", v) for v in variables.of("rate")]
    structure += [tag("InitialUnknown", valueReference=v.reference) for v in variables.of("rate", "output")]
    structure += [_unknown_3("EventIndicator", v) for v in variables.of("indicator")]
    return tag(
        "fmiModelDescription",
        tag("ModelExchange", **can),
        tag("CoSimulation", **can, **about.steps),
        unit_definitions(variables),
        experiment(about),
        tag("ModelVariables", *(_variable_3(v) for v in variables.all)),
        tag("ModelStructure", *structure),
        fmiVersion="3.0", modelName=about.title, instantiationToken=about.token,
        generationTool=f"bellcrank {__version__}", variableNamingConvention="flat",
    )  # fmt: skip


def _unknown_3(name: str, v: Variable) -> str:
    return f'<{name} valueReference="{v.reference}" dependencies="{listed(v.depends)}"/>'


def _variable_3(v: Variable) -> str:
    causality, variability, initial = KINDS[v.kind]
    head: dict[str, str | float] = {"name": v.name, "valueReference": v.reference, "causality": causality}
    start = repr(v.start) if v.kind in STARTED else ""
    derivative = v.state if v.kind == "rate" else ""
    return tag(
        "Float64", **head, variability=variability, initial=initial, start=start, unit=v.unit, nominal=v.nominal or "",
        derivative=derivative,
    )  # fmt: skip
