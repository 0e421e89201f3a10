"""The version, where both towers can read it."""

__version__ = "0.1.0"
