"""One state on several cores: a stream of instructions for each, and the protocol by which they hand over."""
