"""The timeline of an Agent: what is recorded, in which order, and what the picture and the text say of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import anyio
import pytest

from course.agent import (
    AGENT_OWNED,
    RUN_OWNED,
    Agent,
    AgentEvent,
    Chunk,
    ModelRequest,
    QueuePolicy,
    ScriptedModel,
    Signal,
    ToolRegistry,
    call,
    say,
    tool,
)
from course.notebook.moments import tell
from course.notebook.picture import PAGE_STYLE, draw, inline
from course.notebook.stage import Held, slow_tool, until
from course.notebook.timeline import Timeline, as_text

pytestmark = pytest.mark.anyio

SVG = "{http://www.w3.org/2000/svg}"


async def two_runs() -> Timeline:
    """The opening of checkpoint 09: tools done out of order, steering that waits, and a second run."""
    run_tests, tests_done = slow_tool("run_tests", "14 passed")
    read_notes, notes_read = slow_tool("read_notes", "two entries")
    calls = [*call("c1", "run_tests"), *call("c2", "read_notes")]
    model = ScriptedModel([calls, say("Yes, on Linux: 14 tests pass."), say("Version 2 is out.")])
    async with Agent(model=model, tools=ToolRegistry([run_tests, read_notes])) as agent:
        timeline = Timeline(agent)
        run = agent.prompt("Is the release ready?")
        await until(run, "tool_start", 2)
        agent.steer("Linux only.")
        notes_read.set()
        await until(run, "tool_end")
        tests_done.set()
        await run
        await agent.prompt("Write the announcement.")
        return timeline


async def cancelled(queues: QueuePolicy) -> Timeline:
    """A run with everything on it: two calls of one tool, an error, progress, four messages that wait, a cancel."""
    begin, streaming = anyio.Event(), anyio.Event()
    gates = {1: anyio.Event(), 2: anyio.Event()}

    @tool
    async def work(n: int, progress: object) -> str:
        """Work."""
        assert callable(progress)
        await begin.wait()
        progress("half")
        await gates[n].wait()
        if n == 2:
            raise ValueError("broken")
        return "fine"

    async def hangs(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        yield say("Let me th")[0]
        streaming.set()
        await anyio.sleep_forever()

    model = ScriptedModel([[*call("c1", "work", n=1), *call("c2", "work", n=2)], hangs, say("Again.")])
    async with Agent(model=model, tools=ToolRegistry([work]), queues=queues) as agent:
        timeline = Timeline(agent)
        run = agent.prompt("Go.")
        await until(run, "tool_start", 2)
        begin.set()
        await until(run, "tool_progress", 2)
        agent.steer("one")
        agent.steer("two")
        agent.follow_up("three")
        gates[1].set()
        await until(run, "tool_end")
        gates[2].set()
        await streaming.wait()
        agent.steer("four")
        agent.cancel("Enough.")
        await run
        return timeline


def lines(timeline: Timeline) -> list[str]:
    return [f"{moment.actor}: {moment.words}" for moment in tell(timeline.records)]


def words(svg: str) -> list[str]:
    """What is written in the picture."""
    return [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


async def test_two_runs_are_told_in_nine_moments() -> None:
    timeline = await two_runs()
    assert lines(timeline) == [
        'you: prompt("Is the release ready?"); run-1 starts',
        "model: asks for run_tests and read_notes; run_tests starts; read_notes starts",
        'you: steer("Linux only."), which waits',
        "read_notes: ends",
        "run_tests: ends",
        'agent: turn 1 ends; the steering "Linux only." enters',
        'model: answers "Yes, on Linux: 14 tests pass."; turn 2 ends; run-1 ends: completed',
        'you: prompt("Write the announcement."); run-2 starts',
        'model: answers "Version 2 is out."; turn 1 ends; run-2 ends: completed',
    ]


async def test_everything_about_a_run_with_agent_owned_queues_is_told() -> None:
    timeline = await cancelled(AGENT_OWNED)
    assert lines(timeline) == [
        'you: prompt("Go."); run-1 starts',
        "model: asks for work and work; work starts; work starts",
        'work: reports "half"',
        'work: reports "half"',
        'you: steer("one"), which waits',
        'you: steer("two"), which waits',
        'you: follow_up("three"), which waits',
        "work: ends",
        "work: ends with an error",
        'agent: turn 1 ends; the steering "one" enters',
        'model: writes "Let me th", not whole yet',
        'you: steer("four"), which waits',
        'you: cancel("Enough.")',
        'agent: run-1 ends: cancelled, "Enough."',
    ]


async def test_messages_that_end_with_their_run_are_told_as_dropped() -> None:
    timeline = await cancelled(RUN_OWNED)
    assert lines(timeline)[-1] == (
        'agent: run-1 ends: cancelled, "Enough."; the follow-up "three" is dropped; the steering "four" is dropped'
    )
    assert words(timeline.svg).count("dropped") == 2


async def test_steering_that_was_queued_while_idle_stands_before_its_run() -> None:
    async with Agent(model=ScriptedModel([say("Hello.")])) as agent:
        timeline = Timeline(agent)
        agent.steer("Briefly.")
        await agent.prompt("Hi")
    assert lines(timeline)[:2] == [
        'you: steer("Briefly."), which waits',
        'you: prompt("Hi"); run-1 starts; the steering "Briefly." enters',
    ]


async def test_steering_by_a_later_listener_stands_between_its_event_and_the_next() -> None:
    async with Agent(model=ScriptedModel([say("One."), say("Two.")])) as agent:
        timeline = Timeline(agent)

        def steer_once(event: AgentEvent) -> None:
            if event.type == "turn_end" and len(agent.messages) == 2:
                agent.steer("More.")

        agent.subscribe(steer_once)
        await agent.prompt("Hi")
    assert lines(timeline)[1:4] == [
        'model: answers "One."; turn 1 ends',
        'you: steer("More."), which waits',
        'agent: the steering "More." enters',
    ]


async def test_what_is_taken_back_is_told_where_it_is_looked_for() -> None:
    async with Agent(model=ScriptedModel([say("Hello."), say("Bye.")])) as agent:
        timeline = Timeline(agent)
        await agent.prompt("Hi")
        agent.follow_up("And then?")
        timeline.look()
        agent.clear_queues()
        timeline.look()
        agent.steer("Briefly.")
        await agent.prompt("Go on")
    assert lines(timeline)[2:6] == [
        'you: follow_up("And then?"), which waits',
        'you: takes back "And then?"',
        'you: steer("Briefly."), which waits',
        'you: prompt("Go on"); run-2 starts; the steering "Briefly." enters',
    ]
    assert "taken back" in words(timeline.svg)


async def test_a_message_taken_back_while_idle_is_not_mistaken_for_one_that_enters() -> None:
    async with Agent(model=ScriptedModel([say("Hello.")])) as agent:
        timeline = Timeline(agent)
        agent.steer("A")
        timeline.look()
        agent.clear_queues()
        agent.steer("B")
        await agent.prompt("Hi")
    assert lines(timeline)[:4] == [
        'you: steer("A"), which waits',
        'you: takes back "A"',
        'you: steer("B"), which waits',
        'you: prompt("Hi"); run-1 starts; the steering "B" enters',
    ]


async def test_a_cancel_at_the_last_moment_is_told_before_the_end() -> None:
    async with Agent(model=ScriptedModel([say("Hello."), say("Bye.")])) as agent:
        timeline = Timeline(agent)
        agent.subscribe(lambda event: agent.cancel("stop") if event.type == "turn_end" else None)
        await agent.prompt("Hi")
        await agent.prompt("Again")
    told = [line for line in lines(timeline) if "cancel" in line]
    assert told == [
        'you: cancel("stop")',
        'agent: run-1 ends: cancelled, "stop"',
        'you: cancel("stop")',
        'agent: run-2 ends: cancelled, "stop"',
    ]


async def test_a_closed_timeline_records_nothing_more() -> None:
    async with Agent(model=ScriptedModel([say("Hello."), say("Bye.")])) as agent:
        timeline = Timeline(agent)
        await agent.prompt("Hi")
        timeline.close()
        before = timeline.text
        await agent.prompt("Again")
    assert timeline.text == before


async def test_the_same_recording_gives_the_same_bytes() -> None:
    first, second = await two_runs(), await two_runs()
    assert first.svg == second.svg
    assert first._repr_mimebundle_() == second._repr_mimebundle_()


async def test_every_lane_and_every_moment_is_labelled() -> None:
    written = words((await two_runs()).svg)
    lanes = ["you", "agent", "model", "run_tests", "read_notes"]
    moments = [f"t{number}" for number in range(9)]
    assert [word for word in written if word in lanes] == lanes, "the tools in the order of their first call"
    assert [word for word in written if re.fullmatch(r"t\d+", word)] == moments


async def test_every_bar_says_in_words_what_its_colour_and_line_say() -> None:
    agent_owned, run_owned = await cancelled(AGENT_OWNED), await cancelled(RUN_OWNED)
    written = words(agent_owned.svg)
    assert {"2 calls", "fine", "error", "not kept", "cancelled"} <= set(written)
    assert written.count("waits") == 3, "two, three and four still wait"
    assert "waits" not in words(run_owned.svg)


async def test_the_picture_says_in_its_title_and_description_what_to_see() -> None:
    timeline = await two_runs()
    root = ElementTree.fromstring(timeline.svg)
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img"
    assert title is not None
    assert title.text == "Timeline of 2 runs in 9 moments."
    assert desc is not None
    assert 't2, you: steer("Linux only."), which waits.' in (desc.text or "")


async def test_the_html_form_is_one_image_with_its_words_beside_it_and_loads_nothing() -> None:
    page = (await two_runs())._repr_mimebundle_()["text/html"]
    image = re.search(r'<img class="agent-timeline"[^>]* alt="([^"]*)" src="data:image/svg\+xml,([^"]*)">', page)
    assert image is not None
    assert image[1].startswith("Timeline of 2 runs in 9 moments.")
    ElementTree.fromstring(unquote(image[2].replace("&#x27;", "'").replace("&amp;", "&")))
    assert re.findall(r"https?://[^\s\"'%]+", unquote(page)) == ["http://www.w3.org/2000/svg"], "a name, never fetched"
    assert "<script" not in unquote(page)


async def test_it_is_made_smaller_to_fit_and_no_smaller_than_can_be_read() -> None:
    timeline = await two_runs()
    width = int(ElementTree.fromstring(timeline.svg).get("width", "0"))
    for page in (inline(timeline.svg), timeline._repr_mimebundle_()["text/html"]):
        assert f"min-width: {round(0.7 * width)}px" in page
        assert re.search(r"max-width: 100%;.* height: auto", page)
    assert 0.7 * width < 580, "the opening's picture fits the pane that `course lab` gives it"


async def test_in_jupyterlabs_page_the_theme_decides_about_every_colour() -> None:
    page = inline((await two_runs()).svg)
    assert page.index(PAGE_STYLE) < page.index("<svg")
    for name in ("model", "tool", "wait", "stop"):
        assert re.search(rf"\[data-jp-theme-light\] svg[^}}]*--{name}: var\(--jp-[a-z]+-color0, #", PAGE_STYLE)
    for light, scheme in (("true", "light"), ("false", "dark")):
        assert f'[data-jp-theme-light="{light}"] img.agent-timeline {{ color-scheme: {scheme}; }}' in PAGE_STYLE


async def test_a_recording_that_is_not_over_is_drawn_at_every_point() -> None:
    for timeline in (await two_runs(), await cancelled(AGENT_OWNED), await cancelled(RUN_OWNED)):
        for end in range(len(timeline.records) + 1):
            ElementTree.fromstring(draw(tell(timeline.records[:end])))
        running = words(draw(tell(timeline.records[:-1])))
        assert "runs on" in running, "a run without an end says so"
    moments = tell((await two_runs()).records)
    assert words(draw(moments[:1])).count("works") == 0, "nothing can be written on a bar without a length"
    assert words(draw(moments[:4])).count("works") == 1, "one tool is done, and one works"


async def test_a_picture_that_begins_later_keeps_what_had_not_ended_and_every_number() -> None:
    timeline = await two_runs()
    moments = tell(timeline.records)
    for begin in range(len(moments)):
        written = words(draw(moments, begin))
        assert [word for word in written if re.fullmatch(r"t\d+", word)] == [f"t{n}" for n in range(begin, 9)]
    from_t3 = words(draw(moments, 3))
    assert {"run-1", "turn 2", "run-2", 'steer("Linux only.")', "run_tests"} <= set(from_t3)
    assert "read_notes" not in from_t3, "it was done at t3"
    assert "run-1" not in words(draw(moments, 7))


async def test_a_recording_that_began_in_the_middle_of_a_run_is_drawn() -> None:
    timeline = await cancelled(AGENT_OWNED)
    for begin in range(len(timeline.records)):
        ElementTree.fromstring(draw(tell(timeline.records[begin:])))


async def test_no_text_of_a_user_a_model_or_a_tool_can_break_the_picture() -> None:
    nasty = "</text><script>x</script>\x1b[31m\x00 & \"quoted\" 'too'\n\u2028 \U0001f600 " + "long " * 40
    noisy, gate = slow_tool("noisy", nasty)
    gate.set()
    held = Held(nasty)
    model = ScriptedModel([call("c1", "noisy"), held])
    async with Agent(model=model, tools=ToolRegistry([noisy])) as agent:
        timeline = Timeline(agent)
        run = agent.prompt(nasty)
        await held.asked.wait()
        agent.steer(nasty)
        timeline.look()
        agent.cancel(nasty)
        await run
    written = words(timeline.svg)
    assert all(text.isprintable() for text in written)
    assert all(len(text) < 60 for text in written), "long text is cut"
    assert "<script" not in timeline.svg
    assert all(line.isprintable() for line in timeline.text.splitlines())


async def test_the_text_form_is_at_most_80_columns_wide() -> None:
    tools, gates = zip(*(slow_tool(f"a_tool_with_a_long_name_{n}", "x") for n in range(8)), strict=True)
    for gate in gates:
        gate.set()
    calls = [chunk for number, each in enumerate(tools) for chunk in call(f"c{number}", each.name)]
    model = ScriptedModel([calls, say("word " * 60)])
    async with Agent(model=model, tools=ToolRegistry(tools)) as agent:
        timeline = Timeline(agent)
        await agent.prompt("long " * 60)
    assert max(map(len, timeline.text.splitlines())) <= 80


async def test_two_calls_of_one_tool_have_a_row_each() -> None:
    root = ElementTree.fromstring((await cancelled(AGENT_OWNED)).svg)
    bars = [rect for rect in root.iter(f"{SVG}rect") if "tool" in (rect.get("class") or "").split()]
    assert len(bars) == 2
    assert len({bar.get("y") for bar in bars}) == 2, "they ran side by side, so neither hides the other"


async def test_nothing_recorded_is_said_to_be_nothing() -> None:
    async with Agent(model=ScriptedModel([])) as agent:
        timeline = Timeline(agent)
    assert timeline.text == as_text([]) == "Nothing has happened yet."
    ElementTree.fromstring(timeline.svg)


async def test_the_readme_shows_the_picture_as_it_is_drawn_now() -> None:
    stored = Path(__file__).parents[2] / "labs" / "images" / "timeline.svg"
    drawn = (await two_runs()).svg + "\n"
    assert stored.read_text(encoding="utf-8") == drawn, f"write what `two_runs()` draws to {stored}"
