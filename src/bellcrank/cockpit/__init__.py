"""Cockpit: a page on 127.0.0.1 from which a person drives a mechanism in real time.

    messages.py   protocol                     machines.py   machines and their levers
    helm.py       driver, dead-man switch      session.py    running drive, its settings and states
    hub.py        connections of all pages     app.py        page, its files, websocket
    guard.py      access control               server.py     port, uvicorn, browser
    site.py       soil, parameters, tasks      downloads.py  records as files
    replay.py     replay data of a record      servos.py     position servos for any mechanism

Further modules limit connections, queue messages, solve inverse kinematics and compute poses for the page.
The page itself is TypeScript, in web/; `make page` bundles it into static/. Only hub.py, app.py, downloads.py and
server.py need the packages of the extra "cockpit".
"""
