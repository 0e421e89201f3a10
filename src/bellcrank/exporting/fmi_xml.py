"""Writer of an FMU's modelDescription.xml, FMI 2.0 and 3.0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bellcrank.emit.c.exported_program import ExportedProgram
from bellcrank.exporting.fmi_variables import FmiVariable, FmiVariables, used_units
from bellcrank.exporting.unit_parser import parse_unit
from bellcrank.quoting import xml
from bellcrank.version import __version__

# Causality, variability and initial of each kind.
VARIABLE_ATTRIBUTES = {
    "time": ("independent", "continuous", ""),
    "state": ("output", "continuous", "exact"),
    "rate": ("local", "continuous", "calculated"),
    "input": ("input", "continuous", ""),
    "parameter": ("parameter", "tunable", "exact"),
    "output": ("output", "continuous", "calculated"),
    "indicator": ("local", "continuous", "calculated"),
}
KINDS_WITH_START = ("state", "input", "parameter")


@dataclass(frozen=True)
class FmuFacts:
    """Facts about an FMU beside its variables: title, C identifier, token, machine and source files."""

    title: str
    identifier: str
    token: str
    stepper: ExportedProgram
    sources: Sequence[str]

    @property
    def steps(self) -> dict[str, str]:
        """Attributes about step sizes for Co-Simulation; samples need a fixed grid of steps."""
        return {"canHandleVariableCommunicationStepSize": "false" if self.stepper.program.ports.clocks else "true"}


def xml_element(word: str, /, *inside: str, **attributes: str | float) -> str:
    """Return the XML element `word` with the children `inside`; `attributes` are escaped, empty ones left out."""
    head = " ".join([word, *(f'{key}="{xml(str(x))}"' for key, x in attributes.items() if x != "")])
    if not inside:
        return f"<{head}/>"
    body = "\n".join(f"  {line}" for text in inside for line in text.split("\n"))
    return f"<{head}>\n{body}\n</{word}>"


def model_description(about: FmuFacts, variables: FmiVariables, version: int) -> str:
    """Return the modelDescription.xml of the FMU `about` with these `variables`, for FMI `version` 2 or 3."""
    root = _description_2(about, variables) if version == 2 else _description_3(about, variables)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n'


def build_description(about: FmuFacts) -> str:
    """Return the buildDescription.xml of the FMU `about`, for FMI 3."""
    files = [xml_element("SourceFile", name=name) for name in about.sources if name.endswith(".c")]
    root = xml_element(
        "fmiBuildDescription",
        xml_element(
            "BuildConfiguration",
            xml_element("SourceFileSet", *files, language="C99"),
            xml_element("Library", name="m", external="true"),
            modelIdentifier=about.identifier,
        ),
        fmiVersion="3.0",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n'


def unit_definitions(variables: FmiVariables) -> str:
    """Return the UnitDefinitions element for all units of `variables`."""
    elements = []
    for name in used_units(variables.all):
        unit = parse_unit(name)
        if unit is None:
            elements.append(xml_element("Unit", name=name))
            continue
        scale = {"factor": unit.factor if unit.factor != 1.0 else "", "offset": unit.offset or ""}
        elements.append(xml_element("Unit", xml_element("BaseUnit", **unit.powers, **scale), name=name))
    return xml_element("UnitDefinitions", *elements)


def default_experiment(about: FmuFacts) -> str:
    """Return the DefaultExperiment element of the FMU `about`."""
    tolerance = about.stepper.tolerance if about.stepper.adaptive else ""
    return xml_element(
        "DefaultExperiment", startTime="0", stopTime="1", tolerance=tolerance, stepSize=about.stepper.step
    )


def number_list(numbers: Iterable[int]) -> str:
    """Return `numbers` separated by blanks."""
    return " ".join(map(str, numbers))


# -- 2.0: a variable is referred to by its index, which is its value reference plus one


def _description_2(about: FmuFacts, variables: FmiVariables) -> str:
    files = xml_element(
        "SourceFiles", *(xml_element("File", name=name) for name in about.sources if name.endswith(".c"))
    )
    capabilities = {
        "modelIdentifier": about.identifier, "canNotUseMemoryManagementFunctions": "true",
        "canGetAndSetFMUstate": "true", "canSerializeFMUstate": "true", "providesDirectionalDerivative": "true",
    }  # fmt: skip
    outputs, rates = variables.of_kinds("state", "output"), variables.of_kinds("rate")
    structure = [
        xml_element("Outputs", *(_unknown_2(v) for v in outputs)),
        xml_element("Derivatives", *(_unknown_2(v) for v in rates)),
        xml_element(
            "InitialUnknowns",
            *(xml_element("Unknown", index=v.reference + 1) for v in variables.of_kinds("rate", "output")),
        ),
    ]
    return xml_element(
        "fmiModelDescription",
        xml_element("ModelExchange", files, **capabilities),
        xml_element("CoSimulation", files, **capabilities, **about.steps),
        unit_definitions(variables),
        default_experiment(about),
        xml_element("ModelVariables", *(_variable_2(v) for v in variables.all)),
        xml_element("ModelStructure", *structure),
        fmiVersion="2.0", modelName=about.title, guid=about.token, generationTool=f"bellcrank {__version__}",
        variableNamingConvention="flat", numberOfEventIndicators=len(variables.of_kinds("indicator")),
    )  # fmt: skip


def _unknown_2(v: FmiVariable) -> str:
    # An empty list means that there are no dependencies; tag() would leave it out.
    return f'<Unknown index="{v.reference + 1}" dependencies="{number_list(k + 1 for k in v.depends)}"/>'


def _variable_2(v: FmiVariable) -> str:
    causality, variability, initial = VARIABLE_ATTRIBUTES[v.kind]
    start = repr(v.start) if v.kind in KINDS_WITH_START else ""
    derivative = v.state + 1 if v.kind == "rate" else ""
    real = xml_element("Real", unit=v.unit, nominal=v.nominal or "", start=start, derivative=derivative)
    head: dict[str, str | float] = {"name": v.name, "valueReference": v.reference, "causality": causality}
    return xml_element("ScalarVariable", real, **head, variability=variability, initial=initial)


# -- 3.0: a variable is referred to by its value reference


def _description_3(about: FmuFacts, variables: FmiVariables) -> str:
    capabilities = {
        "modelIdentifier": about.identifier, "canGetAndSetFMUState": "true", "canSerializeFMUState": "true",
        "providesDirectionalDerivatives": "true", "providesAdjointDerivatives": "true",
    }  # fmt: skip
    structure = [_unknown_3("Output", v) for v in variables.of_kinds("state", "output")]
    structure += [_unknown_3("ContinuousStateDerivative", v) for v in variables.of_kinds("rate")]
    structure += [
        xml_element("InitialUnknown", valueReference=v.reference) for v in variables.of_kinds("rate", "output")
    ]
    structure += [_unknown_3("EventIndicator", v) for v in variables.of_kinds("indicator")]
    return xml_element(
        "fmiModelDescription",
        xml_element("ModelExchange", **capabilities),
        xml_element("CoSimulation", **capabilities, **about.steps),
        unit_definitions(variables),
        default_experiment(about),
        xml_element("ModelVariables", *(_variable_3(v) for v in variables.all)),
        xml_element("ModelStructure", *structure),
        fmiVersion="3.0", modelName=about.title, instantiationToken=about.token,
        generationTool=f"bellcrank {__version__}", variableNamingConvention="flat",
    )  # fmt: skip


def _unknown_3(name: str, v: FmiVariable) -> str:
    return f'<{name} valueReference="{v.reference}" dependencies="{number_list(v.depends)}"/>'


def _variable_3(v: FmiVariable) -> str:
    causality, variability, initial = VARIABLE_ATTRIBUTES[v.kind]
    head: dict[str, str | float] = {"name": v.name, "valueReference": v.reference, "causality": causality}
    start = repr(v.start) if v.kind in KINDS_WITH_START else ""
    derivative = v.state if v.kind == "rate" else ""
    return xml_element(
        "Float64", **head, variability=variability, initial=initial, start=start, unit=v.unit, nominal=v.nominal or "",
        derivative=derivative,
    )  # fmt: skip
