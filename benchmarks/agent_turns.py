"""What a turn costs: 1,000 scripted turns of 20 text deltas and one tool call, in one run, with one listener.

    python benchmarks/agent_turns.py [--turns 1000] [--repeat 5] [--backend asyncio]

Prints microseconds a turn and how much dearer the last quarter of the run is than the first. The garbage collector
is off while timing: one late full pass looks like growth. Promise 45 asks for at most 1.1.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from time import perf_counter

import anyio

from course.agent import (
    Agent,
    AgentEvent,
    Chunk,
    ScriptedModel,
    TextDelta,
    ToolRegistry,
    TurnEndEvent,
    call,
    say,
    tool,
)


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def script(turns: int) -> list[list[Chunk]]:
    deltas = [TextDelta("word ") for _ in range(20)]
    return [[*deltas, *call(f"c{turn}", "add", a=turn, b=1)] for turn in range(turns)] + [say("done")]


async def run_once(turns: int) -> list[float]:
    """The moments at which turns ended, in seconds, with the start before them."""
    moments: list[float] = []

    def listen(event: AgentEvent) -> None:
        if isinstance(event, TurnEndEvent):
            moments.append(perf_counter())

    model = ScriptedModel(script(turns))
    async with Agent(model=model, tools=ToolRegistry([add]), max_steps=turns + 1) as agent:
        agent.subscribe(listen)
        gc.collect()
        gc.disable()
        moments.append(perf_counter())
        result = await agent.prompt("go")
        gc.enable()
    assert result.status == "completed", result.error
    return moments[: turns + 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--backend", choices=["asyncio", "trio"], default="asyncio")
    options = parser.parse_args()
    costs, growths = [], []
    for _ in range(options.repeat):
        moments = anyio.run(run_once, options.turns, backend=options.backend)
        quarter = options.turns // 4
        first = moments[quarter] - moments[0]
        last = moments[-1] - moments[-1 - quarter]
        costs.append((moments[-1] - moments[0]) / options.turns * 1e6)
        growths.append(last / first)
        print(f"{costs[-1]:8.1f} µs a turn   last quarter / first quarter {growths[-1]:.2f}")
    cost, growth = statistics.median(costs), statistics.median(growths)
    print(f"{cost:8.1f} µs a turn   last quarter / first quarter {growth:.2f}   (medians, {options.backend})")


if __name__ == "__main__":
    main()
