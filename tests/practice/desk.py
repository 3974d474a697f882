"""A practice folder of the toy checkpoint, with a starter in which every lab is still to be written."""

from __future__ import annotations

import io
from pathlib import Path

import toy
from rich.console import Console, RenderableType

from course.catalog import Checkpoint
from course.marking.verdict import LabVerdict, Marked, Verdict, Versions, Word, overall

BODIES = {
    "42.1": "        self.value += n\n        return self.value\n",
    "42.2": "        await anyio.sleep(0)\n        return self.add(n)\n",
    "42.3": '        return f"<{self.value}>"\n',
}


def starter(*written: str) -> str:
    """The solution with all labs stubbed but those `written`."""
    text = toy.SOLUTION
    for lab, body in BODIES.items():
        assert f"        # {lab}\n{body}" in text
        new = body if lab in written else f'        raise NotImplementedError("Lab {lab}: write this")\n'
        text = text.replace(f"        # {lab}\n{body}", new)
    return text


def lay(home: Path) -> Checkpoint:
    """The toy checkpoint below `home`, with that starter and a finished module that has markers."""
    checkpoint = toy.lay(home)
    checkpoint.starter.write_text(starter(), encoding="utf-8")
    checkpoint.solution.write_text(starter(*BODIES), encoding="utf-8")
    source = toy.SOLUTION
    for lab, body in BODIES.items():
        marked = f"        # BEGIN SOLUTION {lab}: write this\n{body}        # END SOLUTION\n"
        source = source.replace(f"        # {lab}\n{body}", marked)
    checkpoint.source.parent.mkdir(parents=True)
    checkpoint.source.write_text(source, encoding="utf-8")
    return checkpoint


def verdict(*words: Word, message: str = "Expected: this.\nCame: that.", where: str | None = None) -> Verdict:
    """A verdict on the toy's labs, in order."""
    labs = tuple(
        LabVerdict(lab.id, lab.title, word, 0, 0, None if word == "green" else message, where)
        for lab, word in zip(toy.CHECKPOINT.labs, words, strict=True)
    )
    return Verdict("42", overall(labs[:2]), Marked("agent.py", "0" * 64), labs, Versions("", ""), 0.1)


def shown(what: RenderableType, width: int = 80) -> str:
    """What a terminal of this width and without colour shows."""
    file = io.StringIO()
    Console(file=file, width=width, markup=False, emoji=False, highlight=False).print(what)
    return file.getvalue()
