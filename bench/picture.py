"""`python -m bench.picture FILE.jpg`: a screenshot of the cockpit with the excavator at work, from Chromium."""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading

from playwright.sync_api import sync_playwright

from bellcrank.cli import drive
from bellcrank.cockpit.guard import Guard
from bellcrank.cockpit.server import listening_socket, serve_while
from bellcrank.cockpit.session import Session
from bellcrank.excavators import linkage_machine as linkage

FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
SIZE = {"width": 1280, "height": 720}
SECONDS = 15.5  # of simulation: the bucket is full and moving


def main(path: str) -> None:
    listening, end = listening_socket("127.0.0.1", 0), threading.Event()
    session = Session(linkage.machine(), drive.drive_factory())
    session.start_pilot("dig")
    guard = Guard()
    job = serve_while(session, guard, listening, lambda: not end.is_set())
    thread = threading.Thread(target=lambda: asyncio.run(job))
    thread.start()
    try:
        with sync_playwright() as p:
            found = shutil.which("chromium") or p.chromium.executable_path
            browser = p.chromium.launch(executable_path=found, args=FLAGS)
            page = browser.new_page(viewport=SIZE)
            page.goto(f"http://127.0.0.1:{listening.getsockname()[1]}/?quality=high#token={guard.token}")
            while session.drive.snapshot().t < SECONDS:
                page.wait_for_timeout(50)
            session.pause()
            page.wait_for_timeout(3000)  # until the newest state is drawn in software
            page.screenshot(path=path, type="jpeg", quality=86)
            browser.close()
    finally:
        end.set()
        thread.join()
        listening.close()


if __name__ == "__main__":
    main(sys.argv[1])
