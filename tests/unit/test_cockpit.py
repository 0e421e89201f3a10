"""The cockpit's protocol, driver hand-over, guard, levers and session, tested with a fake drive."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.cockpit import messages, scene_poses
from bellcrank.cockpit.guard import BURST_MESSAGES, Guard, MessageBucket
from bellcrank.cockpit.hub import ANSWER_SECONDS, DEAD_MAN_SECONDS, SILENT_SECONDS, Helm
from bellcrank.cockpit.machines import Machine, generic
from bellcrank.cockpit.messages import (
    MAX_QUEUED_MESSAGES,
    MAX_STATES_IN_FLIGHT,
    MESSAGES,
    UNACKNOWLEDGED_SECONDS,
    Input,
    MessageError,
    Outbox,
    QueueFullError,
    Switch,
    parse_message,
)
from bellcrank.cockpit.scene_poses import MAX_ROWS
from bellcrank.cockpit.session import Session, Settings, compile_warning
from bellcrank.excavators import linkage_machine as linkage
from bellcrank.excavators import rotary_machine as excavator
from bellcrank.view import scene as record_scene
from fake_drive import FakeDrive
from prose import ROOT


@pytest.fixture(scope="module")
def digger() -> Machine:
    return excavator.machine()


@pytest.fixture
def session(digger: Machine) -> Session:
    return Session(digger, FakeDrive)


# -- the protocol


def test_messages_are_understood() -> None:
    assert parse_message('{"type": "input", "values": [1, -0.5], "n": 7}') == Input((1.0, -0.5), 7)
    assert parse_message('{"type": "switch", "rate": 500}') == Switch(500.0)
    for name in ("blur", "ask", "release", "pause", "resume", "reset"):
        assert type(parse_message(json.dumps({"type": name}))) is MESSAGES[name]


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "null", "[1]", "{}", '{"type": 3}', '{"type": "exec"}', '{"type": "input"}', "[" * 4000,
        '{"type": "input", "values": 3}', '{"type": "input", "values": ["x"]}', '{"type": "input", "values": [NaN]}',
        '{"type": "input", "values": [Infinity]}', '{"type": "input", "values": [1e300]}',
        '{"type": "input", "values": [true]}', '{"type": "input", "values": [], "n": -1}',
        '{"type": "input", "values": [], "n": 1.5}', '{"type": "input", "values": [], "path": "/etc"}',
        '{"type": "answer", "grant": 1}', '{"type": "slow", "factor": null}', '{"type": "pilot", "name": {}}',
        json.dumps({"type": "switch", "method": "x" * 65}), json.dumps({"type": "input", "values": [0] * 257}),
        json.dumps({"type": "pilot", "name": "x" * 5000}), '{"type": "input", "values": [1' + "0" * 400 + "]}",
    ],
)  # fmt: skip
def test_invalid_messages_are_rejected(text: str) -> None:
    with pytest.raises(MessageError):
        parse_message(text)
    with pytest.raises(MessageError):
        parse_message(text.encode())


@given(st.text(max_size=200) | st.binary(max_size=50))
def test_no_text_does_harm(text: str | bytes) -> None:
    with pytest.raises(MessageError):
        parse_message(text)


def test_the_page_has_the_same_protocol() -> None:
    text = (ROOT / "web/src/messages.ts").read_text("utf-8")
    ours = text[text.index("export type Message") : text.index("// From the server")]
    assert set(re.findall(r'type: "(\w+)"', ours)) == set(MESSAGES)
    for name, kind in MESSAGES.items():
        line = re.search(rf'\{{ type: "{name}"(.*?)\}}', ours)
        assert line is not None
        assert re.findall(r"(\w+)\??: ", line[1]) == list(kind.__dataclass_fields__)
    assert f"PROTOCOL = {messages.PROTOCOL};" in text
    assert f"const HEADER = {messages.HEADER.size};" in text
    assert f"GROUND_HEADER = {messages.GROUND_HEADER.size};" in text
    flags = f"RUNNING = {messages.RUNNING}, NEUTRAL = {messages.NEUTRAL}, DRIVEN = {messages.DRIVEN};"
    assert flags in text


# -- who is the driver


def test_first_client_drives_and_second_requests_control() -> None:
    helm = Helm()
    helm.ask(1, 0.0)
    assert helm.driver == 1
    helm.hold(1, 0.1)
    helm.ask(2, 0.2)
    assert (helm.driver, helm.asking) == (1, 2)
    assert not helm.hold(2, 0.2)  # a request does not make a driver
    helm.ask(3, 0.3)
    assert helm.refused == {3}
    helm.answer(2, True, 0.3)  # a client cannot answer its own request
    assert helm.driver == 1
    helm.answer(1, False, 0.4)
    assert (helm.driver, helm.asking, helm.refused) == (1, None, {2, 3})
    helm.ask(2, 0.5)
    helm.answer(1, True, 0.6)
    assert (helm.driver, helm.asking) == (2, None)
    assert not helm.held(0.6)  # a new driver has to touch the levers first


def test_no_answer_is_a_yes() -> None:
    helm = Helm()
    helm.ask(1, 0.0)
    helm.ask(2, 1.0)
    now = 1.0
    while now < 1.0 + ANSWER_SECONDS:
        helm.hold(1, now)
        helm.tick(now)
        assert helm.driver == 1
        now += 0.1
    helm.tick(now + 0.1)
    assert helm.driver == 2


def test_silent_driver_loses_the_helm() -> None:
    helm = Helm()
    helm.ask(1, 0.0)
    helm.hold(1, 0.0)
    helm.ask(2, SILENT_SECONDS + 0.1)
    assert helm.driver == 2
    helm.ask(1, SILENT_SECONDS + 1.0)
    assert helm.asking == 1
    helm.tick(2 * SILENT_SECONDS + 0.2)
    assert helm.driver == 1


def test_leaving_driver_frees_the_helm() -> None:
    helm = Helm()
    helm.ask(1, 0.0)
    helm.ask(2, 0.1)
    helm.leave(1, 0.2)
    assert helm.driver == 2
    helm.ask(3, 0.3)
    helm.leave(3, 0.4)
    assert helm.asking is None
    helm.leave(2, 0.5)
    assert helm.driver is None


def test_dead_man() -> None:
    helm = Helm()
    helm.ask(1, 0.0)
    helm.hold(1, 1.0)
    assert helm.held(1.0 + 0.99 * DEAD_MAN_SECONDS)
    assert not helm.held(1.0 + 1.01 * DEAD_MAN_SECONDS)
    helm.hold(1, 2.0)
    helm.release(2)
    assert helm.held(2.0)
    helm.release(1)
    assert not helm.held(2.0)
    assert DEAD_MAN_SECONDS == 0.2  # the documented value


# -- access to the server


@pytest.mark.parametrize(
    ("host", "origin", "welcome"),
    [
        ("127.0.0.1:8731", "http://127.0.0.1:8731", True),
        ("localhost:8731", "http://localhost:8731", True),
        ("[::1]:8731", "http://[::1]:8731", True),
        ("127.0.0.1:8731", None, True),  # no browser
        ("127.0.0.1:8731", "https://evil.example", False),
        ("127.0.0.1:8731", "http://127.0.0.1:9999", False),  # a page of another program
        ("127.0.0.1:8731", "null", False),
        ("127.0.0.1:8731", "file://127.0.0.1:8731", False),
        ("127.0.0.1:8731", "http://[", False),
        ("evil.example:8731", "http://evil.example:8731", False),  # a name that resolves to this computer
        ("192.168.1.5:8731", "http://192.168.1.5:8731", False),
        ("", None, False),
        ("[", "http://[", False),
    ],
)
def test_hosts_and_origins(host: str, origin: str | None, welcome: bool) -> None:
    guard, headers = Guard(), {"host": host} | ({} if origin is None else {"origin": origin})
    assert (guard.allows_host(host) and guard.allows_origin(headers)) is welcome


@pytest.mark.parametrize(
    ("site", "mode", "origin", "arrives", "asks"),
    [
        ("none", "navigate", None, True, True),  # the address was typed
        ("same-origin", "cors", None, True, True),
        ("cross-site", "navigate", None, True, False),  # a link to the page, and a link to a record
        ("cross-site", "no-cors", None, False, False),  # <img src="http://127.0.0.1:8731/record.csv">
        ("same-site", "no-cors", None, False, False),  # an image from another port
        ("cross-site", "navigate", "https://evil.example", False, False),  # a form
    ],
)
def test_fetch_metadata_of_browsers_decides_on_requests(
    site: str, mode: str, origin: str | None, arrives: bool, asks: bool
) -> None:
    headers = {"host": "127.0.0.1:8731", "sec-fetch-site": site, "sec-fetch-mode": mode}
    headers |= {} if origin is None else {"origin": origin}
    assert Guard().allows_origin(headers, page_request=True) is arrives
    assert Guard().allows_origin(headers) is asks


def test_other_computers_by_number_or_name() -> None:
    guard = Guard("0.0.0.0")
    assert guard.allows_host("192.168.1.5:8731")
    assert not guard.allows_host("evil.example")


def test_every_guard_has_a_separate_token() -> None:
    one, other = Guard(), Guard()
    assert one.token != other.token
    assert len(one.token) >= 32
    assert one.token not in repr(one)
    assert one.has_token({"authorization": f"Bearer {one.token}"})
    assert one.has_token({"sec-websocket-protocol": f"bellcrank, token.{one.token}"})
    for headers in (
        {},
        {"authorization": one.token},
        {"authorization": "Bearer \udcff\xe9"},
        {"sec-websocket-protocol": "token."},
    ):
        assert not one.has_token(headers)
    assert not one.has_token({"authorization": f"Bearer {other.token}"})
    with pytest.raises(ValueError, match="needs a token"):
        Guard(token="")


def test_pace() -> None:
    pace = MessageBucket()
    allowed = sum(pace.allows(100.0) for _ in range(1000))
    assert allowed == BURST_MESSAGES
    assert pace.dropped == 1000 - BURST_MESSAGES
    assert pace.allows(100.1)


# -- messages in flight


def test_the_newest_state_wins() -> None:
    async def main() -> tuple[list[Any], int]:
        now, got = 0.0, list[Any]()
        box = Outbox(lambda: now)
        gate = asyncio.Event()

        async def send(x: Any) -> None:
            await gate.wait()
            got.append(x)

        job = asyncio.create_task(box.deliver(send, send))
        for k in range(1, 10):
            box.put_state(b"%d" % k, k)
            await asyncio.sleep(0)
        box.put("word")
        box.put_report("first")
        box.put_report("second")
        gate.set()
        for _ in range(20):
            await asyncio.sleep(0)
        for k in range(10, 30):  # the page acknowledges nothing, so only a few messages are in flight
            box.put_state(b"%d" % k, k)
            for _ in range(5):
                await asyncio.sleep(0)
        few = len(got)
        now = 2 * UNACKNOWLEDGED_SECONDS
        box.put_state(b"late", 30)
        for _ in range(5):
            await asyncio.sleep(0)
        box.acknowledge(30)
        box.put_state(b"31", 31)
        for _ in range(5):
            await asyncio.sleep(0)
        job.cancel()
        return got, few

    got, few = asyncio.run(main())
    assert got[:4] == [b"1", "word", "second", b"9"]
    assert few == 4 + MAX_STATES_IN_FLIGHT - 2
    assert got[few:] == [b"late", b"31"]


def test_a_page_that_does_not_read() -> None:
    async def main() -> None:
        box = Outbox()
        for _ in range(MAX_QUEUED_MESSAGES):
            box.put("word")
        with pytest.raises(QueueFullError):
            box.put("word")

    asyncio.run(main())


# -- levers and session


def test_levers_stay_within_their_bounds(session: Session) -> None:
    session.move_levers([9.0, -9.0, 0.1, 0.0, 1.0], 5)
    levers = session.machine.levers
    assert session.drive.snapshot().u.tolist() == [levers[0].high, levers[1].low, 0.1, 0.0, 1.0]
    session.release_levers()
    assert session.drive.snapshot().u.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]  # the mode stays
    with pytest.raises(bc.InputError, match="3 values for 5 levers: first, second"):
        session.move_levers([0.0, 0.0, 0.0])


def test_the_state_message(session: Session) -> None:
    drive: Any = session.drive
    drive.n, drive.t = 12, 0.25
    session.move_levers([0.1, 0.0, 0.0, 0.0, 1.0], 99)
    data = session.frame(messages.NEUTRAL, 3)
    kind, flags, epoch, number, n, t, slow, serial = messages.HEADER.unpack_from(data)
    assert (kind, flags, epoch, number, n, t, slow, serial) == (1, messages.NEUTRAL, 0, 99, 12, 0.25, 1.0, 3)
    values = np.frombuffer(data, "<f4", offset=messages.HEADER.size)
    bodies, *rest = session.welcome()["sizes"]
    assert len(values) == 12 * bodies + sum(rest)
    assert sum(rest) == len(session.welcome()["names"])
    by_name = dict(zip(session.machine.names, values[12 * bodies :], strict=True))
    assert by_name["boom.q"] == pytest.approx(session.machine.start[1])  # type: ignore[index]
    assert by_name["input.first"] == pytest.approx(0.1)
    assert by_name["bucket.spool"] == 7.0
    json.dumps(session.welcome(), allow_nan=False)


@pytest.mark.parametrize("name", ["excavator", "puma600", "stanford", "torso", "tree:12"])
def test_poses_are_those_of_the_scene(name: str) -> None:
    m = bc.zoo.load(name)
    q = np.stack([m.random(seed)[0] for seed in range(3)])
    found = scene_poses.pose_kernel(m)(q).reshape(3, len(m.bodies), 3, 4)
    wanted = record_scene.poses(m, q)
    np.testing.assert_allclose(found[..., 3], wanted[..., :3], atol=1e-12)
    u, w, R = wanted[..., 3:6], wanted[..., 6:], found[..., :3]
    for k, e in enumerate(np.eye(3)):
        turned = e + 2.0 * np.cross(u, np.cross(u, e) + w * e)
        np.testing.assert_allclose(R[..., k], turned, atol=1e-12)


def test_switch_of_settings_keeps_the_state(session: Session) -> None:
    old: Any = session.drive
    session.start()
    session.slow(0.5)
    session.move_levers([0.1, 0.0, 0.0, 0.0, 0.0])
    old.y = np.arange(float(session.machine.system.size))
    session.switch(rate=500.0, integrator="euler")
    new: Any = session.drive
    assert new is not old
    assert (new.rate, session.epoch) == (500.0, 1)
    np.testing.assert_array_equal(new.y, old.y)
    assert old.calls[-2:] == [("pause",), ("stop",)]
    # the first reset came while the old drive ran
    assert new.calls == [("reset",), ("reset",), ("slow", 0.5), ("start",)]
    assert new.u[0] == 0.1
    session.pause()
    session.switch(method="aba")
    assert session.drive.calls[-1] == ("pause",)  # type: ignore[attr-defined]
    session.switch(method="aba")
    assert session.epoch == 2  # nothing changed


def test_long_compilation_warns_in_advance() -> None:
    assert "a minute or two" in compile_warning(64, "rodas4")
    assert compile_warning(64, "rk4") == compile_warning(12, "rodas4") == compile_warning(64, "rodas44") == ""


def test_a_switch_that_is_late_does_not_start(digger: Machine) -> None:
    """A machine that is compiled too late does not start: the server ended meanwhile."""
    made = list[FakeDrive]()

    def make(*asked: Any) -> FakeDrive:
        made.append(FakeDrive(*asked))
        if len(made) > 1:
            assert found.current_settings()["compiling"] == "euler, auto, 1000 steps per second"
            found.stop()
        return made[-1]

    found = Session(digger, make)
    found.start()
    found.switch(integrator="euler")
    assert ("start",) not in made[1].calls
    assert (found.drive, found.settings.integrator, found.current_settings()["compiling"]) == (made[0], "rk4", "")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rate": 999.0}, "rate is 999; expected one of 100, 200"),
        ({"integrator": "rk5"}, 'no integrator "rk5"'),
        ({"method": "abba"}, 'no method "abba". Did you mean "aba"'),
    ],
)
def test_a_bad_switch_changes_nothing(session: Session, change: dict[str, Any], text: str) -> None:
    drive = session.drive
    with pytest.raises(bc.InputError, match=re.escape(text)):
        session.switch(**change)
    assert session.drive is drive
    with pytest.raises(bc.InputError):
        session.slow(0.0)


def test_a_welcome_is_cheap(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The welcome message is cheap, because clients that reconnect all the time must not slow down the others."""
    monkeypatch.setattr(scene_poses, "scene_data", lambda *_, **__: pytest.fail("the scene is made anew"))
    assert session.welcome()["scene"] is session.welcome()["scene"]


def test_reset_keeps_the_mode(session: Session) -> None:
    session.move_levers([0.1, 0.0, 0.0, 0.0, 1.0])
    session.reset()
    assert session.drive.snapshot().u.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_replay_is_thinned(session: Session) -> None:
    data = session.replay(2.0, 9.5)
    rows, width, changes, cells = (int(n) for n in np.frombuffer(data, "<u4", 4))
    t = np.frombuffer(data, "<f8", rows, 16)
    values = np.frombuffer(data, "<f4", rows * width, 16 + 8 * (rows + changes)).reshape(rows, width)
    assert len(data) == 16 + 8 * (rows + changes) + 4 * (rows * width + cells + 4 * changes)
    assert 2.0 <= t[0] <= t[-1] <= 9.5
    assert MAX_ROWS / 2 < rows <= MAX_ROWS
    np.testing.assert_allclose(values[:, 0], np.cos(t), atol=1e-6)  # the cab turns by t
    assert np.frombuffer(session.replay(50.0, 60.0), "<u4", 2)[0] == 0


def test_patterns_name_every_lever_once(digger: Machine) -> None:
    names = {lever.name for lever in digger.levers} - {digger.mode}
    for pattern in digger.patterns.values():
        assert set(pattern) == set(digger.modes)
        for axes in pattern.values():
            assert {lever for lever, _ in axes.values()} == names
            assert set(axes) == {"left.x", "left.y", "right.x", "right.y"}
    assert digger.patterns["ISO"]["JOINT"]["right.y"] == ("second", -1.0)  # ISO: right lever moves the boom
    assert digger.patterns["SAE"]["JOINT"]["left.y"] == ("second", -1.0)  # SAE: left lever moves the boom


@pytest.mark.parametrize("name", ["puma600", "stanford", "pendulum", "tree:12"])
@pytest.mark.parametrize("by", ["position", "torque"])
def test_any_mechanism_can_be_driven(name: str, by: str) -> None:
    made = generic(bc.zoo.load(name), by)
    assert len(made.levers) == made.mechanism.nv
    assert all(lever.low < lever.high for lever in made.levers)
    assert made.values(made.first()) == made.first()
    assert set(made.plots[0].columns) <= set(made.names)


@pytest.mark.parametrize(
    ("name", "levers"),
    [("four_bar", ["A"]), ("stewart", [f"P{i}" for i in range(1, 7)]), ("delta", [f"shoulder{i}" for i in (1, 2, 3)])],
)
def test_only_independent_joints_in_loops_have_levers(name: str, levers: list[str]) -> None:
    made = generic(bc.zoo.load(name))
    assert [lever.name for lever in made.levers] == levers
    inputs = dict(zip(levers, made.first(), strict=True))
    run = bc.simulate(made.system, 1.0, q0=made.start, step=1e-3, inputs=inputs, form="projected", progress=False)
    assert np.abs(run.q[-1] - np.array(made.start)).max() < 0.1
    assert np.abs(run.v[-1]).max() < 0.05


def test_servos_of_a_floating_mechanism_are_stable() -> None:
    """Servos of a floating mechanism stay stable although a joint meets less inertia than on the ground.

    Damping chosen for a fixed base would be too much.
    """
    b = bc.Builder("drifter", gravity=(0, 0, 0))
    b.body("base", mass=1.0, com=(0, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
    b.body("arm", mass=5.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("free", "floating", "ground", "base")
    b.joint("hinge", "revolute", "base", "arm", axis=(0, 0, 1))
    made = generic(b.build())
    run = bc.simulate(made.system, 1.0, step=1e-3, inputs={"hinge": 0.5}, progress=False)
    assert run["hinge.q"][-1] == pytest.approx(0.5, abs=0.05)


def test_servos_hold_and_follow() -> None:
    made = generic(bc.zoo.puma600())
    target = [0.5, -0.4, 0.3, 0.2, -0.3, 0.1]
    inputs = dict(zip(made.system.inputs, target, strict=True))
    run = bc.simulate(made.system, 3.0, inputs=inputs, progress=False)
    np.testing.assert_allclose(run.q[-1], target, atol=0.06)
    assert np.abs(run.v[-1]).max() < 0.05


def test_undrivable_mechanism_raises() -> None:
    b = bc.Builder("ball")
    b.body("ball", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("free", "floating", "ground", "ball")
    with pytest.raises(bc.InputError, match=r"it has free \(floating\), so there is no joint for a slider"):
        generic(b.build())
    with pytest.raises(bc.InputError, match=r"no joint has a single coordinate; it has plane \(planar\)"):
        generic(bc.zoo.rod_pendulum())  # its loop leaves two degrees of freedom
    with pytest.raises(bc.InputError, match='no way to drive "wish"'):
        generic(bc.zoo.pendulum(), "wish")
    with pytest.raises(bc.InputError, match="rate is 3"):
        Session(generic(bc.zoo.pendulum()), FakeDrive, Settings(rate=3.0))


def test_the_autopilot_ends_with_its_program() -> None:
    session = Session(linkage.machine(), FakeDrive)
    session.start_pilot("dig")
    session.run_pilot()
    levers = session.drive.snapshot().u.tolist()
    assert any(levers[:4])  # the levers are used in RESOLVED mode
    assert levers[4:] == [1.0, 0.0]
    session.start_pilot("")
    assert session.drive.snapshot().u.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]


def test_lever_takes_over_from_the_program(session: Session) -> None:
    session.start_pilot("dig")
    session.run_pilot()
    assert session.drive.snapshot().u[4] == 1.0
    assert np.abs(session.drive.snapshot().u[:4]).max() > 0.0
    session.move_levers([0.0, 0.1, 0.0, 0.0, 0.0])
    assert session.pilot == ""
    session.run_pilot()
    assert session.drive.snapshot().u.tolist() == [0.0, 0.1, 0.0, 0.0, 0.0]
