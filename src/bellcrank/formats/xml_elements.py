"""XML elements that know their position in the file and record which parts of them were read.

Parts that no reader asks for would be dropped silently; urdf.py turns them into lines of the report. Parsing is
defusedxml's: no DTD, no entities, nothing external. Namespaces are ignored: real robot files use undeclared ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from xml.sax import SAXException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import InputSource

import numpy as np

from bellcrank.errors import ReadError, unknown
from bellcrank.model.part_checks import MAX_NUMBER
from bellcrank.model.parts import ORIGIN, Array, ReportLine, Triple
from bellcrank.model.pose import AngleReader

MAX_DEPTH = 100  # no real robot file nests like that; a hostile one might


@dataclass(eq=False)
class XmlElement:
    """One XML element."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    parent: XmlElement | None = None
    children: list[XmlElement] = field(default_factory=list)
    text: str = ""
    was_read: bool = False  # a reader has requested this element
    read_attributes: set[str] = field(default_factory=set)  # attributes that a reader has requested

    @property
    def name(self) -> str:
        """'joint "elbow"', or '<origin> of joint "elbow"': the nearest element with a name."""
        ancestor: XmlElement | None = self
        while ancestor is not None and "name" not in ancestor.attributes:
            ancestor = ancestor.parent
        if ancestor is None or (ancestor.parent is None and ancestor is not self):  # the robot's name tells nothing
            return f"<{self.tag}>"
        named = f'{ancestor.tag} "{ancestor.attributes["name"]}"'
        return named if ancestor is self else f"<{self.tag}> of {named}"

    @property
    def where(self) -> str:
        """File, line and name, for error messages."""
        return f"{self.source}, line {self.line}: {self.name}"

    def error(self, text: str) -> ReadError:
        """Return an error about this element, whose message ends with `text`."""
        return ReadError(f"{self.where}: {text}")

    def known(self, attribute: str, what: str, table: Mapping[str, str]) -> str:
        """Return the entry of `table` for the value of `attribute`, a type such as `what`, e.g. "joint type"."""
        value = self.require_attribute(attribute, "a joint type")
        if value not in table:
            raise self.error(unknown(what, value, table))
        return table[value]

    def get(self, attribute: str) -> str | None:
        """Return the value of `attribute`, or None."""
        self.read_attributes.add(attribute)
        return self.attributes.get(attribute)

    def require_attribute(self, attribute: str, meaning: str) -> str:
        """Return the value of the required `attribute`; `meaning` describes it in the error if it is missing."""
        value = self.get(attribute)
        if value is None or not value.strip():
            got = "is missing" if value is None else "is empty"
            raise self.error(f'attribute "{attribute}" {got}; expected {meaning}. Add it to the file.')
        return value.strip()

    def number(self, attribute: str, default: float | None = None, infinite: bool = False) -> float:
        """Return the value of `attribute` as one number.

        Parameters
        ----------
        attribute
            Name of the attribute.
        default
            Value if it is missing; required if None.
        infinite
            Allow infinite values.
        """
        if default is not None and self.get(attribute) is None:
            return default
        return self._float(attribute, self.require_attribute(attribute, "a number"), infinite)

    def vector(self, attribute: str, default: tuple[float, float, float]) -> tuple[float, float, float]:
        """Return the value of `attribute` as three numbers, or `default` if it is missing."""
        value = self.get(attribute)
        if value is None:
            return default
        parts = value.split()
        if len(parts) != 3:
            raise self.error(f'{attribute}="{_short(value)}"; expected three numbers with blanks between them.')
        x, y, z = (self._float(attribute, part) for part in parts)
        return x, y, z

    def _float(self, attribute: str, text: str, infinite: bool = False) -> float:
        try:
            value = float(text.replace("_", "?"))  # Python reads 1_000; XML files do not
        except ValueError:
            hint = " This is a xacro expression: run xacro on the file first." if "${" in text else " Correct the file."
            raise self.error(f'{attribute}="{_short(text)}" is not a number.{hint}') from None
        if not abs(value) < MAX_NUMBER and not (infinite and math.isinf(value)):  # also refuses NaN
            raise self.error(
                f'{attribute}="{_short(text)}"; expected a finite number below {MAX_NUMBER:g}. Correct it.'
            )
        return value

    def pose(self, angles: AngleReader, lines: list[ReportLine]) -> tuple[Array, Triple]:
        """Return rotation and point by rpy and xyz, read by `angles`, whose notes are added to the report's `lines`."""
        point, rpy = self.vector("xyz", ORIGIN), self.vector("rpy", ORIGIN)
        R = angles.rpy(*rpy)
        lines += [ReportLine(self.name, f"rpy: {note}", "note") for note in angles.pop_notes()]
        return R, point

    def origin(self, angles: AngleReader, lines: list[ReportLine]) -> tuple[Array, Triple]:
        """Return the pose in <origin>, or identity and zero without it; `angles` and `lines` as of `pose`."""
        given = self.child("origin")
        return (np.eye(3), ORIGIN) if given is None else given.pose(angles, lines)

    def children_named(self, tag: str) -> Iterator[XmlElement]:
        """Yield the children named `tag` and mark them as read."""
        for child in self.children:
            if child.tag == tag:
                child.was_read = True
                yield child

    def distinct_children(self, *tags: str) -> Iterator[XmlElement]:
        """Yield the children named as one of `tags`; raise an error if two of them have one name."""
        lines: dict[str, int] = {}
        for e in [child for tag in tags for child in self.children_named(tag)]:
            name = e.attributes.get("name", "").strip()
            if name and name in lines:
                raise e.error(f"the name is taken by line {lines[name]}; names must differ. Rename one of them.")
            lines[name] = e.line
            yield e

    def child(self, tag: str) -> XmlElement | None:
        """Return the only child named `tag`, or None; raise an error if there are several."""
        matches = list(self.children_named(tag))
        if len(matches) > 1:
            raise self.error(f"has {len(matches)} <{tag}> (again in line {matches[1].line}); expected one. Remove it.")
        return matches[0] if matches else None

    def require_child(self, tag: str) -> XmlElement:
        """Return the only child named `tag`; raise an error if there is none."""
        element = self.child(tag)
        if element is None:
            raise self.error(f"has no <{tag}>; expected one. Add it to the file.")
        return element


class _TreeBuilder(ContentHandler):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.root: XmlElement | None = None
        self.open: list[XmlElement] = []
        self.locator: Any = None

    def setDocumentLocator(self, locator: Any) -> None:
        self.locator = locator

    def startElement(self, tag: str, attributes: Any) -> None:
        parent = self.open[-1] if self.open else None
        element = XmlElement(tag, dict(attributes.items()), self.source, self.locator.getLineNumber(), parent)
        if len(self.open) >= MAX_DEPTH:
            raise element.error(f"nested {MAX_DEPTH} elements deep; this is not a robot description.")
        if parent is None:
            self.root = element
        else:
            parent.children.append(element)
        self.open.append(element)

    def endElement(self, tag: str) -> None:
        self.open.pop()

    def characters(self, content: str) -> None:
        if self.open and len(self.open[-1].text) < 100:  # enough for the report
            self.open[-1].text = f"{self.open[-1].text} {content.strip()}".strip()


def parse_xml(data: bytes, source: str, encoding: str | None = None) -> XmlElement:
    """Return the root element of the XML `data`; `source` is for errors, `encoding` overrides the declared one."""
    from defusedxml import DefusedXmlException
    from defusedxml.sax import make_parser

    parser = make_parser()
    parser.forbid_dtd = True
    handler = _TreeBuilder(source)
    parser.setContentHandler(handler)
    stream = InputSource(source)
    stream.setByteStream(BytesIO(data))
    if encoding is not None:
        stream.setEncoding(encoding)
    try:
        parser.parse(stream)
    except ReadError:
        raise
    except DefusedXmlException as error:
        raise ReadError(
            f"{source}: refused: the file declares a DTD or entities ({type(error).__name__}), which can be used to "
            "attack a reader. A robot file needs neither; remove the <!DOCTYPE ...> part."
        ) from None
    except SAXException as error:
        line, message = getattr(error, "getLineNumber", lambda: "?")(), error.getMessage()
        raise ReadError(f"{source}, line {line}: not well-formed XML: {message}. Correct the file there.") from None
    except (LookupError, ValueError) as error:  # an unknown encoding, and its consequences
        raise ReadError(f"{source}: cannot be decoded: {error}. Save the file as UTF-8.") from None
    if handler.root is None:
        raise ReadError(f"{source}: holds no XML element.")
    return handler.root


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
