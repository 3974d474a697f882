# Focused tests import a learner's file as `agent`. For type checkers it has all names of the finished package.
from course.agent import *  # noqa: F403
