"""Cockpit: a page on 127.0.0.1 from which a person drives a mechanism in real time.

    messages.py   protocol                            machines.py      machines and their levers
    hub.py        connections of all pages, driver    session.py       running drive, its settings and states
    outbox.py     messages that wait for a page       app.py           page, its files, websocket, records as files
    guard.py      access control and limits           server.py        port, uvicorn, browser
    site.py       soil, parameters, tasks             scene_poses.py   shapes, poses and replay data
                                                      servos.py        position servos for any mechanism

The page itself is TypeScript, in web/; `make page` bundles it into static/. Only hub.py, app.py and server.py need the
packages of the extra "cockpit".
"""
