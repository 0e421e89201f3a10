"""Collision shapes of robot files: primitives are kept, meshes become the best primitive, missing files are named."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ReadError
from bellcrank.forces import Box, Capsule, Cylinder, Sphere
from bellcrank.formats import collisions as collision_reader
from bellcrank.formats.collisions import bounding_primitive
from bellcrank.formats.visuals import read_visuals
from bellcrank.meshes import read_mesh

MESH = '<mesh filename="{}" scale="{}"/>'
HEAVY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LINK = f'<link name="{{}}">{HEAVY}{{}}</link>'
SHAPE = '<collision><origin xyz="{}" rpy="{}"/><geometry>{}</geometry></collision>'


def stl(points: Any) -> bytes:
    """Return an STL file of triangles between any three points."""
    rows = [struct.pack("<12fH", 0, 0, 0, *np.ravel(t), 0) for t in np.reshape(points, (-1, 3, 3))]
    return b"\0" * 80 + struct.pack("<I", len(rows)) + b"".join(rows)


def robot(tmp_path: Path, *shapes: str) -> tuple[Path, bc.Mechanism]:
    arm, foot = (
        LINK.format("arm", "".join(shapes)),
        LINK.format("foot", SHAPE.format("0 0 -1", "0 0 0", '<sphere radius="0.1"/>')),
    )
    hinge = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'
    joints = f'<joint name="j" type="revolute"><parent link="base"/><child link="arm"/>{hinge}</joint>'
    joints += '<joint name="w" type="fixed"><parent link="arm"/><child link="foot"/><origin xyz="0.5 0 0"/></joint>'
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r"><link name="base"/>{arm}{foot}{joints}</robot>')
    return path, bc.read(path)


def test_primitives(tmp_path: Path) -> None:
    given = ['<box size="1 2 3"/>', '<cylinder radius="0.2" length="0.7"/>', '<sphere radius="0.4"/>']
    path, m = robot(tmp_path, *(SHAPE.format("0.1 0.2 0.3", "1.5707963267948966 0 0", g) for g in given))
    found = bc.collisions(path, m)
    assert list(found.shapes.values()) == [Box((1.0, 2.0, 3.0)), Cylinder(0.2, 0.7), Sphere(0.4), Sphere(0.1)]
    X = found.mechanism.pose([0.0], "arm.collision0")
    np.testing.assert_allclose(X[:3, 3], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(X[:3, :3], [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(
        found.mechanism.pose([0.0], "foot.collision0")[:3, 3], [0.5, 0, -1.0]
    )  # welded to the arm
    assert [c.name for c in found.contacts(only=["foot"], friction=0.5)] == ["foot.collision0"]
    assert len(found.contacts()) == 4
    with pytest.raises(ReadError, match="link with a shape"):
        found.contacts(only=["hand"])


def test_meshes_become_primitives(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], float)
    (tmp_path / "cube.stl").write_bytes(stl(np.concatenate([cube, cube[:1]])))
    (tmp_path / "rod.obj").write_text(
        "".join(f"v {np.cos(a)} {np.sin(a)} {z}\n" for a in np.linspace(0, 6.28, 60) for z in (0, 9))
    )
    (tmp_path / "empty.stl").write_bytes(b"solid\nendsolid\n")
    names = ["cube.stl", "package://some_robot/rod.obj", "none.stl", "empty.stl", "odd.blend"]
    (tmp_path / "odd.blend").write_bytes(b"?")
    path, m = robot(tmp_path, *(SHAPE.format("0 0 0", "0 0 0", f'<mesh filename="{n}" scale="2 2 2"/>') for n in names))
    found = bc.collisions(path, m)
    box, rod, _ = found.shapes.values()
    assert isinstance(box, Box)
    assert isinstance(rod, Cylinder)
    np.testing.assert_allclose(box.size, (2.0, 4.0, 6.0))
    np.testing.assert_allclose([rod.radius, rod.length], (2.0, 18.0), rtol=1e-3)
    np.testing.assert_allclose(found.mechanism.pose([0.0], "arm.collision0")[:3, 3], [1.0, 2.0, 3.0])
    said = str(found.report)
    for words in (
        "cube.stl: taken as a box",
        "none.stl is not there",
        "empty.stl: not a mesh that can be read",
        "odd.blend: a mesh of the type .blend; readable are .stl, .obj, .dae, .gltf, .glb",
    ):
        assert words in said
    ball = rng.normal(size=(4000, 3))
    shape, _, _ = bounding_primitive(ball / np.linalg.norm(ball, axis=1, keepdims=True))
    assert isinstance(shape, Sphere)
    long = ball / np.linalg.norm(ball, axis=1, keepdims=True) + np.where(ball[:, :1] > 0, [[3.0, 0, 0]], [[-3.0, 0, 0]])
    shape, turn, _ = bounding_primitive(long)
    assert isinstance(shape, Capsule)
    np.testing.assert_allclose(np.abs(turn[:, 2]), [1, 0, 0])


BOX_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-0.5, 0.5) for z in (-0.25, 0.25)])
BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
BOX_TRIANGLES = [t for a, b, c, d in BOX_FACES for t in ((a, b, c), (a, c, d))]


def words(rows: Any) -> str:
    return " ".join(f"{x:g}" for x in np.ravel(rows))


def dae(
    size: float = 1.0,
    asset: str = "",
    node: str = "",
    array: str = "positions-array",
    faces: str = "",
    accessor: str = "",
    before: str = "",
) -> str:
    """Return COLLADA with a box of 2 by 1 by 0.5 times `size`, in a node with the transformations `node`."""
    faces = faces or f"<triangles>{INPUT}<p>{words(BOX_TRIANGLES)}</p></triangles>"
    return f"""<?xml version="1.0"?>{before}
    <COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
    <asset>{asset}</asset><library_geometries><geometry id="g"><mesh>
    <source id="n"><float_array id="normal-position" count="3">9000 9000 9000</float_array></source>
    <source id="p"><float_array id="{array}" count="24">{words(BOX_CORNERS * size)}</float_array>{accessor}</source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>{faces}</mesh></geometry></library_geometries>
    <library_visual_scenes><visual_scene id="w"><node>{node}<instance_geometry url="#g"/></node></visual_scene>
    </library_visual_scenes><scene><instance_visual_scene url="#w"/></scene></COLLADA>"""


INPUT = '<input semantic="VERTEX" source="#v" offset="0"/>'
STRIPS = "".join(f"<p>{a} {b} {d} {c}</p>" for a, b, c, d in BOX_FACES)
FANS = "".join(f"<p>{a} {b} {c} {d}</p>" for a, b, c, d in BOX_FACES)
HOLES = "".join(f"<ph><p>{a} {b} {c} {d}</p><h>{a} {b} {c}</h></ph>" for a, b, c, d in BOX_FACES)
# All are the same box of 0.2 by 0.1 by 0.05 m.
SAME_BOX = {
    "metres": dae(0.1),
    "millimetres": dae(100, '<unit name="millimeter" meter="0.001"/>'),
    "y up": dae(100, '<unit meter="0.001"/><up_axis>Y_UP</up_axis>'),
    "node": dae(100, node="<scale>0.001 0.001 0.001</scale>"),
    "turned node": dae(0.1, node="<rotate>0 0 1 90</rotate><rotate>0 0 1 -90</rotate>"),
    "array name": dae(0.1, array="a"),
    "strips": dae(0.1, faces=f"<tristrips>{INPUT}{STRIPS}</tristrips>"),
    "fans": dae(0.1, faces=f"<trifans>{INPUT}{FANS}</trifans>"),
    "polygons": dae(0.1, faces=f"<polygons>{INPUT}{FANS}</polygons>"),
    "polygons with holes": dae(0.1, faces=f"<polygons>{INPUT}{HOLES}</polygons>"),
    "accessor": dae(0.1, accessor='<technique_common><accessor source="#a" count="8" stride="3"/></technique_common>'),
}


@pytest.mark.parametrize("name", SAME_BOX)
def test_collada_has_its_unit_and_its_nodes(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.dae").write_text(SAME_BOX[name])
    path, m = robot(tmp_path, SHAPE.format("0 0 0", "0 0 0", MESH.format("x.dae", "1 1 1")))
    found = bc.collisions(path, m)
    box = found.shapes["arm.collision0"]
    assert isinstance(box, Box)
    np.testing.assert_allclose(box.size, (0.2, 0.1, 0.05), rtol=1e-6)
    np.testing.assert_allclose(found.mechanism.pose([0.0], "arm.collision0"), np.eye(4), atol=1e-9)
    assert not found.report.warnings
    mesh = read_mesh(tmp_path / "x.dae")
    a, b, c = (mesh.corners[mesh.triangles[:, k]] for k in range(3))
    assert (a * np.cross(b, c)).sum() / 6 == pytest.approx(0.2 * 0.1 * 0.05)  # triangles face outwards


def test_a_node_moves_the_shape_and_the_scale_of_the_robot_comes_last(tmp_path: Path) -> None:
    node = "<translate>300 0 0</translate><rotate>0 0 1 90</rotate>"
    (tmp_path / "x.dae").write_text(dae(100, '<unit meter="0.001"/>', node))
    path, m = robot(tmp_path, SHAPE.format("0 0 1", "0 0 0", MESH.format("x.dae", "1 2 -4")))
    found = bc.collisions(path, m)
    box = found.shapes["arm.collision0"]
    assert isinstance(box, Box)
    np.testing.assert_allclose(box.size, (0.1, 0.4, 0.2), rtol=1e-6)
    np.testing.assert_allclose(found.mechanism.pose([0.0], "arm.collision0")[:3, 3], [0.3, 0.0, 1.0], atol=1e-9)


def test_accessors_with_a_stride_and_an_offset(tmp_path: Path) -> None:
    rows = np.column_stack([BOX_CORNERS * 0.1, np.full(8, 7.0)])
    accessor = '<technique_common><accessor source="#a" count="8" offset="2" stride="4"/></technique_common>'
    text = dae(accessor=accessor).replace(words(BOX_CORNERS), "5 5 " + words(rows))
    (tmp_path / "x.dae").write_text(text)
    path, m = robot(tmp_path, SHAPE.format("0 0 0", "0 0 0", MESH.format("x.dae", "1 1 1")))
    box = bc.collisions(path, m).shapes["arm.collision0"]
    assert isinstance(box, Box)
    np.testing.assert_allclose(box.size, (0.2, 0.1, 0.05), rtol=1e-6)


def gltf(corners: Any, triangles: Any) -> str:
    data = np.asarray(corners, "<f4").tobytes() + np.asarray(triangles, "<u2").tobytes()
    at, count = 12 * len(corners), 3 * len(triangles)
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "nodes": [{"mesh": 0, "scale": [0.5, 0.5, 0.5]}],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
            "accessors": [
                {"bufferView": 0, "componentType": 5126, "count": len(corners), "type": "VEC3"},
                {"bufferView": 1, "componentType": 5123, "count": count, "type": "SCALAR"},
            ],
            "bufferViews": [{"buffer": 0, "byteOffset": 0}, {"buffer": 0, "byteOffset": at}],
            "buffers": [{"uri": "data:;base64," + base64.b64encode(data).decode()}],
        }
    )


def test_every_format_collides_where_it_is_drawn(tmp_path: Path) -> None:
    """Every format collides where it is drawn: a collision shape has the bounding box of the same file as a visual."""
    obj = [
        *(f"v {words(c)}" for c in BOX_CORNERS),
        "v 50 50 50",
        *(f"f {a + 1} {b + 1} {c + 1}" for a, b, c in BOX_TRIANGLES),
    ]
    (tmp_path / "x.stl").write_bytes(stl(BOX_CORNERS[BOX_TRIANGLES]))
    (tmp_path / "x.obj").write_text("\n".join(obj))
    (tmp_path / "x.dae").write_text(dae(50, '<unit meter="0.02"/><up_axis>Y_UP</up_axis>'))
    (tmp_path / "x.gltf").write_text(gltf(2 * BOX_CORNERS, BOX_TRIANGLES))
    for name in ("x.stl", "x.obj", "x.dae", "x.gltf"):
        origin = '<origin xyz="0.1 0.2 0.3"/><geometry>' + MESH.format(name, "1 2 3") + "</geometry>"
        path, m = robot(tmp_path, f"<collision>{origin}</collision><visual>{origin}</visual>")
        found = bc.collisions(path, m)
        (visual,), _ = read_visuals(m)
        box, X = found.shapes["arm.collision0"], found.mechanism.pose([0.0], "arm.collision0")
        assert isinstance(box, Box)
        used = visual.mesh.corners[np.unique(visual.mesh.triangles)]
        np.testing.assert_allclose(box.size, (2, 2, 1.5), rtol=1e-6)
        np.testing.assert_allclose(used.max(axis=0) - used.min(axis=0), box.size, rtol=1e-6)
        np.testing.assert_allclose((used.max(axis=0) + used.min(axis=0)) / 2, X[:3, 3], atol=1e-6)


ENTITIES = '<!DOCTYPE x [<!ENTITY a "1 2 3"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "why"),
    {
        "entities": (dae(before=ENTITIES), "EntitiesForbidden"),
        "unit 0": (dae(asset='<unit meter="0"/>'), "unit of 0 m"),
        "unit nan": (dae(asset='<unit meter="nan"/>'), "unit of nan m"),
        "unit -1": (dae(asset='<unit meter="-1"/>'), "unit of -1 m"),
        "infinite": (dae().replace("-1 ", "1e999 ", 1), "not finite"),
        "no faces": (dae(faces="<lines/>"), "no triangles"),
        "stride": (dae(accessor='<technique_common><accessor stride="7"/></technique_common>'), "cannot reshape"),
    }.values(),
)
def test_unusable_meshes_are_left_out_with_the_reason(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "x.dae").write_text(text)
    path, m = robot(tmp_path, SHAPE.format("0 0 0", "0 0 0", MESH.format("x.dae", "1 1 1")))
    found = bc.collisions(path, m)
    assert list(found.shapes) == ["foot.collision0"]
    (line,) = found.report.warnings
    assert why in line.outcome
    assert "x.dae" in line.outcome
    assert line.outcome.endswith("Left out.")


def test_a_scale_that_makes_a_mesh_too_large_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x.dae").write_text(dae(1e5))
    path, m = robot(tmp_path, SHAPE.format("0 0 0", "0 0 0", MESH.format("x.dae", "1e40 1 1")))
    (line,) = bc.collisions(path, m).report.warnings
    assert "x.dae" in line.outcome
    assert "scale" in line.outcome


def test_a_mesh_of_many_links_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, read = [], collision_reader.read_mesh_corners

    def counted(file: Path) -> Any:
        files.append(file)
        return read(file)

    monkeypatch.setattr(collision_reader, "read_mesh_corners", counted)
    (tmp_path / "x.dae").write_text(dae())
    path, m = robot(tmp_path, *(SHAPE.format("0 0 0", "0 0 0", MESH.format("x.dae", f"{k} 1 1")) for k in (1, 2, 3)))
    shapes = bc.collisions(path, m).shapes
    assert len(files) == 1
    widths = [s.size[0] for s in shapes.values() if isinstance(s, Box)]
    np.testing.assert_allclose(widths, [2.0, 4.0, 6.0])
