"""The live timeline: it follows an agent, and lets you go back."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import anyio
import anyio.lowlevel
import pytest

from course.agent import Agent, ScriptedModel, ToolRegistry, call, say
from course.notebook import live
from course.notebook.live import LiveTimeline
from course.notebook.stage import Held, slow_tool, until

pytestmark = pytest.mark.anyio


def shown(widget: LiveTimeline) -> list[str]:
    """What is written in the picture."""
    picture = ElementTree.fromstring(widget._picture.value)
    return [text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text")]


def moments(widget: LiveTimeline) -> list[str]:
    return [word for word in shown(widget) if re.fullmatch(r"t\d+", word)]


def status(widget: LiveTimeline) -> str:
    """The sentence below the picture."""
    found = re.search(r'<div role="status">(.*?)</div>', widget._words.value)
    assert found is not None
    return found[1]


async def test_it_follows_an_agent_while_it_works() -> None:
    answer = Held("Hello.")
    async with Agent(model=ScriptedModel([answer])) as agent:
        widget = LiveTimeline(agent)
        assert status(widget) == "Nothing has happened yet."
        run = agent.prompt("Hi")
        await answer.asked.wait()
        await anyio.wait_all_tasks_blocked()
        assert "runs on" in shown(widget)
        assert status(widget) == "t0 of t0, you: prompt(&quot;Hi&quot;); run-1 starts."
        answer.release.set()
        await run
        assert "completed" in shown(widget)
        widget.close()


async def test_a_message_that_waits_is_seen_after_the_cell_that_queued_it() -> None:
    answer = Held("Hello.")
    async with Agent(model=ScriptedModel([answer, say("Bye.")])) as agent:
        widget = LiveTimeline(agent)
        agent.prompt("Hi")
        await answer.asked.wait()
        agent.steer("Briefly.")
        widget._look()  # what the end of a cell calls
        assert "waits" in shown(widget)
        assert 'steer("Briefly.")' in shown(widget)
        agent.cancel("Never mind.")
        widget._look()
        assert 'cancel("Never mind.")' in shown(widget)
        widget.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_you_say_while_a_cell_runs_on_is_seen_at_once() -> None:
    answer = Held("Hello.")
    async with Agent(model=ScriptedModel([answer, say("Bye.")])) as agent:
        widget = LiveTimeline(agent)
        run = agent.prompt("Hi")
        await answer.asked.wait()
        for say_it, words in (
            (lambda: agent.steer("Briefly."), 'steer("Briefly.")'),
            (lambda: agent.follow_up("More."), 'follow_up("More.")'),
            (lambda: agent.cancel("Never mind."), 'cancel("Never mind.")'),
        ):
            say_it()
            await drawn(widget, words)
        answer.release.set()
        await run
        assert widget._next_look is None, "nothing looks on once the run has ended"
        widget.close()


async def drawn(widget: LiveTimeline, words: str) -> None:
    """Return once the picture says these words."""
    changed = anyio.Event()
    widget._picture.observe(lambda _: changed.set(), "value")
    with anyio.fail_after(20):
        while words not in shown(widget):
            await changed.wait()
            changed = anyio.Event()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_closed_one_looks_no_more_though_the_run_goes_on() -> None:
    answer = Held("Hello.")
    async with Agent(model=ScriptedModel([answer])) as agent:
        widget = LiveTimeline(agent)
        run = agent.prompt("Hi")
        await answer.asked.wait()
        assert widget._next_look is not None
        widget.close()
        assert widget._next_look is None
        answer.release.set()
        await run


def frame(widget: LiveTimeline) -> tuple[str | None, str | None, list[str]]:
    """Width, height and lanes of the picture."""
    svg = next(ElementTree.fromstring(widget._picture.value).iter("{http://www.w3.org/2000/svg}svg"))
    lanes = [text.text or "" for text in svg if text.get("class") == "name"]
    return svg.get("width"), svg.get("height"), lanes


async def test_the_picture_keeps_its_size_and_its_lanes_at_every_moment() -> None:
    tool, gate = slow_tool("wait", "done")
    async with Agent(model=ScriptedModel([call("c1", "wait"), say("Yes.")]), tools=ToolRegistry([tool])) as agent:
        widget = LiveTimeline(agent)
        run = agent.prompt("1?")
        await until(run, "tool_start")
        agent.steer("Briefly.")
        widget._look()
        gate.set()
        await run
        whole = frame(widget)
        assert whole[2] == ["you", "agent", "model", "wait"]
        for place in range(widget._slider.max):
            widget._slider.value = place
            assert frame(widget) == whole
            assert moments(widget) == [f"t{number}" for number in range(place + 1)]
        widget.close()


async def test_who_goes_back_stays_there_while_the_agent_goes_on_and_follows_again_from_the_end() -> None:
    async with Agent(model=ScriptedModel([say("One."), say("Two."), say("Three.")])) as agent:
        widget = LiveTimeline(agent)
        await agent.prompt("1?")
        widget._slider.value = 0
        assert moments(widget) == ["t0"]
        await agent.prompt("2?")
        assert (widget._slider.value, widget._slider.max) == (0, 3)
        assert moments(widget) == ["t0"]
        widget._slider.value = 3
        await agent.prompt("3?")
        assert moments(widget) == ["t0", "t1", "t2", "t3", "t4", "t5"]
        widget.close()


async def test_a_long_recording_shows_its_last_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SHOWN", 3)
    async with Agent(model=ScriptedModel([say("One."), say("Two."), say("Three.")])) as agent:
        widget = LiveTimeline(agent)
        for text in ("1?", "2?", "3?"):
            await agent.prompt(text)
        assert moments(widget) == ["t3", "t4", "t5"]
        assert "run-3" in shown(widget)
        assert "run-2" not in shown(widget), "it had ended at t3"
        widget._slider.value = 2
        assert moments(widget) == ["t0", "t1", "t2"]
        widget.close()


async def test_what_is_stored_of_it_is_the_static_picture() -> None:
    async with Agent(model=ScriptedModel([say("One.")])) as agent:
        widget = LiveTimeline(agent)
        await agent.prompt("1?")
        bundle = widget._repr_mimebundle_()
        assert bundle["text/html"] == widget.timeline._repr_mimebundle_()["text/html"]
        assert bundle["text/plain"] == widget.timeline.text
        widget.close()


async def test_a_closed_one_hears_and_draws_nothing_more() -> None:
    async with Agent(model=ScriptedModel([say("One."), say("Two.")])) as agent:
        widget = LiveTimeline(agent)
        await agent.prompt("1?")
        before = widget._picture.value
        widget.close()
        await agent.prompt("2?")
        await anyio.lowlevel.checkpoint()
        assert widget._picture.value == before
        assert agent.subscriber_errors == ()


async def test_closing_it_while_a_drawing_is_due_hurts_nobody() -> None:
    tool, gate = slow_tool("wait", "done")
    async with Agent(model=ScriptedModel([call("c1", "wait"), say("Yes.")]), tools=ToolRegistry([tool])) as agent:
        widget = LiveTimeline(agent)
        run = agent.prompt("1?")
        await until(run, "tool_start")
        widget.close()
        gate.set()
        assert (await run).status == "completed"
