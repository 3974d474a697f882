"""Agent Labs: twelve hands-on checkpoints on building an LLM agent that stays alive."""

import importlib

__version__ = "0.1.0"


def load_ipython_extension(ipython):
    """What `%load_ext course` calls. By name: every import of the package below comes through this file."""
    importlib.import_module("course.notebook.extension").load(ipython)
