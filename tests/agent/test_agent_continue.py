"""continue_(): going on from the transcript's tail (promise 30)."""

from __future__ import annotations

import pytest
from stage import Home, StrictModel, in_every_home, names, raise_at_once, recorded, texts

from course.agent import (
    Agent,
    AgentIdleError,
    AssistantMessage,
    Text,
    ToolRegistry,
    UserMessage,
    call,
    say,
    tool,
)

pytestmark = [pytest.mark.anyio, in_every_home]

QUESTION, ANSWER = UserMessage("1 + 1?"), AssistantMessage((Text("2"),))


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def test_continue_asks_again_after_a_user_message(home: Home) -> None:
    model = StrictModel([say("2")])
    async with home(Agent(model=model, messages=[QUESTION])) as agent:
        heard = recorded(agent)
        assert (await agent.continue_()).final_text == "2"
        assert names(heard)[:2] == ["run_start", "text_delta"]
        assert texts(agent.messages) == ["u:1 + 1?", "a:2"]


async def test_continue_asks_again_after_a_failed_answer_which_the_model_does_not_see(home: Home) -> None:
    model = StrictModel([raise_at_once, say("2")])
    async with home(Agent(model=model)) as agent:
        assert (await agent.prompt("1 + 1?")).status == "failed"
        assert (await agent.continue_()).final_text == "2"
        assert texts(model.requests[1].messages) == ["u:1 + 1?"]
        assert texts(agent.messages) == ["u:1 + 1?", "error", "a:2"]


async def test_continue_asks_again_after_tool_results(home: Home) -> None:
    model = StrictModel([call("c1", "add", a=1, b=1), say("2")])
    async with home(Agent(model=model, tools=ToolRegistry([add]), max_steps=1)) as agent:
        assert (await agent.prompt("1 + 1?")).status == "max_steps"
        assert (await agent.continue_()).final_text == "2"


async def test_continue_takes_queued_steering_first_whatever_the_tail(home: Home) -> None:
    model = StrictModel([say("two"), say("three")])
    async with home(Agent(model=model, messages=[QUESTION, ANSWER])) as agent:
        agent.follow_up("later")
        agent.steer("in words")
        assert (await agent.continue_()).final_text == "three"
        assert texts(agent.messages)[2:] == ["u:in words", "a:two", "u:later", "a:three"]


async def test_continue_after_a_finished_answer_takes_a_follow_up(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("ok")]), messages=[QUESTION, ANSWER])) as agent:
        agent.follow_up("thanks")
        assert (await agent.continue_()).final_text == "ok"
        assert texts(agent.messages)[2:] == ["u:thanks", "a:ok"]


@pytest.mark.parametrize("messages", [[], [QUESTION, ANSWER]], ids=["empty", "answered"])
async def test_continue_with_nothing_to_go_on_with_is_a_clear_error_and_claims_nothing(
    home: Home, messages: list[UserMessage | AssistantMessage]
) -> None:
    async with home(Agent(model=StrictModel([]), messages=messages)) as agent:
        with pytest.raises(AgentIdleError, match=r"prompt\(\)"):
            agent.continue_()
        assert not agent.is_running


async def test_continue_on_an_empty_transcript_leaves_a_queued_follow_up_where_it_is(home: Home) -> None:
    async with home(Agent(model=StrictModel([]))) as agent:
        agent.follow_up("hello")
        with pytest.raises(AgentIdleError, match="empty"):
            agent.continue_()
        assert len(agent.queued) == 1
