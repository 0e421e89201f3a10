"""Writer of an FMU's modelDescription.xml, FMI 2.0 and 3.0: its variables with names, units and dependencies.

A unit is parsed into FMI's form: powers of eight base units, a factor and an offset.

    "N m"  "rad/s^2"  "kg/m3"  "N m s / (rad A)"  "mm"  "psi"  "in^3/rad"

Adjacent units are multiplied. A slash divides by everything that follows, up to the end of the parentheses. An exponent
follows its unit, with or without `^` or `**`. It must be an integer, because the FMI standard has no other exponents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bellcrank.emit.c.exported_program import ExportedProgram, Member
from bellcrank.emit.c.routine import unique_name
from bellcrank.graph import Graph
from bellcrank.graph.inline import inline
from bellcrank.nodes.node import Node
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
# By FMI version: what the FMU can do, and the name of its token.
CAPABILITIES = {
    2: (
        "canNotUseMemoryManagementFunctions", "canGetAndSetFMUstate", "canSerializeFMUstate",
        "providesDirectionalDerivative",
    ),
    3: (
        "canGetAndSetFMUState", "canSerializeFMUState", "providesDirectionalDerivatives", "providesAdjointDerivatives",
    ),
}  # fmt: skip
TOKEN_ATTRIBUTES = {2: "guid", 3: "instantiationToken"}
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


def _xml_document(word: str, *inside: str, **attributes: str | float) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml_element(word, *inside, **attributes)}\n'


def model_description(about: FmuFacts, variables: FmiVariables, version: int) -> str:
    """Return the modelDescription.xml of the FMU `about` with these `variables`, for FMI `version` 2 or 3."""
    v2 = version == 2
    capabilities = {"modelIdentifier": about.identifier, **dict.fromkeys(CAPABILITIES[version], "true")}
    files = [_source_files("SourceFiles", "File", about)] if v2 else []
    title = {"fmiVersion": f"{version}.0", "modelName": about.title, TOKEN_ATTRIBUTES[version]: about.token}
    tool = {"generationTool": f"bellcrank {__version__}", "variableNamingConvention": "flat"}
    indicators = {"numberOfEventIndicators": len(variables.of_kinds("indicator"))} if v2 else {}
    return _xml_document(
        "fmiModelDescription",
        xml_element("ModelExchange", *files, **capabilities),
        xml_element("CoSimulation", *files, **capabilities, **about.steps),
        unit_definitions(variables),
        default_experiment(about),
        xml_element("ModelVariables", *(_variable(v, version) for v in variables.all)),
        xml_element("ModelStructure", *(_structure_2(variables) if v2 else _structure_3(variables))),
        **title, **tool, **indicators,
    )  # fmt: skip


def build_description(about: FmuFacts) -> str:
    """Return the buildDescription.xml of the FMU `about`, for FMI 3."""
    return _xml_document(
        "fmiBuildDescription",
        xml_element(
            "BuildConfiguration",
            _source_files("SourceFileSet", "SourceFile", about, language="C99"),
            xml_element("Library", name="m", external="true"),
            modelIdentifier=about.identifier,
        ),
        fmiVersion="3.0",
    )


def unit_definitions(variables: FmiVariables) -> str:
    """Return the UnitDefinitions element for all units of `variables`."""
    elements = []
    for name in sorted({v.unit for v in variables.all if v.unit}):
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


def _source_files(word: str, item: str, about: FmuFacts, **attributes: str) -> str:
    files = [xml_element(item, name=name) for name in about.sources if name.endswith(".c")]
    return xml_element(word, *files, **attributes)


def _variable(v: FmiVariable, version: int) -> str:
    causality, variability, initial = VARIABLE_ATTRIBUTES[v.kind]
    start = repr(v.start) if v.kind in KINDS_WITH_START else ""
    derivative = v.state + (version == 2) if v.kind == "rate" else ""
    head: dict[str, str | float] = {"name": v.name, "valueReference": v.reference, "causality": causality}
    head |= {"variability": variability, "initial": initial}
    nominal = v.nominal or ""
    if version == 2:
        real = xml_element("Real", unit=v.unit, nominal=nominal, start=start, derivative=derivative)
        return xml_element("ScalarVariable", real, **head)
    return xml_element("Float64", **head, start=start, unit=v.unit, nominal=nominal, derivative=derivative)


def _unknown(word: str, reference: str, v: FmiVariable, first: int) -> str:
    """Return an unknown with its dependencies; an empty list means that there are none, and is not left out."""
    dependencies = " ".join(str(k + first) for k in v.depends)
    return f'<{word} {reference}="{v.reference + first}" dependencies="{dependencies}"/>'


def _structure_2(variables: FmiVariables) -> list[str]:
    """Return the structure for FMI 2.0, where a variable's index is its value reference plus one."""
    lists = {"Outputs": ("state", "output"), "Derivatives": ("rate",)}
    unknowns = [xml_element("Unknown", index=v.reference + 1) for v in variables.of_kinds("rate", "output")]
    return [
        *(
            xml_element(word, *(_unknown("Unknown", "index", v, 1) for v in variables.of_kinds(*kinds)))
            for word, kinds in lists.items()
        ),
        xml_element("InitialUnknowns", *unknowns),
    ]


def _structure_3(variables: FmiVariables) -> list[str]:
    """Return the structure for FMI 3.0, where a variable is referred to by its value reference."""

    def unknowns(word: str, *kinds: str) -> list[str]:
        return [_unknown(word, "valueReference", v, 0) for v in variables.of_kinds(*kinds)]

    return [
        *unknowns("Output", "state", "output"),
        *unknowns("ContinuousStateDerivative", "rate"),
        *(xml_element("InitialUnknown", valueReference=v.reference) for v in variables.of_kinds("rate", "output")),
        *unknowns("EventIndicator", "indicator"),
    ]


@dataclass(frozen=True)
class FmiVariable:
    """One scalar variable."""

    kind: str  # time, state, rate, input, parameter, output, indicator
    name: str
    unit: str
    start: float
    reference: int
    depends: tuple[int, ...] = ()  # references of states and inputs
    state: int = -1  # value reference of its state, for a rate
    nominal: float = 0.0  # nominal value, for a state


@dataclass(frozen=True, eq=False)
class FmiVariables:
    """All variables of a machine."""

    stepper: ExportedProgram

    @cached_property
    def all(self) -> list[FmiVariable]:
        """All variables in the order of their references.

        The order is: time, states, rates, inputs, parameters, outputs, event indicators (sources/instance.h).
        """
        s = self.stepper
        states = s.state[1 : 1 + s.size]
        rates = [Member(f"der({m.name})", f"{m.unit or 1}/s") for m in states]
        groups = {
            "time": [Member("time", "s")], "state": states, "rate": rates, "input": s.inputs,
            "parameter": s.parameters, "output": s.outputs,
            "indicator": [Member(f"event({e.name})", "") for e in s.program.ports.events],
        }  # fmt: skip
        depends = {"rate": self._dependencies(s.slope, "dy"), "output": self._dependencies(s.observe, "out")}
        if groups["indicator"]:
            depends["indicator"] = self._dependencies(s.indicate, "g")
        used_names, variables = dict[str, int](), list[FmiVariable]()
        for kind, members in groups.items():
            for k, m in enumerate(members):
                reference, name = len(variables), unique_name(m.name, used_names)
                dependencies = depends[kind][k] if kind in depends else (reference,) if kind == "state" else ()
                state = k + 1 if kind == "rate" else -1
                nominal = float(s.program.ports.nominals[k]) if kind == "state" else 0.0
                variables.append(FmiVariable(kind, name, m.unit, m.value, reference, dependencies, state, nominal))
        return variables

    def of_kinds(self, *kinds: str) -> list[FmiVariable]:
        """Return the variables of these `kinds`."""
        return [v for v in self.all if v.kind in kinds]

    def _dependencies(self, graph: Graph, output: str) -> list[tuple[int, ...]]:
        """Return, for each element of an output, the references of all states and inputs that it depends on."""
        first = {"y": 1, "u": 1 + 2 * self.stepper.size}
        flat, reference_bits = inline(graph), dict[int, int]()
        for n in flat.nodes:  # a set of references is the bits of an integer
            if n.op == "input":
                name, k = n.args
                reference_bits[n.serial] = 1 << (first[name] + k) if name in first else 0
                continue
            bits = 0
            for a in n.operands:
                bits |= reference_bits[a.serial]
            reference_bits[n.serial] = bits
        return [
            bit_positions(reference_bits[x.serial]) if isinstance(x, Node) else () for x in flat.outputs[output].flat
        ]


def bit_positions(bits: int) -> tuple[int, ...]:
    """Return the positions of the ones in `bits`."""
    return tuple(k for k in range(bits.bit_length()) if bits >> k & 1)


# -- units

# Powers of kg, m, s, A, K, mol, cd and rad, in the standard's order.
BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
FORCE, PRESSURE, ENERGY = {"kg": 1, "m": 1, "s": -2}, {"kg": 1, "m": -1, "s": -2}, {"kg": 1, "m": 2, "s": -2}
POUND, INCH, GRAVITY = 0.45359237, 0.0254, 9.80665  # kg, m, m/s^2: exact by definition


@dataclass(frozen=True)
class FmiUnit:
    """A unit; a number x of it is factor * x + offset in base units."""

    factor: float = 1.0
    powers: dict[str, int] = field(default_factory=dict)
    offset: float = 0.0


# Units that take prefixes.
SI_UNITS = {
    **{name: FmiUnit(1.0, {name: 1}) for name in BASE_UNITS if name != "kg"},
    "g": FmiUnit(1e-3, {"kg": 1}), "N": FmiUnit(1.0, FORCE), "Pa": FmiUnit(1.0, PRESSURE), "J": FmiUnit(1.0, ENERGY),
    "W": FmiUnit(1.0, {**ENERGY, "s": -3}), "V": FmiUnit(1.0, {**ENERGY, "s": -3, "A": -1}),
    "Hz": FmiUnit(1.0, {"s": -1}), "C": FmiUnit(1.0, {"A": 1, "s": 1}),
    "ohm": FmiUnit(1.0, {**ENERGY, "s": -3, "A": -2}),
    "H": FmiUnit(1.0, {**ENERGY, "A": -2}), "F": FmiUnit(1.0, {"kg": -1, "m": -2, "s": 4, "A": 2}),
    "T": FmiUnit(1.0, {"kg": 1, "s": -2, "A": -1}), "Wb": FmiUnit(1.0, {**ENERGY, "A": -1}),
    "bar": FmiUnit(1e5, PRESSURE), "L": FmiUnit(1e-3, {"m": 3}), "l": FmiUnit(1e-3, {"m": 3}),
}  # fmt: skip
OTHER_UNITS = {
    "1": FmiUnit(), "%": FmiUnit(0.01),
    "deg": FmiUnit(math.pi / 180.0, {"rad": 1}), "rev": FmiUnit(2.0 * math.pi, {"rad": 1}),
    "rpm": FmiUnit(math.pi / 30.0, {"rad": 1, "s": -1}), "min": FmiUnit(60.0, {"s": 1}), "h": FmiUnit(3600.0, {"s": 1}),
    "t": FmiUnit(1e3, {"kg": 1}), "degC": FmiUnit(1.0, {"K": 1}, 273.15), "lb": FmiUnit(POUND, {"kg": 1}),
    "lbf": FmiUnit(POUND * GRAVITY, FORCE), "in": FmiUnit(INCH, {"m": 1}), "ft": FmiUnit(12 * INCH, {"m": 1}),
    "psi": FmiUnit(POUND * GRAVITY / INCH**2, PRESSURE), "gal": FmiUnit(231 * INCH**3, {"m": 3}),
}  # fmt: skip
PREFIXES = {"G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "d": 0.1, "c": 0.01, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
UNIT_TOKEN = re.compile(
    r"\s*(?:(?P<word>[^\W\d_]+|%|1(?![\d.]))(?:\s*(?:\^|\*\*)?\s*(?P<power>-?\d+)(?![\d.]))?|(?P<sign>[/()*.·]))"
)


def parse_unit(text: str) -> FmiUnit | None:
    """Return the unit that `text` means, or None if it is not known."""
    tokens, position, text = list[tuple[str, int]](), 0, text.translate(SUPERSCRIPTS).strip()
    while position < len(text):
        match = UNIT_TOKEN.match(text, position)
        if match is None:
            return None
        tokens.append((match["sign"] or match["word"], int(match["power"] or 1)))
        position = match.end()
    if len(tokens) == 1 and tokens[0][1] == 1:
        return _word_unit(tokens[0][0])  # only a unit without a product has an offset
    remaining = iter(tokens)
    total = _product(remaining, 0) if tokens else None
    return total if next(remaining, None) is None else None


def _product(tokens: Iterator[tuple[str, int]], depth: int) -> FmiUnit | None:
    """Parse a product up to the closing bracket or the end."""
    factor, powers, side, any_word = 1.0, dict[str, int](), 1, False
    for word, power in tokens:
        if word in ("*", ".", "·"):
            continue
        if word == "/":
            side = -1
            continue
        if word == ")":
            return FmiUnit(factor, _nonzero_powers(powers)) if depth and any_word else None
        unit = _product(tokens, depth + 1) if word == "(" else _word_unit(word)
        if unit is None:
            return None
        any_word = True
        factor *= unit.factor ** (side * power)
        for base, n in unit.powers.items():
            powers[base] = powers.get(base, 0) + side * power * n
    return FmiUnit(factor, _nonzero_powers(powers)) if not depth and any_word else None


def _nonzero_powers(powers: dict[str, int]) -> dict[str, int]:
    return {base: powers[base] for base in BASE_UNITS if powers.get(base)}


def _word_unit(word: str) -> FmiUnit | None:
    if word in SI_UNITS or word in OTHER_UNITS:
        return SI_UNITS.get(word) or OTHER_UNITS[word]
    unit = SI_UNITS.get(word[1:])
    return FmiUnit(PREFIXES[word[0]] * unit.factor, unit.powers) if unit is not None and word[0] in PREFIXES else None
