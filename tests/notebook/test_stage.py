"""The props of a notebook's cells."""

from __future__ import annotations

import pytest

from course.agent import Agent, AssistantMessage, ScriptedModel, ToolRegistry, UserMessage, call, say
from course.notebook.stage import Held, show, slow_tool, until

pytestmark = pytest.mark.anyio


async def test_a_held_answer_comes_when_it_is_released() -> None:
    answer = Held("Hello.")
    async with Agent(model=ScriptedModel([answer])) as agent:
        run = agent.prompt("Hi")
        await answer.asked.wait()
        assert agent.is_running
        answer.release.set()
        assert (await run).final_text == "Hello."


async def test_a_slow_tool_is_called_by_its_name_and_ends_at_its_gate() -> None:
    wait, gate = slow_tool("wait", "done")
    async with Agent(model=ScriptedModel([call("c1", "wait"), say("Yes.")]), tools=ToolRegistry([wait])) as agent:
        run = agent.prompt("Wait.")
        await until(run, "tool_start")
        assert "wait" not in agent.state.streaming_text
        assert agent.state.pending_call_ids == ("c1",)
        gate.set()
        result = await run
    assert result.messages[2].text == "done"  # type: ignore[union-attr]


async def test_until_waits_for_the_nth_event_and_says_when_it_never_comes() -> None:
    answer = Held("Hello.")
    async with Agent(model=ScriptedModel([answer])) as agent:
        run = agent.prompt("Hi")
        await until(run, "message_accepted")
        assert agent.is_running
        answer.release.set()
        await until(run, "run_end")
        assert not agent.is_running
        with pytest.raises(LookupError, match="text_delta has not come"):
            await until(run, "text_delta", 2)
        with pytest.raises(LookupError, match="tool_end has not come"):
            await until(run, "tool_end")


def test_show_prints_one_line_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    show([UserMessage("Hi"), AssistantMessage((), "error", "the line is dead")])
    assert capsys.readouterr().out == "user      Hi\nassistant failed: the line is dead\n"
