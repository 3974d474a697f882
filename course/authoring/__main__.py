"""`python -m course.authoring`: for those who write the course."""

from course.authoring.cli import main

main()
