"""Meshes from files: the same tetrahedron in every format, robots drawn with them, and messages for faulty files."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import mutation
from bellcrank.errors import ReadError
from bellcrank.formats.visuals import read_visuals
from bellcrank.meshes import Mesh, read_mesh, simplify
from bellcrank.meshes import mesh_reader as limits
from bellcrank.view.scene import scene

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
VOLUME = 1.0


def volume(m: Mesh) -> float:
    """Return the volume by the divergence theorem: positive where triangles face outwards."""
    a, b, c = (m.corners[m.triangles[:, k]] for k in range(3))
    return float((a * np.cross(b, c)).sum() / 6.0)


def stl_bytes() -> bytes:
    rows = [struct.pack("<12fH", 0, 0, 0, *CORNERS[f].ravel(), 0) for f in FACES]
    return bytes(80) + struct.pack("<I", len(rows)) + b"".join(rows)


def stl_text() -> str:
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x:g} {y:g} {z:g}\n" for x, y, z in CORNERS[f])
        + "endloop\nendfacet\n"
        for f in FACES
    )
    return f"solid tetrahedron\n{facets}endsolid\n"


def obj() -> str:
    lines = [*(f"v {x:g} {y:g} {z:g}" for x, y, z in CORNERS), "vn 0 0 1"]
    return "\n".join([*lines, *("f " + " ".join(f"{k + 1}//1" for k in f) for f in FACES)])


def dae() -> str:
    """Return COLLADA in centimetres, under a node that doubles and one that halves."""
    numbers = " ".join(f"{100 * x:g}" for x in CORNERS.ravel())
    faces = " ".join(str(k) for k in FACES.ravel())
    return f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
    <asset><unit meter="0.01"/><up_axis>Y_UP</up_axis></asset>
    <library_effects><effect id="e"><profile_COMMON><technique sid="t"><phong>
    <diffuse><color>1 0.5 0 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>
    <library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
    <library_geometries><geometry id="g"><mesh>
    <source id="p"><float_array id="a" count="12">{numbers}</float_array></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <polylist material="s" count="4"><input semantic="VERTEX" source="#v" offset="0"/>
    <vcount>3 3 3 3</vcount><p>{faces}</p></polylist></mesh></geometry></library_geometries>
    <library_visual_scenes><visual_scene id="w"><node><scale>2 2 2</scale>
    <node><matrix>0.5 0 0 0 0 0.5 0 0 0 0 0.5 0 0 0 0 1</matrix><instance_geometry url="#g"><bind_material>
    <technique_common><instance_material symbol="s" target="#m"/></technique_common></bind_material>
    </instance_geometry></node></node></visual_scene></library_visual_scenes>
    <scene><instance_visual_scene url="#w"/></scene></COLLADA>"""


def gltf(inside: bool) -> bytes:
    data = CORNERS.astype("<f4").tobytes() + FACES.astype("<u2").tobytes()
    given: dict[str, Any] = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"children": [1], "scale": [2, 2, 2]}, {"mesh": 0, "scale": [0.5, 0.5, 0.5]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "material": 0}]}],
        "materials": [{"pbrMetallicRoughness": {"baseColorFactor": [1, 0.5, 0, 1]}}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": 48},
            {"buffer": 0, "byteOffset": 48, "byteLength": 24},
        ],
        "buffers": [{"byteLength": len(data)}],
    }
    if not inside:
        given["buffers"][0]["uri"] = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
        return json.dumps(given).encode()
    text = json.dumps(given).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(data), 0x004E4942) + data
    return b"glTF" + struct.pack("<II", 2, 12 + len(chunks)) + chunks


FILES = {
    "bytes.stl": stl_bytes(),
    "text_table.stl": stl_text().encode(),
    "a.obj": obj().encode(),
    "a.dae": dae().encode(),
    "a.gltf": gltf(False),
    "a.glb": gltf(True),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_has_the_same_body(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    m = read_mesh(tmp_path / name)
    assert (len(m.corners), len(m.triangles)) == (4, 4)
    assert volume(m) == pytest.approx(VOLUME, rel=1e-5)
    assert sorted(map(tuple, m.corners.round(4).tolist())) == sorted(map(tuple, CORNERS.tolist()))
    if name in ("a.dae", "a.gltf", "a.glb"):
        assert m.colour == (1.0, 0.5, 0.0)


@pytest.mark.parametrize("name", FILES)
def test_files_that_were_cut_off_are_named(name: str, tmp_path: Path) -> None:
    """A truncated file gives a ReadError with its name, or a sound mesh."""
    rng = np.random.default_rng(1)
    file = tmp_path / name
    for _ in range(40):
        data = bytearray(FILES[name][: rng.integers(1, len(FILES[name]))])
        data[int(rng.integers(len(data)))] = int(rng.integers(256))
        file.write_bytes(bytes(data))
        with contextlib.suppress(ReadError):
            assert (m := read_mesh(file)).triangles.max() < len(m.corners)
    file.write_bytes(FILES[name][:20])
    with pytest.raises(ReadError, match=name):
        read_mesh(file)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("error")
def test_damaged_files_are_named(name: str, tmp_path: Path) -> None:
    """Odd numbers, flipped bits, doubled or missing parts: a short ReadError with the file's name, or a sound mesh."""
    rng, file = random.Random(3), tmp_path / name
    for _ in range(150):
        data = bytearray(FILES[name])
        for _ in range(rng.choice((1, 1, 3))):
            data = damaged(rng, data, text=name not in ("bytes.stl", "a.glb"))
        file.write_bytes(data)
        said, m = "", None
        try:
            m = read_mesh(file)
        except ReadError as error:
            said = str(error)
        assert name in said or m is not None
        assert len(said) < 500 + len(str(file))
        if m is not None:
            assert np.isfinite(m.corners).all()
            assert 0 <= m.triangles.min() <= m.triangles.max() < len(m.corners)


def damaged(rng: random.Random, data: bytearray, text: bool) -> bytearray:
    found = list(mutation.NUMBER.finditer(data.decode("latin-1"))) if text else []
    if found and rng.random() < 0.5:
        at = rng.choice(found).span()
        return data[: at[0]] + rng.choice(mutation.NUMBERS).encode() + data[at[1] :]
    a = rng.randrange(len(data))
    b = min(len(data), a + rng.randrange(60))
    ways = (data[a:b], b"", b"\xff\xff\xff\xff", b"\x00\x00\xc0\x7f", bytes([data[a] ^ 1 << rng.randrange(8)]))
    way = rng.randrange(len(ways))
    end = (a, b, a + 4, a + 4, a + 1)[way]
    return data[:a] + ways[way] + data[end:]


def test_nested_scenes_are_limited(tmp_path: Path) -> None:
    """Nested scenes are limited: forty nodes, each with twice the next one, would exceed any memory."""
    scene = json.loads(FILES["a.gltf"])
    scene["nodes"] = [{"children": [k + 1, k + 1]} for k in range(40)] + [{"mesh": 0}]
    (tmp_path / "x.gltf").write_text(json.dumps(scene))
    again = '<instance_node url="#n{0}"/><instance_node url="#n{0}"/>'
    nodes = "".join(f'<node id="n{k}">{again.format(k + 1)}</node>' for k in range(40))
    nodes += '<node id="n40"><instance_geometry url="#g"/></node>'
    first = '<visual_scene id="w">'
    text = dae().replace(first, first + '<node><instance_node url="#n0"/></node>')
    text = text.replace("<scene>", f"<library_nodes>{nodes}</library_nodes><scene>")
    (tmp_path / "x.dae").write_text(text)
    for name in ("x.gltf", "x.dae"):
        with pytest.raises(ReadError, match="without end"):
            read_mesh(tmp_path / name)


def test_missing_large_or_invalid_meshes_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReadError, match="the mesh does not exist"):
        read_mesh(tmp_path / "nowhere.stl")
    with pytest.raises(ReadError, match=r"readable are \.stl"):
        read_mesh(tmp_path / "a.blend")
    monkeypatch.setattr(limits, "MAX_MESH_BYTES", 100)
    (tmp_path / "large.stl").write_bytes(FILES["bytes.stl"])
    with pytest.raises(ReadError, match="Simplify it"):
        read_mesh(tmp_path / "large.stl")


def test_a_simpler_mesh_is_nearly_the_same_body() -> None:
    """A simplified ball has few triangles, nearly the same volume, and stays closed."""
    n = 120
    a, b = np.meshgrid(np.linspace(0, np.pi, n), np.linspace(0, 2 * np.pi, n, endpoint=False), indexing="ij")
    corners = np.stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)], -1).reshape(-1, 3)
    k = np.arange(n * n).reshape(n, n)
    p, q, r, s = k[:-1], np.roll(k, -1, 1)[:-1], k[1:], np.roll(k, -1, 1)[1:]
    ball = Mesh(
        corners, np.concatenate([np.stack([p, r, s], -1).reshape(-1, 3), np.stack([p, s, q], -1).reshape(-1, 3)])
    )
    few = simplify(ball, 1500)
    assert len(few.triangles) <= 1500 < len(ball.triangles)
    assert volume(few) == pytest.approx(4.19, rel=0.05)
    assert simplify(few, 5000) is few


HEAVY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
ROBOT = f"""<robot name="r"><material name="blue"><color rgba="0 0 1 1"/></material><link name="base"/>
<link name="arm">{HEAVY}<visual><origin xyz="0 0 1"/>
<geometry><mesh filename="package://here/a.obj" scale="2 2 2"/></geometry><material name="blue"/></visual></link>
<link name="tool"><visual><geometry><box size="2 4 6"/></geometry></visual></link>
<link name="lost"><visual><geometry><mesh filename="nowhere.stl"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint>
<joint name="f" type="fixed"><parent link="arm"/><child link="tool"/><origin xyz="5 0 0"/></joint>
<joint name="g" type="fixed"><parent link="arm"/><child link="lost"/></joint></robot>"""


def test_a_robot_is_drawn_with_its_own_meshes(tmp_path: Path) -> None:
    """A robot is drawn with its meshes: scaled, moved, coloured; missing files are reported.

    Meshes of welded links are on the body that contains them.
    """
    folder = tmp_path / "here" / "urdf"
    folder.mkdir(parents=True)
    (tmp_path / "here" / "a.obj").write_bytes(FILES["a.obj"])
    (folder / "r.urdf").write_text(ROBOT)
    m = bc.read(folder / "r.urdf")
    found, notes = read_visuals(m)
    assert len(found) == 2
    assert len(notes) == 1
    assert "nowhere.stl" in notes[0]
    arm, tool = found
    assert volume(arm.mesh) == pytest.approx(8.0)
    assert arm.mesh.corners.min(axis=0) == pytest.approx([0, 0, 1])
    assert arm.colour == (0.0, 0.0, 1.0)
    assert volume(tool.mesh) == pytest.approx(48.0)
    assert tool.mesh.corners.mean(axis=0) == pytest.approx([5, 0, 0])
    assert tool.body == arm.body
    shown = scene(m, np.zeros((1, m.nq)))
    kinds = [s["kind"] for s in shown["shapes"]]
    assert kinds.count("mesh") == 2
    assert shown["notes"] == notes
    corners = np.frombuffer(base64.b64decode(shown["shapes"][-2]["corners"]), "<f4").reshape(-1, 3)
    np.testing.assert_allclose(corners, arm.mesh.corners, atol=1e-6)
    assert not [s for s in scene(bc.zoo.puma600(), np.zeros((1, 6)))["shapes"] if s["kind"] == "mesh"]


def test_round_shapes_are_closed_and_look_outwards(tmp_path: Path) -> None:
    for shape, wanted in (('<cylinder radius="1" length="2"/>', 2 * np.pi), ('<sphere radius="1"/>', 4 / 3 * np.pi)):
        joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
        links = f'<link name="a"><visual><geometry>{shape}</geometry></visual></link><link name="b">{HEAVY}</link>'
        (tmp_path / "r.urdf").write_text(f'<robot name="r">{links}{joint}</robot>')
        (found,), notes = read_visuals(bc.read(tmp_path / "r.urdf"))
        assert found.body == -1
        assert notes == []
        assert volume(found.mesh) == pytest.approx(wanted, rel=0.03)


def _gltf_bomb(nodes: int, primitives: int, count: int) -> str:
    """Return one buffer to which very many primitives and nodes refer."""
    data = base64.b64encode(np.zeros(3 * count, "<f4").tobytes()).decode()
    part = {"attributes": {"POSITION": 0}}
    given = {
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0}] * nodes,
        "meshes": [{"primitives": [part] * primitives}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": count}],
        "bufferViews": [{"buffer": 0}],
        "buffers": [{"uri": f"data:;base64,{data}"}],
    }
    return json.dumps(given)


def _dae_bomb(nodes: int, faces: str, count: int, corners: int = 3) -> str:
    """Return one geometry with very many lists of faces, or nodes that refer to it."""
    numbers = " ".join(["0"] * 3 * corners)
    return f"""<COLLADA><library_geometries><geometry id="g"><mesh>
    <source id="p"><float_array>{numbers}</float_array></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    {faces * count}</mesh></geometry></library_geometries>
    <library_visual_scenes><visual_scene id="w">{'<node><instance_geometry url="#g"/></node>' * nodes}
    </visual_scene></library_visual_scenes><scene><instance_visual_scene url="#w"/></scene></COLLADA>"""


_TRIANGLE = '<triangles><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>'
_NOTHING = '<triangles><input semantic="VERTEX" source="#v" offset="0"/><p></p></triangles>'
# Faces that use the same corners repeatedly, because the number of corners of every second one is negative.
_FANS = f"""<polylist><input semantic="VERTEX" source="#v" offset="0"/>
    <vcount>{"5000 -5000 " * 20_000}5000</vcount><p>{"0 1 2 " * 2000}</p></polylist>"""
BOMBS = {
    "instances.gltf": _gltf_bomb(5000, 1, 6000),
    "primitives.gltf": _gltf_bomb(1, 4000, 6000),
    "both.gltf": _gltf_bomb(2500, 2000, 3),
    "instances.dae": _dae_bomb(5000, _TRIANGLE, 3000),
    "empty.dae": _dae_bomb(5000, _NOTHING, 5000),
    "fans.dae": _dae_bomb(1, _FANS, 1),
    "corners.dae": _dae_bomb(4000, _TRIANGLE, 100, 50_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_small_files_that_describe_too_much_are_refused_or_read_at_once(name: str, tmp_path: Path) -> None:
    """Small files that describe too much are refused or read at once, in a process with little memory and little time.

    Each of them once took minutes or gigabytes.
    """
    (tmp_path / name).write_text(BOMBS[name])
    program = (
        "import resource, sys\n"
        "from bellcrank.errors import ReadError\n"
        "from bellcrank.meshes import read_mesh\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)\n"
        "start = resource.getrusage(resource.RUSAGE_SELF).ru_utime\n"
        "try:\n    print(len(read_mesh(sys.argv[1]).triangles))\n"
        "except ReadError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_utime - start)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said, seconds = done.stdout.splitlines()
    assert "most that are read" in said or "negative" in said or int(said) > 0
    assert "Memory" not in said
    assert float(seconds) < 5.0
