"""Markers: what is one, and what an author is told when one is wrong."""

from __future__ import annotations

import pytest

from .small_course import Project

HEAD = "def double(number):\n"
BEGIN = "    # BEGIN SOLUTION 1.1: add\n"
BODY = "    return number + number\n"
END = "    # END SOLUTION\n"


def test_a_block_knows_its_lab_text_lines_and_indentation(project: Project) -> None:
    (block,) = project.module(HEAD + BEGIN + BODY + "    # UNTIL THEN\n    # return 0\n" + END).blocks
    assert (block.lab, block.text, block.indent) == ("1.1", "add", "    ")
    assert (block.begin, block.until, block.end) == (2, 4, 6)


def test_marker_words_inside_a_string_are_text(project: Project) -> None:
    text = 'NOTE = """\n# BEGIN SOLUTION 1.1: add\n# END SOLUTION\n# UNTIL THEN\n"""\n'
    source = project.module(text)
    assert source.blocks == ()
    assert source.starter == source.solution == text


def test_prose_that_says_until_then_is_no_marker(project: Project) -> None:
    source = project.module("# Until then, nothing happens. It is until then\nx = 1\n")
    assert source.blocks == ()


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (HEAD + BEGIN + BODY, 2, "never ends. Add `# END SOLUTION`"),
        (HEAD + BEGIN + BEGIN + BODY + END, 3, "cannot nest, and the one from line 2 is still open"),
        (HEAD + BODY + END, 3, "no block is open here"),
        (HEAD + BODY + "    # UNTIL THEN\n", 3, "no block is open here"),
        (HEAD + BEGIN.replace("1.1", "1.9") + BODY + END, 2, "no lab 1.9 for this module. Its labs are: 1.1, 1.2"),
        (HEAD + BEGIN.replace(" add", "") + BODY + END, 2, "Write `# BEGIN SOLUTION 9.2: what the learner writes`"),
        (HEAD + BEGIN.replace(":", "") + BODY + END, 2, "is no marker. Write `# BEGIN SOLUTION 9.2: "),
        (HEAD + BEGIN.replace("# ", "### ") + BODY + END, 2, "is no marker. Write `# BEGIN SOLUTION 9.2: "),
        (HEAD + BEGIN.replace("BEGIN", "begin") + BODY + END, 2, "is no marker. Write `# BEGIN SOLUTION 9.2: "),
        (HEAD + BEGIN + BODY + END.replace("END", "End"), 4, "is no marker. Write `# END SOLUTION`"),
        (HEAD + BEGIN + BODY + END.replace("END SOLUTION", "END SOLUTION 1.1"), 4, "Write `# END SOLUTION`"),
        (HEAD + BEGIN + BODY + "    # UNTIL THEN:\n    # return 0\n" + END, 4, "Write `# UNTIL THEN`"),
        (HEAD + BEGIN + BODY.rstrip("\n") + END, 3, "must stand on a line of its own"),
        (HEAD + BEGIN + BODY + END.replace("    #", "        #"), 4, "indented like its BEGIN SOLUTION on line 2"),
        (HEAD + BEGIN + BODY + "# UNTIL THEN\n    # return 0\n" + END, 4, "indented like its BEGIN SOLUTION on line 2"),
        (HEAD + BEGIN + BODY + "    # UNTIL THEN\n    # return 0\n" * 2 + END, 6, "`# UNTIL THEN` on line 4 already"),
        (HEAD + BEGIN + BODY + "    # UNTIL THEN\n" + END, 4, "nothing follows `# UNTIL THEN`"),
        (HEAD + BEGIN + BODY + "    # UNTIL THEN\n    return 0\n" + END, 5, "each line is `# code`"),
        (HEAD + BEGIN + BODY + "    # UNTIL THEN\n    #return 0\n" + END, 5, "each line is `# code`"),
        (HEAD + BEGIN + BODY + "    # UNTIL THEN\n  # return 0\n" + END, 5, "each line is `# code`"),
    ],
)
def test_a_wrong_marker_is_told_with_its_line_and_the_correction(
    project: Project, text: str, line: int, told: str
) -> None:
    problems = project.problems(text)
    assert any(problem.startswith(f"{line}: ") and told in problem for problem in problems), problems


def test_a_marker_inside_an_expression_splits_a_statement(project: Project) -> None:
    text = "TOTAL = sum([\n    # BEGIN SOLUTION 1.1: add\n    1,\n    # END SOLUTION\n])\n"
    assert project.problems(text) == [
        "2: `# BEGIN SOLUTION 1.1: add` splits a statement. Move it to the statement's beginning or end.",
        "4: `# END SOLUTION` splits a statement. Move it to the statement's beginning or end.",
    ]


def test_all_problems_of_a_file_are_told_at_once_each_with_file_and_line(project: Project) -> None:
    problems = project.problems(END + HEAD + BODY + BEGIN)
    assert [problem.split(":")[0] for problem in problems] == ["1", "4"]


def test_a_problem_names_the_file_as_it_is_typed_from_here(project: Project) -> None:
    with pytest.raises(Exception, match=r"^course/agent/tiny\.py:1: no block is open here"):
        project.module("# END SOLUTION\n")
