"""Agent Labs: twelve hands-on checkpoints on building an LLM agent that stays alive."""

__version__ = "0.1.0"
