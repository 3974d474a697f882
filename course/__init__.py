"""Agent Labs: twelve hands-on checkpoints on building an LLM agent that stays alive."""

__version__ = "0.1.0"


def load_ipython_extension(ipython):  # what `%load_ext course` calls
    from course.notebook.extension import load

    load(ipython)
