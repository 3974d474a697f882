"""`course lab` in a real browser: what a learner sees and clicks, on one machine and nowhere else."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from course.catalog import PACKAGE, find_checkpoint

CHECKPOINT = find_checkpoint("09")
STARTER = CHECKPOINT.starter.read_text(encoding="utf-8")
SOLUTION = CHECKPOINT.solution.read_text(encoding="utf-8")
MISTAKE = "reduce_agent_state = lambda state, event: state"
"""As the last line of the solution: lab 9.1 is red until the line is gone."""

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60
"""A safety net, for a machine that is busy."""

expect.set_options(timeout=SECONDS * 1000)

NOTEBOOK = ".jp-NotebookPanel"
EDITOR = ".jp-FileEditor"
PANEL = f"{NOTEBOOK} .course-sheet"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        why = f"No browser: none of {', '.join(CHROMIUM)} is installed."
        pytest.fail(why) if os.environ.get("COURSE_CI") else pytest.skip(why)
    arguments = ["--disable-gpu", "--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()


class Desk:
    """`course lab 09` in `home`, in a world of its own. Use it as a context manager: it is stopped whatever happens."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "practice" / "09"
        for name in ("home", "tmp"):
            (home / name).mkdir()
        _show_every_cell(home / "home")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "course", "lab", "09", "--no-browser", "--port", str(self._port)],
            cwd=home,
            env=_environment(home),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._address: Future[str] = Future()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Desk:
        try:
            self.url = self._address.result(SECONDS)
            self._wait_until_it_serves()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _read(self) -> None:
        """Read what it says to its end, for the address that it prints just before it serves there."""
        said = ""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            said += line
            found = re.search(r"http://\S+/lab\?token=\S+", line)
            if found and not self._address.done():
                self._address.set_result(found[0])
        if not self._address.done():
            self._address.set_exception(AssertionError(f"the server ended without an address:\n{said}"))

    def _wait_until_it_serves(self) -> None:
        while self._process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("localhost", self._port)):
                return
        raise AssertionError("the server ended before it served")

    def ask(self, endpoint: str, content: dict[str, Any] | None = None) -> Any:
        """What the server answers to a GET, or to a POST of `content`; None when it has nothing to say."""
        base, _, token = self.url.partition("/lab?token=")
        data = json.dumps(content).encode() if content else None
        headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(base + endpoint, data, headers), timeout=SECONDS) as answer:
            return json.loads(answer.read() or "null")

    def family(self) -> list[psutil.Process]:
        return [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]

    def save(self, source: str) -> None:
        (self.folder / "agent.py").write_text(source, encoding="utf-8")

    def stop(self) -> None:
        """Press Ctrl-C, and wait until it has ended."""
        with self._process:
            self._process.send_signal(signal.SIGINT)
            self._reader.join(SECONDS)

    @contextlib.contextmanager
    def marking_once(self) -> Iterator[None]:
        """With one `%mark` in the notebook: the others would show the same again, and take a second each."""
        notebook = self.folder / CHECKPOINT.notebook.name
        content = json.loads(CHECKPOINT.notebook.read_bytes())
        marks = [cell for cell in content["cells"] if "".join(cell["source"]).startswith("%mark")]
        content["cells"] = [cell for cell in content["cells"] if cell not in marks[1:]]
        notebook.write_text(json.dumps(content), encoding="utf-8")
        yield
        notebook.write_bytes(CHECKPOINT.notebook.read_bytes())


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY", "IPYTHON"))}
    return {**kept, "HOME": str(home / "home"), "TMPDIR": str(home / "tmp"), "PYTHONPATH": str(PACKAGE.parent)}


def _show_every_cell(home: Path) -> None:
    """Have JupyterLab keep cells in the page that are out of sight, so that a test can look at all of them."""
    settings = home / ".jupyter" / "lab" / "user-settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}', encoding="utf-8")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with Desk(tmp_path_factory.mktemp("desk")) as desk:
        yield desk


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(viewport={"width": 1400, "height": 900}) as context:
        context.set_default_timeout(SECONDS * 1000)
        yield context


@pytest.fixture
def asked(context: BrowserContext) -> list[str]:
    """Every address that the browser asks for."""
    addresses: list[str] = []
    context.on("request", lambda request: addresses.append(request.url))
    context.on("page", lambda page: page.on("websocket", lambda websocket: addresses.append(websocket.url)))
    return addresses


def open_page(context: BrowserContext, desk: Desk) -> Page:
    """The desk in a new window, once its kernel has answered: what is run before that, JupyterLab drops."""
    page = context.new_page()
    heard: list[str | bytes] = []
    page.on("websocket", lambda websocket: websocket.on("framereceived", lambda frame: heard.append(frame)))
    with page.expect_websocket(lambda websocket: "/channels" in websocket.url) as channels:
        page.goto(desk.url)
    if not any(map(_is_answer, heard)):
        channels.value.wait_for_event("framereceived", _is_answer)
    page.wait_for_selector(f"{NOTEBOOK} .jp-CodeCell")
    page.wait_for_selector(f"{EDITOR} .cm-line")
    page.wait_for_selector(f"{NOTEBOOK} .jp-Notebook-ExecutionIndicator[data-status='idle']")
    return page


def _is_answer(frame: str | bytes) -> bool:
    return b"kernel_info_reply" in (frame.encode() if isinstance(frame, str) else frame)


def run_cell(page: Page, code: str, place: int = 0) -> None:
    """Run the cell that holds the line `code`, the first or the one at that place, as one does by hand."""
    page.locator(f"{NOTEBOOK} .jp-CodeCell .cm-content").get_by_text(code, exact=True).nth(place).click()
    page.keyboard.press("Control+Enter")


def menu(page: Page, *names: str) -> None:
    for name in names:
        page.locator(".lm-MenuBar-itemLabel, .lm-Menu-itemLabel").get_by_text(name, exact=True).click()


def save(page: Page) -> None:
    """Save what has the focus, and wait until the server has it."""
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "/api/contents/" in answer.url):
        page.keyboard.press("Control+s")


def test_an_empty_folder_becomes_a_desk_with_notebook_and_agent_py_side_by_side(
    desk: Desk, context: BrowserContext
) -> None:
    page = open_page(context, desk)
    notebook, editor = page.locator(NOTEBOOK).bounding_box(), page.locator(EDITOR).bounding_box()
    assert notebook is not None
    assert editor is not None
    assert notebook["x"] + notebook["width"] <= editor["x"]
    assert notebook["width"] > 500
    assert editor["width"] > 400
    expect(page.locator(f"{NOTEBOOK} h1").first).to_contain_text(CHECKPOINT.title)
    expect(page.locator(f"{EDITOR} .cm-line").first).to_contain_text("Checkpoint 09")
    expect(page.locator(".jp-Dialog, .Toastify__toast")).to_have_count(0)


def goes_there(page: Page, place: Locator, source: str) -> str:
    """The line of `source` that `place` names, once it has the cursor; there are lines in view below it."""
    number = int((place.text_content() or "").split()[-1])
    line = source.splitlines()[number - 1]
    expect(page.locator("#jp-main-statusbar")).to_contain_text(f"Ln {number}, Col 1")
    editor = page.locator(f"{EDITOR}:visible")
    shown, whole = editor.locator(".cm-line").filter(has_text=line.strip()).first.bounding_box(), editor.bounding_box()
    assert shown is not None
    assert whole is not None
    assert shown["y"] + shown["height"] < whole["y"] + whole["height"] - 100
    return line


def test_run_all_runs_through_on_the_solution(desk: Desk, context: BrowserContext) -> None:
    desk.save(SOLUTION)
    with desk.marking_once():
        page = open_page(context, desk)
        page.locator(f"{NOTEBOOK} h1").first.click()  # the menus are about what was used last
        menu(page, "Edit", "Clear Outputs of All Cells")
        menu(page, "Run", "Run All Cells")
        prompts = page.locator(f"{NOTEBOOK} .jp-CodeCell .jp-InputPrompt")
        expect(prompts).to_have_text([re.compile(r"^\[\d+\]:$")] * prompts.count())
        assert prompts.count() > 20
        expect(page.locator("[data-mime-type='application/vnd.jupyter.error']")).to_have_count(0)


def test_the_panel_goes_from_red_to_green_after_an_edit_and_says_what_to_run_once_its_kernel_is_gone(
    desk: Desk, context: BrowserContext, asked: list[str]
) -> None:
    desk.save(f"{SOLUTION}\n\n{MISTAKE}")
    page = open_page(context, desk)
    run_cell(page, "%load_ext course")
    run_cell(page, "%mark 9.1")
    panel = page.locator(PANEL).first
    expect(panel).to_contain_text("Lab 9.1 is red.")
    expect(panel).to_contain_text("✘ red")

    page.get_by_role("button", name="Hint 1 of 3 for lab 9.1").press("Enter")
    expect(page.get_by_role("button", name="Hint 2 of 3 for lab 9.1")).to_be_focused()
    expect(page.locator(f"{NOTEBOOK} .course-sheet .hint")).to_contain_text(CHECKPOINT.find_lab("9.1").hints[0][:30])

    page.locator(f"{EDITOR} .cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.press("Shift+Home")
    page.keyboard.press("Delete")
    save(page)
    assert (desk.folder / "agent.py").read_text(encoding="utf-8").rstrip() == SOLUTION.rstrip()
    page.get_by_role("button", name="Mark again").press("Enter")
    expect(panel).to_contain_text("Lab 9.1 is green.")
    expect(panel).to_contain_text("2/2 tests · 1/1 cell")
    expect(page.get_by_role("button", name="Mark again")).to_be_focused()

    run_cell(page, "%load_ext course")
    expect(page.locator(f"{NOTEBOOK} .jp-Notebook-ExecutionIndicator")).to_have_attribute("data-status", "idle")
    stored = panel_text(page, desk)
    assert stored.splitlines()[1].startswith("9.1   ✔ green"), (
        "what the notebook stores is the verdict of the last click"
    )
    assert {urlsplit(address).hostname for address in asked} <= {"localhost", "127.0.0.1", None}
    assert any(address.startswith("ws:") for address in asked)

    again, what_to_run = page.get_by_role("button", name="Mark again"), panel.get_by_text("The kernel has changed.")
    expect(again).to_be_visible()
    expect(what_to_run).to_be_hidden()
    menu(page, "Kernel", "Restart Kernel…")
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    expect(what_to_run).to_have_text("The kernel has changed. Run the set-up cell, then %mark 9.1 again.")
    expect(what_to_run).to_be_visible()
    expect(again).to_be_hidden()


def panel_text(page: Page, desk: Desk) -> str:
    """The panel's plain text in the saved notebook."""
    page.locator(f"{NOTEBOOK} h1").first.click()
    save(page)
    saved = json.loads((desk.folder / CHECKPOINT.notebook.name).read_bytes())
    (cell,) = [cell for cell in saved["cells"] if "".join(cell["source"]) == "%mark 9.1" and cell["outputs"]]
    return "".join(cell["outputs"][0]["data"]["text/plain"])


def test_the_live_timeline_moves_while_the_agent_works_and_goes_back_by_the_slider(
    desk: Desk, context: BrowserContext
) -> None:
    desk.save(STARTER)
    page = open_page(context, desk)
    run_cell(page, "%load_ext course")
    run_cell(page, "live = LiveTimeline(mine)")
    timeline = page.locator(f"{NOTEBOOK} .widget-vbox", has=page.locator(".noUi-handle"))
    title, words = timeline.locator("svg > title"), timeline.get_by_role("status")
    expect(words).to_have_text("Nothing has happened yet.")

    run_cell(page, 'run = mine.prompt("Is the release ready?")')
    expect(title).to_have_text(re.compile(r"^Timeline of 1 run in \d moments"))
    expect(words).to_contain_text("starts")
    run_cell(page, 'mine.steer("Linux only.")')
    expect(words).to_contain_text('steer("Linux only."), which waits')
    run_cell(page, "notes_read.set()", 1)
    expect(words).to_contain_text("read_notes: ends")
    before = timeline.locator("svg").bounding_box()
    run_cell(page, "tests_done.set()", 1)
    expect(words).to_contain_text("run-1 ends: completed")
    after = timeline.locator("svg").bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > before["width"]

    colours = "svg => ['--tool', '--jp-accent-color0'].map(name => getComputedStyle(svg).getPropertyValue(name))"
    tool, accent = timeline.locator("svg").evaluate(colours)
    assert tool == accent, "the theme's, whatever the reader's scheme"

    timeline.locator(".noUi-handle").focus()
    page.keyboard.press("Home")
    expect(words).to_have_text(re.compile(r"^t0 of t\d, you: prompt"))
    assert timeline.locator("svg").bounding_box() == after, "the slider does not jump away"


def test_the_server_is_set_to_ask_nobody_outside(desk: Desk, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(desk.url)
    config = json.loads(page.locator("#jupyter-config-data").text_content() or "")
    assert config["news"] == {"disabled": True}
    assert config["extensionManager"]["can_install"] is False
    assert desk.ask("/lab/api/update") == {"notification": None}
    assert desk.ask("/lab/api/news") == {"news": []}


def test_a_click_on_the_place_to_look_at_shows_that_line_and_leaves_the_notebook_in_view(
    desk: Desk, context: BrowserContext
) -> None:
    """The last one at this desk: it leaves another file in front of agent.py, and JupyterLab remembers that."""
    desk.save(STARTER)
    page = open_page(context, desk)
    run_cell(page, "%load_ext course")
    run_cell(page, "%mark 9.1")
    place = page.locator(PANEL).get_by_role("button", name="agent.py, line ")
    place.click()
    assert "NotImplementedError" in goes_there(page, place, STARTER)
    expect(page.locator(".jp-Dialog")).to_have_count(0)

    desk.save(f"{SOLUTION}\n\n{MISTAKE}")
    page.get_by_role("button", name="Mark again").click()
    place = page.locator(PANEL).get_by_role("button", name=f"{CHECKPOINT.test.name}, line ")
    place.click()
    assert "assert" in goes_there(page, place, CHECKPOINT.test.read_text(encoding="utf-8"))
    expect(page.locator(NOTEBOOK)).to_be_visible()
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "/api/workspaces/" in answer.url):
        page.get_by_role("tab", name=CHECKPOINT.test.name).locator(".lm-TabBar-tabCloseIcon").click()


def test_nothing_runs_on_and_nothing_lies_about_once_it_is_stopped(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        desk.ask("/api/kernels", {"name": "python3"})
        family = desk.family()
        assert any("ipykernel" in " ".join(process.cmdline()) for process in family)
    _, left = psutil.wait_procs(family, timeout=SECONDS)
    assert left == []
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == []
