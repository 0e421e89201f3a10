"""Cockpit: a page on 127.0.0.1 from which a person drives a mechanism in real time.

    messages.py   protocol, queue of each page        machines.py      machines and their levers
    hub.py        connections of all pages, driver    session.py       running drive, its settings and states
    guard.py      access control and limits           app.py           page, its files, websocket, records as files
    site.py       soil, parameters, tasks             server.py        port, uvicorn, browser
    servos.py     servos for any mechanism            scene_poses.py   shapes, poses and replay data

The page itself is TypeScript, in web/; `make page` bundles it into static/. Only hub.py, app.py and server.py need the
packages of the extra "cockpit".
"""
