"""The cockpit: a page on 127.0.0.1 from which a person drives a mechanism that runs in real time.

    messages.py   the whole protocol          machines.py   what can be driven, and with which levers
    helm.py       who drives, the dead-man    session.py    the running drive, its settings and its pictures
    hub.py        all pages, one driver       app.py        the page, its files, the websocket
    guard.py      who may come in             serve.py      the port, uvicorn, the browser
    site.py       soil, numbers, jobs         downloads.py  records as files to fetch
    replay.py     a record for a page         reach.py      inverse kinematics for a handle

The page itself is TypeScript, in web/; `make page` bundles it into static/. Only hub.py, app.py, saving.py and
serve.py need the packages of the extra "cockpit".
"""
