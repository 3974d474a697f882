"""The Agent in a real notebook kernel, where a run lives on from one cell to the next."""

from __future__ import annotations

import textwrap

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

CELLS = [
    """
    import gc
    import anyio
    from course.agent import Agent, ScriptedModel, ToolRegistry, call, say, tool, wait_idle

    begun, go = anyio.Event(), anyio.Event()

    @tool
    async def look_up(word: str) -> str:
        "Look a word up."
        begun.set()
        await go.wait()
        return f"{word}: a container whose shape cannot change"

    heard = []

    async def listen(event):
        heard.append(event.type)

    model = ScriptedModel([call("c1", "look_up", word="tuple"), say("A list can.")])
    agent = Agent(model=model, tools=ToolRegistry([look_up]))
    agent.subscribe(listen)
    stream = agent.prompt("What is a tuple?")
    """,
    """
    await begun.wait()
    agent.steer("And a list?")
    go.set()
    """,
    """
    result = await stream
    await wait_idle(agent)
    print(result.status, "·", result.final_text)
    print(*[type(message).__name__ for message in result.messages])
    await agent.aclose()
    gc.collect()
    print(heard == [event.type async for event in stream], agent.subscriber_errors)
    """,
]


def test_prompt_in_one_cell_steer_in_the_next_await_in_a_third() -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(textwrap.dedent(cell).strip()) for cell in CELLS]
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    assert [_printed(cell) for cell in notebook.cells] == [
        "",
        "",
        "completed · A list can.\n"
        "UserMessage AssistantMessage ToolResultMessage UserMessage AssistantMessage\n"
        "True ()\n",
    ]


def _printed(cell: NotebookNode) -> str:
    """What a cell printed; anything else that it showed, a warning included, fails the test."""
    assert all(output.output_type == "stream" and output.name == "stdout" for output in cell.outputs), cell.outputs
    return "".join(output.text for output in cell.outputs)
