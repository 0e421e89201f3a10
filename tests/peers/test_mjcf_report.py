"""Every field of a compiled MuJoCo model and every attribute of its XML schema is read, or listed in the report.

Each attribute that docs/mjcf.md calls reported appears in the report of a file that has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from mujoco_schema import FATES, fates, schema, table

import bellcrank as bc
from bellcrank.formats import mjcf_report
from bellcrank.formats.mjcf_model import DISABLED_PARTS, SOLVER_ENABLE_FLAGS, SOLVER_FLAGS

mujoco = pytest.importorskip("mujoco")
SCHEMA = sorted(set(schema(mujoco.mj_printSchema(False, True))))
newest = pytest.mark.skipif(mujoco.__version__ < "4", reason="the MuJoCo whose schema is on the page is not installed")
# On the page, but not in the schema of the newest MuJoCo: attributes of older versions.
OLDER = {("option/flag", "passive")}


@newest
def test_every_attribute_has_one_fate() -> None:
    assert len(SCHEMA) > 1000
    assert [pair for pair in SCHEMA if not fates(*pair)] == []
    several = [(path, name) for path, name in SCHEMA if name and "*" not in path and len(fates(path, name)) > 1]
    assert several == []


@newest
def test_page_lists_only_known_fields() -> None:
    known = {name for _, name in SCHEMA}
    named = {
        (element, name) for elements, columns in table() for element in elements for f in FATES for name in columns[f]
    }
    assert {(e, name) for e, name in named if name not in known and name != "*"} - OLDER == set()


def test_every_field_of_the_compiled_model_has_a_fate() -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    names = [name for name, _ in mjcf_report.model_fields(model)]
    assert len(names) > 400
    assert [name for name in names if not mjcf_report.field_treatment(name)] == []
    assert set(mjcf_report.REPORTED_FIELDS) == set(mjcf_report.TOPICS)


def test_every_flag_is_known() -> None:
    for flags, prefix, known in (
        (mujoco.mjtDisableBit, "mjDSBL_", {*DISABLED_PARTS, *SOLVER_FLAGS}),
        (mujoco.mjtEnableBit, "mjENBL_", {*SOLVER_ENABLE_FLAGS, "SLEEP"}),
    ):
        names = {name.removeprefix(prefix) for name in flags.__members__ if name.startswith(prefix)}
        assert names <= known


class NewerOptions:
    buoyancy = 0.5


class Newer:
    """A compiled model of a MuJoCo version with one more field."""

    opt = NewerOptions()
    jnt_magnetism = np.array([0.0, 3.0])
    jnt_type = np.array([3, 3])
    dof_silence = np.zeros(2)


def test_fields_of_a_newer_mujoco_warn() -> None:
    lines = list(mjcf_report.unknown_fields(Newer(), "9.0"))
    assert [line.element for line in lines] == ["MuJoCo's jnt_magnetism", "MuJoCo's opt.buoyancy"]
    assert {line.level for line in lines} == {"warning"}


@dataclass(frozen=True)
class Case:
    """Parts of a model with an attribute, and words of its line in the report."""

    says: str
    option: str = ""
    flag: str = ""
    body: str = ""
    joint: str = ""
    geom: str = ""
    inside: str = ""
    after: str = ""  # the bodies
    top: str = ""
    level: str = "warning"

    @property
    def text(self) -> str:
        return f"""<mujoco><option {self.option}><flag {self.flag}/></option>{self.top}<worldbody>
          <geom name="floor" type="plane" size="1 1 1"/><site name="far" pos="0 0 3"/><body name="m" pos="0 0 3"
          mocap="true"/><body name="b" pos="0 0 1" {self.body}><joint name="j" axis="0 1 0" {self.joint}/>
          <geom name="g" size=".1" pos=".1 0 0" mass="1" {self.geom}/><site name="near"/>{self.inside}</body>
          <body name="c" pos="1 0 1"><joint name="k" axis="0 1 0"/><geom name="h" size=".1" mass="1"/></body>
          {self.after}</worldbody></mujoco>"""


CONTACTS = Case("contacts of 3 pairs of bodies are not used")
RANGE = "Margin and softness are not used"
LOOP = '<equality><joint joint1="j" joint2="k" {}/></equality>'
ACTUATOR = "not used: its forces are yours to give"
NOTE, OK = {"level": "note"}, {"level": "ok"}


def actuated(text: str, says: str = ACTUATOR, level: str = "note") -> Case:
    return Case(says, top=f"<actuator>{text}</actuator>", level=level)


def flagged(name: str, value: str) -> Case:
    return Case("not used: of MuJoCo's own solver", flag=f'{name}="{value}"', level="ok")


SOFT = Case("solref and solimp, which make them soft, are not used", top=LOOP.format(""), **NOTE)
FRICTION = Case("MuJoCo's is a soft constraint (solreffriction, solimpfriction)", joint='frictionloss="1"', **NOTE)
PULLED = '<tendon><fixed name="t" {}><joint joint="j" coef="1"/></fixed></tendon>'
CONTACT_NUMBERS = (
    *("contype", "conaffinity", "condim", "priority", "friction", "solmix", "solref", "solimp"),
    *("margin", "gap", "surfacevel", "adhesion", "hfield"),
)
# (element, attribute) -> a model that has it. "" is any attribute of an element that is always reported.
CASES = {
    ("option", "density"): Case("density 2, viscosity 0", option='density="2"'),
    ("option", "viscosity"): Case("density 0, viscosity 2", option='viscosity="2"'),
    ("option", "wind"): Case("wind [1.0, 0.0, 0.0]", option='wind="1 0 0" density="2"'),
    ("option", "actuatorgroupdisable"): Case(
        "not used: it is disabled",
        option='actuatorgroupdisable="2"',
        top='<actuator><motor joint="j" group="2"/></actuator>',
        **NOTE,
    ),
    **dict.fromkeys([("option", f"o_{x}") for x in ("margin", "solref", "solimp", "friction")], CONTACTS),
    ("option", "magnetic"): Case(
        "1 sensors", option='magnetic="1 0 0"', top='<sensor><magnetometer site="near"/></sensor>', **OK
    ),
    ("option", "sleep_tolerance"): Case("bodies at rest are not taken out", flag='sleep="enable"', **NOTE),
    ("option/flag", "sleep"): Case("bodies at rest are not taken out", flag='sleep="enable"', **NOTE),
    **{
        ("option/flag", x): flagged(x, "enable")
        for x in ("override", "energy", "fwdinv", "invdiscrete", "diagexact", "speculative")
    },
    ("option/flag", "ipc"): Case(
        "not used: of MuJoCo's own solver", option='integrator="discrete"', flag='ipc="enable"', **OK
    ),
    **{
        ("option/flag", x): flagged(x, "disable")
        for x in ("multiccd", "island", "clampctrl", "warmstart", "filterparent", "refsafe", "sensor", "midphase")
    },
    **{("option/flag", x): flagged(x, "disable") for x in ("eulerdamp", "autoreset", "nativeccd")},
    ("body", "gravcomp"): Case("gravcomp 0.5: not used", body='gravcomp="0.5"'),
    ("body", "mocap"): Case("stays where the file has it", **NOTE),
    ("body", "sleep"): Case("bodies at rest are not taken out", body='sleep="never"', flag='sleep="enable"', **NOTE),
    ("body", "user"): Case("user data of body", body='user="1 2"', top='<size nuser_body="2"/>', **OK),
    **{
        ("body/joint", x): Case(RANGE, joint=f'range="-1 1" {x}="{value}"')
        for x, value in (("margin", "0.1"), ("solreflimit", "0.1 1"), ("solimplimit", "0.5 0.6 0.1 0.5 2"))
    },
    **{("body/joint", x): FRICTION for x in ("solreffriction", "solimpfriction")},
    ("body/joint", "springyield"): Case("plastic yield is not used", joint='stiffness="1" springyield="1"'),
    ("body/joint", "actuatorgravcomp"): Case(
        "acts on no joint, because of actuatorgravcomp", joint='actuatorgravcomp="true"', body='gravcomp="0.5"', **NOTE
    ),
    ("body/joint", "user"): Case("user data of jnt", joint='user="1 2"', top='<size nuser_jnt="2"/>', **OK),
    **dict.fromkeys([("body/geom", x) for x in CONTACT_NUMBERS], CONTACTS),
    ("body/geom", "fluidshape"): Case("geoms with a fluid shape", option='density="1"', geom='fluidshape="ellipsoid"'),
    ("body/geom", "fluidcoef"): Case("geoms with a fluid shape", option='density="1"', geom='fluidshape="ellipsoid"'),
    ("body/geom", "user"): Case("user data of geom", geom='user="1 2"', top='<size nuser_geom="2"/>', **OK),
    ("body/site", "user"): Case(
        "user data of site", inside='<site name="s" user="1 2"/>', top='<size nuser_site="2"/>', **OK
    ),
    **dict.fromkeys([(f"equality/{e}", x) for e in ("connect", "weld", "joint") for x in ("solref", "solimp")], SOFT),
    # Elements that are always reported.
    ("asset/hfield", ""): Case(
        "contacts of",
        top='<asset><hfield name="f" nrow="2" ncol="2" size="1 1 1 1"/></asset>',
        inside='<geom type="hfield" hfield="f"/>',
    ),
    ("asset/skin", ""): Case(
        "they do not change the motion",
        top='<asset><skin name="s" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"><bone body="b" bindpos="0 0 0" '
        'bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></asset>',
        **OK,
    ),
    ("body/camera", ""): Case("they do not change the motion", inside='<camera name="x"/>', **OK),
    ("body/light", ""): Case("they do not change the motion", inside='<light name="x"/>', **OK),
    ("body/flexcomp", ""): Case(
        "what bends between their bodies is missing",
        after='<flexcomp type="grid" count="3 1 1" dim="1" spacing=".1 .1 .1" radius=".01" name="f" mass="1"/>',
    ),
    ("contact/pair", ""): Case("and 1 explicit pairs", top='<contact><pair geom1="g" geom2="h"/></contact>'),
    ("contact/exclude", ""): Case("1 excluded", top='<contact><exclude body1="b" body2="c"/></contact>'),
    ("tendon/fixed", ""): Case("stiffness not used", top=PULLED.format('stiffness="1"')),
    ("tendon/spatial", ""): Case(
        "damping not used",
        top='<tendon><spatial name="t" damping="1"><site site="far"/><site site="near"/></spatial></tendon>',
    ),
    ("equality/tendon", ""): Case(
        "only connect, weld and joint are", top=PULLED.format("") + '<equality><tendon tendon1="t"/></equality>'
    ),
    ("actuator/general", ""): actuated('<general joint="j"/>'),
    ("actuator/motor", ""): actuated('<motor joint="j"/>'),
    ("actuator/position", ""): actuated('<position joint="j"/>', "it acts without a control", "warning"),
    ("actuator/velocity", ""): actuated('<velocity joint="j"/>', "it acts without a control", "warning"),
    ("actuator/cylinder", ""): actuated('<cylinder joint="j"/>', level="warning"),
    ("actuator/muscle", ""): actuated(
        '<muscle joint="j" lengthrange="0.1 1"/>', "it acts without a control", "warning"
    ),
    ("actuator/adhesion", ""): actuated('<adhesion body="b" ctrlrange="0 1"/>'),
    ("sensor/clock", ""): Case("1 sensors", top="<sensor><clock/></sensor>", **OK),
    ("custom/numeric", ""): Case("1 custom fields", top='<custom><numeric name="x" data="1"/></custom>', **OK),
    ("custom/text", ""): Case("1 custom fields", top='<custom><text name="x" data="a"/></custom>', **OK),
    ("keyframe/key", ""): Case("1 keyframes", top='<keyframe><key name="x"/></keyframe>', **NOTE),
    # Several numbers where older versions had one.
    ("body/joint", "stiffness"): Case("stiffness is not linear", joint='stiffness="1 2"'),
    ("body/joint", "damping"): Case("damping is not linear", joint='damping="1 2"'),
    ("body/joint", "range"): Case("range of a ball joint", inside='<body><joint type="ball" range="0 1"/>'
                                  '<geom size=".1"/></body>'),
    ("body/joint", "frictionloss"): FRICTION,
}  # fmt: skip


HERE = [pair for pair in CASES if pair in SCHEMA]  # an older MuJoCo has fewer


@newest
@pytest.mark.parametrize(("element", "attribute"), HERE, ids=["/".join(pair) for pair in HERE])
def test_unsupported_attribute_is_reported(element: str, attribute: str) -> None:
    case = CASES[element, attribute]
    lines = bc.read(case.text).report.lines
    told = [line for line in lines if case.says in f"{line.element} {line.outcome}"]
    assert [line.level for line in told] == [case.level]


def test_every_attribute_that_is_reported_alone_has_a_case() -> None:
    alone = {
        (path, name)
        for path, name in SCHEMA
        if name
        and "*" not in path
        and any(name in columns["reported"] for elements, columns in table() if path in elements)
    }
    assert len(alone) > 50
    assert alone - set(CASES) == set()


def test_complete_model_has_an_empty_report() -> None:
    text = """<mujoco><worldbody><body name="a"><joint name="j" damping="1" armature="2" stiffness="3"/>
      <geom size=".1" mass="1"/></body></worldbody></mujoco>"""
    assert {line.level for line in bc.read(text).report.lines} == {"ok"}
