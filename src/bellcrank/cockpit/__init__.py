"""The cockpit: a page on 127.0.0.1 from which a person drives a mechanism that runs in real time.

    messages.py   the whole protocol          machines.py   what can be driven, and with which levers
    helm.py       who drives, the dead-man    session.py    the running drive, its settings and its pictures
    app.py        Starlette: page, websocket  serve.py      the port, uvicorn, the browser

The page itself is TypeScript, in web/; `make page` bundles it into static/. Only app.py and serve.py need the packages
of the extra "cockpit".
"""
